# shellcheck shell=bash disable=SC2016
# tools/test: every part runs, the totals are printed, and one failure anywhere is an exit code.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

ready() {
  with_libtorch
  with_text
  building_cmake
  printf '#!/bin/bash\necho "lint: clean"\n' >"$checkout/tools/lint"
  printf '#!/bin/bash\necho "exports: $*"\n' >"$checkout/tools/check-exports"
}
passing='echo "  1/2 Test  #1: a ....   Passed    0.01 sec"; echo "100% tests passed, 0 tests failed out of 2"'

test_all_pass() {
  ready
  fake ctest "$passing"
  run "$checkout/tools/test"
  expect_code 0
  expect_text "release: 100% tests passed, 0 tests failed out of 2"
  expect_text "asan: 100% tests passed, 0 tests failed out of 2"
  expect_text "gate/gate.db ci-gate"
  expect_text "== exports"
  expect_text "all passed"
  expect_call 'cmake --build --preset release .*'
  expect_call 'cmake --build --preset asan .*'
}

test_fast_leaves_sanitizers_and_exports_out() {
  ready
  fake ctest "$passing"
  run "$checkout/tools/test" --fast -- -R grid
  expect_code 0
  [[ $(<"$scratch/out") != *exports* ]] || fail "exports are read"
  expect_call 'ctest --preset release --parallel 2 -R grid'
  expect_no_call asan
}

test_failing_test_is_the_exit_code() {
  ready
  fake ctest 'echo "50% tests passed, 1 tests failed out of 2"; exit 8'
  run "$checkout/tools/test"
  expect_code 1
  expect_text "FAILED: tests, release"
  expect_text "FAILED: tests, asan"
}

test_no_tests_is_a_failure() {
  ready
  fake ctest 'echo "No tests were found!!!"'
  run "$checkout/tools/test" --fast
  expect_code 1
  expect_text "release: no tests ran"
}

test_lint_is_the_exit_code() {
  ready
  printf '#!/bin/bash\nexit 1\n' >"$checkout/tools/lint"
  fake ctest "$passing"
  run "$checkout/tools/test" --fast
  expect_code 1
  expect_text "FAILED: lint"
}

test_exports_that_differ_are_the_exit_code() {
  ready
  printf '#!/bin/bash\nexit 1\n' >"$checkout/tools/check-exports"
  fake ctest "$passing"
  run "$checkout/tools/test"
  expect_code 1
  expect_text "FAILED: exports"
}

test_failed_build_stops() {
  ready
  fake cmake 'exit 1'
  run "$checkout/tools/test"
  expect_code 1
  expect_no_call ctest
}

run_all
