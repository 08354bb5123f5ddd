# shellcheck shell=bash
# What tools/setup, assay, test and check-exports share. Sourced by bash; sets no traps, prints nothing.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
libtorch=$(realpath -ms "${ASSAY_LIBTORCH:-$root/.libtorch/site-packages}")
text=$root/data/gcide.txt
built=$root/build/release/.built # written after a build, dated before it: see is_built

# Ends with a message that says what to do, and exit code 2 (a set-up error).
die() {
  printf 'error: %s\n' "$@" >&2
  exit 2
}

# Is the pinned LibTorch in folder $1, whole? tools/setup renames complete folders into place.
has_libtorch() {
  local version
  [[ -r $1/torch/version.py && -d $1/nvidia/cu13/lib ]] || return 1
  version=$(<"$1/torch/version.py")
  [[ $version == *"'2.11.0+cu130'"* ]]
}

# Is the product built from the sources as they are? One find over the tree, a few milliseconds.
is_built() {
  [[ -x $root/build/release/bin/assay-worker && -r $built && $(<"$built") == "$libtorch" ]] || return 1
  [[ -z $(find "$root/core" "$root/plugins" "$root/cmake" "$root/CMakeLists.txt" \
    "$root/CMakePresets.json" "$root/tools/setup" -newer "$built" -print -quit) ]]
}

is_set_up() { [[ -s $text ]] && has_libtorch "$libtorch" && is_built; }

# Compile jobs: the cores, but not more than 2 GB of memory a job allow.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemTotal/ {print int($2 / 2e6)}' /proc/meminfo)
  echo $((memory < 1 ? 1 : memory < cores ? memory : cores))
}

seconds() { (($1 < 60)) && echo "$1 s" || printf '%d min %02d s\n' $(($1 / 60)) $(($1 % 60)); }

# step NUMBER TEXT: opens the progress line of a step; done_with TEXT closes it.
step() {
  step_started=$SECONDS
  printf '[%s] %s: ' "$1" "$2" >&2
}
done_with() { printf '%s\n' "$1" >&2; }
step_time() { seconds $((SECONDS - step_started)); }

# A Python that can install wheels: LibTorch, and the readers of tools/check-exports.
python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  done_with "no pip"
  die "neither python3 nor /usr/bin/python3 has pip, which fetches wheels" "install python3-pip"
}

# logged LOG COMMAND...: runs a step's command with its output in LOG; after a failure shows the end
# of it. Ninja's [done/total] becomes the progress of the line: redrawn on a terminal, else a line a minute.
logged() {
  local log=$1 line last=$SECONDS status
  shift
  mkdir -p "$(dirname "$log")"
  "$@" </dev/null 2>&1 | while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line =~ ^\[([0-9]+/[0-9]+)\] ]] || continue
    if [[ -t 2 ]]; then
      printf '\e7%s\e8' "${BASH_REMATCH[1]}" >&2
    elif ((SECONDS - last >= 60)); then
      last=$SECONDS
      printf '%s ' "${BASH_REMATCH[1]}" >&2
    fi
  done >"$log"
  status=${PIPESTATUS[0]}
  if ((status != 0)); then
    done_with "failed"
    tail -n 60 "$log" >&2
    printf 'error: %s\n' "the command was: $*" "its whole output: $log" >&2
    return 1
  fi
}
