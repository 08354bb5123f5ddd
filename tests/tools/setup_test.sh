# shellcheck shell=bash disable=SC2016
# tools/setup: what is missing is done, once; what needs the user says exactly what to type.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

working_pip() {
  fake python3 '[[ "$*" == "-m pip --version" ]] && exit 0
    target=; for a; do [[ $last == --target ]] && target=$a; last=$a; done
    mkdir -p "$target/torch" "$target/nvidia/cu13/lib"
    echo "__version__ = '"'2.11.0+cu130'"'" >"$target/torch/version.py"'
}

test_missing_packages_without_root_print_the_command() {
  all_packages mold libcsv-dev
  run "$checkout/tools/setup"
  expect_code 2
  expect_err "sudo apt-get install -y --no-install-recommends libcsv-dev mold"
  expect_no_call 'apt-get'
}

test_missing_packages_are_installed_by_root() {
  all_packages mold
  fake id 'echo 0'
  fake apt-get 'true'
  run "$checkout/tools/setup" --no-build
  expect_call 'apt-get update'
  expect_call 'apt-get install -y --no-install-recommends mold'
  expect_err "[1/4] packages: installed 1"
}

test_failed_install_shows_its_log() {
  all_packages mold
  fake id 'echo 0'
  fake apt-get 'echo "E: no route to mirror"; exit 100'
  run "$checkout/tools/setup"
  expect_code 2
  expect_err "E: no route to mirror"
}

test_libtorch_is_installed_by_hash_and_moved_into_place() {
  working_pip
  with_text
  run "$checkout/tools/setup" --no-build
  expect_code 0
  expect_file "$checkout/.libtorch/site-packages/torch/version.py"
  expect_no_file "$checkout/.libtorch/partial"
  expect_call '.*--require-hashes .*--no-deps --only-binary :all: .*'
}

test_interrupted_download_leaves_nothing_half_there() {
  fake python3 '[[ "$*" == "-m pip --version" ]] && exit 0; mkdir -p "$5/torch"; echo "connection lost"; exit 1'
  run "$checkout/tools/setup" --no-build
  expect_code 2
  expect_err "connection lost"
  expect_no_file "$checkout/.libtorch/site-packages"
  working_pip
  with_text
  run "$checkout/tools/setup" --no-build
  expect_code 0
  expect_file "$checkout/.libtorch/site-packages/torch/version.py"
}

test_libtorch_of_another_version_is_replaced() {
  with_libtorch "$checkout/.libtorch/site-packages" 2.10.0
  working_pip
  with_text
  run "$checkout/tools/setup" --no-build
  expect_code 0
  grep -q 2.11.0 "$checkout/.libtorch/site-packages/torch/version.py" || fail "old version kept"
}

test_named_libtorch_is_used() {
  with_libtorch "$scratch/elsewhere"
  with_text
  ASSAY_LIBTORCH=$scratch/elsewhere run "$checkout/tools/setup" --no-build
  expect_code 0
  expect_no_call '^python3'
}

test_named_libtorch_of_another_version_is_refused() {
  with_libtorch "$scratch/elsewhere" 2.12.0
  ASSAY_LIBTORCH=$scratch/elsewhere run "$checkout/tools/setup" --no-build
  expect_code 2
  expect_err "does not hold torch 2.11.0+cu130"
  expect_no_call '^python3'
}

test_text_is_whole_utf8() {
  with_libtorch
  run "$checkout/tools/setup" --no-build
  expect_code 0
  iconv -f utf-8 -t utf-8 "$checkout/data/gcide.txt" >/dev/null 2>&1 || fail "text is not UTF-8"
  (($(stat -c %s "$checkout/data/gcide.txt") > 30000000)) || fail "text is short"
  expect_no_file "$checkout/data/gcide.txt.partial"
}

test_second_run_needs_no_network() {
  with_libtorch
  with_text
  building_cmake
  run "$checkout/tools/setup"
  expect_code 0
  https_proxy=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 run "$checkout/tools/setup"
  expect_code 0
  expect_no_call '^(python3|apt-get)'
}

test_tests_are_another_build() {
  with_libtorch
  with_text
  building_cmake
  run "$checkout/tools/setup" --tests
  expect_code 0
  expect_call 'cmake --build --preset release .*'
}

test_failed_build_shows_the_end_and_is_not_marked() {
  with_libtorch
  with_text
  fake cmake 'echo "broken.cpp:1: error: no"; exit 1'
  run "$checkout/tools/setup"
  expect_code 1
  expect_err "broken.cpp:1: error: no"
  expect_no_file "$checkout/build/release/.built"
}

test_jobs_follow_the_environment() {
  with_libtorch
  with_text
  building_cmake
  ASSAY_JOBS=7 run "$checkout/tools/setup"
  expect_call 'cmake --build .* --parallel 7'
}

test_unknown_option_is_refused_with_the_usage() {
  run "$checkout/tools/setup" --fast
  expect_code 2
  expect_err "unknown option --fast"
  expect_err "usage: tools/setup"
}

test_help_does_nothing() {
  run "$checkout/tools/setup" --help
  expect_code 0
  expect_text "ASSAY_LIBTORCH"
  expect_no_call .
}

run_all
