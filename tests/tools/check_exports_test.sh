# shellcheck shell=bash disable=SC2016
# tools/check-exports: readers are installed once, whole or not at all; their answer is the exit code.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

ready() {
  with_libtorch
  with_text
  building_cmake
  (cd "$checkout" && tools/setup >/dev/null 2>&1)
}
# pip that makes its target folder, and a reader that ends with code $1.
python() {
  fake python3 '[[ "$*" == "-m pip --version" ]] && exit 0
    [[ "$2" == pip ]] && mkdir -p "$5/tensorboard" && exit 0
    exit '"$1"
}

test_installs_once_and_compares() {
  ready
  python 0
  run "$checkout/tools/check-exports" a.db ci
  expect_code 0
  expect_file "$checkout/build/setup/readers/tensorboard"
  expect_call "python3 .*/check_exports.py /.* ci a.db"
  : >"$calls"
  run "$checkout/tools/check-exports" a.db ci
  expect_code 0
  expect_no_call "pip install"
}

test_another_list_installs_again() {
  ready
  python 0
  run "$checkout/tools/check-exports" a.db ci
  echo "tensorboard==9" >>"$checkout/tools/readers.txt"
  : >"$calls"
  run "$checkout/tools/check-exports" a.db ci
  expect_call "python3 -m pip install .*"
}

test_values_that_differ_are_the_exit_code() {
  ready
  python 1
  run "$checkout/tools/check-exports" a.db ci
  expect_code 1
}

test_broken_install_leaves_nothing() {
  ready
  fake python3 '[[ "$*" == "-m pip --version" ]] && exit 0; mkdir -p "$5/tensorboard"; exit 1'
  run "$checkout/tools/check-exports" a.db ci
  expect_code 2
  expect_no_file "$checkout/build/setup/readers"
}

test_arguments() {
  run "$checkout/tools/check-exports" --help
  expect_code 0
  run "$checkout/tools/check-exports" a.db
  expect_code 2
  expect_err "DATABASE and STUDY are needed"
}

run_all
