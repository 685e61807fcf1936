#!/usr/bin/env bash
# core_seconds.sh: compiles the library and the program from nothing, without a compiler cache, and prints the seconds
# that all cores worked. Compare two commits on one machine, with nothing else running.
#
#   tools/core_seconds.sh [COMMIT]     default: the working tree as committed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
commit=$(git rev-parse --verify "${1:-HEAD}^{commit}")
export PATH=$PWD/.venv/bin:$PATH CCACHE_DISABLE=1
folder=$(mktemp -d)
trap 'git worktree remove --force "$folder/source"; rm -rf "$folder"' EXIT
git worktree add --detach --quiet "$folder/source" "$commit"
ln -s "$PWD/.venv" "$folder/source/.venv"
cmake -S "$folder/source" --preset "$(cut -d' ' -f1 build/.preset)" -B "$folder/build" -D WD_TESTS=OFF >/dev/null
TIMEFORMAT='%U %S'
{ time cmake --build "$folder/build" --target program wdtrain >"$folder/log" 2>&1; } 2>"$folder/seconds" || { tail -20 "$folder/log" >&2; exit 1; }
awk '{print "core seconds: " $1 + $2}' "$folder/seconds"
