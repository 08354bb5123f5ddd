# shellcheck shell=bash disable=SC2016
# tools/lint: each rule finds its break and names the line; a clean tree passes.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# lint_of FILE TEXT: lints a repository that holds one file.
lint_of() {
  local tree=$scratch/tree
  mkdir -p "$tree/$(dirname "$1")"
  git -C "$tree" init -q
  printf '%s\n' "$2" >"$tree/$1"
  git -C "$tree" add .
  run "$source_root/tools/lint" "$tree"
}
expect_break() { # FILE TEXT PART-OF-THE-MESSAGE
  rm -rf "$scratch/tree"
  lint_of "$1" "$2"
  expect_code 1
  expect_text "$1:1"
  expect_text "$3"
}
expect_clean() {
  rm -rf "$scratch/tree"
  lint_of "$1" "$2"
  expect_code 0
  expect_text "lint: clean"
}

test_umbrella_headers() {
  expect_break core/train/a.cpp '#include <torch/torch.h>' "umbrella"
  expect_break core/train/a.cpp '#include <ATen/ATen.h>' "umbrella"
  expect_clean core/train/a.cpp '#include <ATen/core/Tensor.h>'
}

test_private_api() {
  expect_break plugins/optim/a/a.cpp '#include <torch/csrc/autograd/engine.h>' "private LibTorch API"
  expect_clean core/intercept/a.cpp '#include <torch/csrc/autograd/engine.h>'
}

test_floating_point_flags() {
  expect_break core/a/CMakeLists.txt 'add_compile_options(-ffast-m''ath)' "floating point"
}

test_machine_paths() {
  expect_break docs/a.md 'see /ho''me/someone/x' "no path of one machine"
  expect_clean docs/a.md 'see work/main and /usr/bin'
}

test_unfinished() { expect_break core/base/a.cpp '// TO''DO: later' "finish it"; }

test_arrows() {
  expect_break core/base/a.cpp '#include "core/grid/plan.h"' "core/base includes core/grid"
  expect_break core/grid/a.cpp '#include "core/host/run.h"' "core/grid includes core/host"
  expect_clean core/host/a.cpp '#include "core/grid/plan.h"'
}

test_plugins_see_public_headers_only() {
  expect_break plugins/optim/a/a.cpp '#include "core/train/loop.h"' "public headers"
  expect_clean plugins/optim/a/a.cpp '#include "assay/optimizer.h"'
}

test_host_side_does_not_see_libtorch() {
  expect_break core/store/a.cpp '#include <ATen/core/Tensor.h>' "does not see LibTorch"
}

test_using_namespace() {
  expect_break core/base/a.cpp 'using namespace std;' "no using namespace"
  expect_clean core/base/a.cpp 'using namespace std::chrono_literals;'
}

test_format() {
  command -v clang-format-14 >/dev/null || return
  expect_break core/base/a.cpp 'int  a ;' "not formatted"
}

run_all
