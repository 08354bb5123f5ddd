# shellcheck shell=bash disable=SC2016,SC2119,SC2120
# A made-up checkout (with a space in its path) and made-up system commands that note their calls.
# A test is a function test_*; it calls the expect_ functions; run_all runs each in a fresh checkout.

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

fresh_checkout() {
  scratch=$(mktemp -d)
  checkout="$scratch/a checkout"
  calls=$scratch/calls
  export calls checkout
  mkdir -p "$checkout"/{tools,core,plugins,cmake} "$scratch/bin"
  cp -p "$source_root"/tools/{setup,assay,test,lint,check-exports,lib.sh,packages.txt,libtorch.txt,readers.txt} "$checkout/tools/"
  touch "$checkout/CMakeLists.txt" "$checkout/CMakePresets.json"
  : >"$calls"
  PATH=$scratch/bin:$original_path
  unset ASSAY_LIBTORCH ASSAY_JOBS
  all_packages
  fake id 'echo 1000'
  fake apt-get 'exit 100'
  fake python3 '[[ "$*" == "-m pip --version" ]]'
  fake cmake 'exit 100'
  fake ctest 'exit 100'
}

# fake NAME SCRIPT: a command in front of the real one, which notes its call first.
fake() {
  printf '#!/bin/bash\nprintf "%%s\\n" "%s $*" >>"$calls"\n%s\n' "$1" "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}

# dpkg-query knows every package of the list but the ones named.
all_packages() {
  local without
  without=$(printf '|%s' "$@")
  fake dpkg-query 'printf "installed %s\n" "${@:4}" | grep -vxE "installed (none'"$without"')"'
}

with_libtorch() {
  local folder=${1:-$checkout/.libtorch/site-packages}
  mkdir -p "$folder/torch" "$folder/nvidia/cu13/lib"
  echo "__version__ = '${2:-2.11.0+cu130}'" >"$folder/torch/version.py"
}

with_text() { mkdir -p "$checkout/data" && echo "some text" >"$checkout/data/gcide.txt"; }

# cmake that "builds" an assay which prints its arguments one a line.
building_cmake() {
  fake cmake 'echo "[1/2] one"; echo "[2/2] two"
    mkdir -p build/release/bin
    printf "#!/bin/bash\nprintf \"<%%s>\\n\" \"\$@\"\n" >build/release/bin/assay
    cp build/release/bin/assay build/release/bin/assay-worker
    chmod +x build/release/bin/*'
}

# run COMMAND...: keeps exit code, standard output and standard error.
run() {
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
}

fail() {
  printf 'FAILED %s: %s\n' "$current" "$1"
  sed 's/^/  out: /' "$scratch/out"
  sed 's/^/  err: /' "$scratch/err"
  sed 's/^/  call: /' "$calls"
  failed=1
}
expect_code() { [[ $code == "$1" ]] || fail "exit code $code, expected $1"; }
expect_out() { [[ $(<"$scratch/out") == "$1" ]] || fail "standard output is not: $1"; }
expect_err() { grep -qF -- "$1" "$scratch/err" || fail "standard error lacks: $1"; }
expect_text() { grep -qF -- "$1" "$scratch/out" || fail "standard output lacks: $1"; }
expect_call() { grep -qxE -- "$1" "$calls" || fail "no such call: $1"; }
expect_no_call() { ! grep -qE -- "$1" "$calls" || fail "unexpected call: $1"; }
expect_file() { [[ -e $1 ]] || fail "no file $1"; }
expect_no_file() { [[ ! -e $1 ]] || fail "file left: $1"; }

run_all() {
  local ran=0
  failed=0
  original_path=$PATH
  for current in $(compgen -A function test_); do
    fresh_checkout
    "$current"
    rm -rf "$scratch"
    ran=$((ran + 1))
  done
  echo "$ran tests"
  ((ran > 0 && failed == 0))
}
