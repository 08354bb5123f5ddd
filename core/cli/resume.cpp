// assay resume [STUDY]: goes on after a stop, a crash or a full disk, from the database alone.
#include <CLI/CLI.hpp>
#include <memory>

#include "core/cli/commands.h"
#include "core/cli/comparing.h"
#include "core/cli/context.h"
#include "core/cli/supervise.h"
#include "core/host/study.h"
#include "core/store/reader.h"
#include "core/store/store.h"

namespace assay::cli {
namespace {

struct ResumeArguments {
  std::string study{};
  SuperviseFlags flags{};
};

void resume_study(const ResumeArguments& arguments, Context& context) {
  const store::StudyInfo study = [&] {
    const store::Reader reader(context.database);
    return arguments.study.empty() ? reader.newest_study() : reader.study(arguments.study);
  }();
  store::Store store(context.database);
  supervise(store, study.study_id, study.name, host::run_keys(study.resolved_json), arguments.flags,
            context);
  print_declared(store, study.study_id, study.name, context);
}

}  // namespace

void add_resume(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ResumeArguments>();
  CLI::App* command =
      app.add_subcommand("resume", "Go on with a study: queued, killed and infra runs");
  command->add_option("study", arguments->study, "Its name (default: the newest)");
  add_supervise_flags(*command, arguments->flags);
  command->footer(R"(
Examples:
  assay resume
  assay resume matrix --only fail
  assay resume matrix --resume-from latest)");
  command->callback([arguments, &context] { resume_study(*arguments, context); });
}

}  // namespace assay::cli
