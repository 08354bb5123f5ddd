# shellcheck shell=bash disable=SC2016
# tools/assay: sets up quietly, hands its arguments on untouched, and stays out of the way after.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

ready() {
  with_libtorch
  with_text
  building_cmake
}

test_first_call_builds_then_runs() {
  ready
  run "$checkout/tools/assay" plan "my grid.yaml" ""
  expect_code 0
  expect_out $'<plan>\n<my grid.yaml>\n<>'
  expect_err "[4/4] build: build/release"
}

test_later_call_does_no_set_up() {
  ready
  run "$checkout/tools/assay" status
  : >"$calls"
  run "$checkout/tools/assay" status
  expect_out "<status>"
  expect_no_call .
  [[ ! -s $scratch/err ]] || fail "it is not quiet"
}

test_changed_source_is_built_again() {
  ready
  run "$checkout/tools/assay" status
  : >"$calls"
  touch -d '+1 minute' "$checkout/core/new.cpp"
  run "$checkout/tools/assay" status
  expect_call 'cmake --build --preset run .*'
}

test_edit_during_a_build_is_not_lost() {
  ready
  building_cmake
  echo 'touch -d "+1 minute" "$checkout/plugins/edited.cpp"' >>"$scratch/bin/cmake"
  run "$checkout/tools/assay" status
  : >"$calls"
  run "$checkout/tools/assay" status
  expect_call 'cmake --build --preset run .*'
}

test_other_libtorch_is_built_again() {
  ready
  run "$checkout/tools/assay" status
  : >"$calls"
  with_libtorch "$scratch/elsewhere"
  ASSAY_LIBTORCH=$scratch/elsewhere run "$checkout/tools/assay" status
  expect_call "cmake --preset release -DASSAY_LIBTORCH=$scratch/elsewhere .*"
}

test_help_needs_no_libtorch() {
  building_cmake
  run "$checkout/tools/assay" --help
  expect_code 0
  expect_out "<--help>"
  expect_call 'cmake --build --preset cli .*'
  expect_no_call '^python3'
}

test_failed_build_runs_nothing() {
  with_libtorch
  with_text
  run "$checkout/tools/assay" status
  expect_code 1
  expect_out ""
}

test_works_from_any_folder_and_through_a_link() {
  ready
  ln -s "$checkout" "$scratch/link"
  cd "$scratch" || return
  run link/tools/assay status
  expect_out "<status>"
}

run_all
