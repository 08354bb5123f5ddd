#!/bin/bash
# follow.sh PAGE BUILD: runs the ```sh blocks of a page, in order, in an empty folder.
set -eu
page=$1
export BUILD=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PREFIX=$work/prefix ASSAY_CACHE_DIR=$work/cache HOME=$work
unset ASSAY_PLUGIN_PATH

awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$page" >"$work/commands"
lines=$(wc -l <"$work/commands")
if [ "$lines" -lt 10 ]; then
  echo "only $lines lines of commands found in $page" >&2
  exit 1
fi
mkdir "$work/empty"
cd "$work/empty"
# Each command is printed before it runs; the first that fails ends the test.
bash -eux "$work/commands"
