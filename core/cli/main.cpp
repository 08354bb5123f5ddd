// assay: the command line and supervisor of the test bed.
#include "core/cli/context.h"

int main(int argc, char** argv) {
  assay::cli::Context context = assay::cli::default_context();
  return assay::cli::run_cli(argc, argv, context);
}
