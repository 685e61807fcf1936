#!/usr/bin/env bash
# gate.sh: compares the speed of the working tree with that of a commit, in pairs on this machine.
#
#   tools/bench/gate.sh BASE [--pairs 9] [--seconds 1] [--only TEXT] [--json FILE]
#
# Builds both with preset cpu in build-gate/ and prints one line per case: the ratio working tree / BASE of
# environment steps per second, its median over pairs with a 95 % interval. Ends with 1 if a case is slower: a
# median below 0.98 and an interval below 1. Nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
base=$(git rev-parse --verify --quiet "${1:?"usage: tools/bench/gate.sh BASE [--pairs N] [--seconds S] [--only TEXT]"}^{commit}") ||
  { echo "gate.sh: there is no commit '$1'" >&2; exit 2; }
shift
export PATH=$PWD/.venv/bin:$PATH
mkdir -p build-gate
build() {  # build SOURCE FOLDER
  [[ -f $2/build.ninja ]] || cmake -S "$1" -B "$2" --preset cpu -D WD_TESTS=OFF >"$2.log" 2>&1 || { cat "$2.log" >&2; exit 1; }
  cmake --build "$2" --target wdtrain >"$2.log" 2>&1 || { tail -40 "$2.log" >&2; exit 1; }
}
source=$PWD/build-gate/$base-source
if [[ ! -d $source ]]; then
  git worktree prune
  git worktree add --detach "$source" "$base" >/dev/null 2>&1
  ln -s "$PWD/.venv" "$source/.venv"
fi
build "$source" "$PWD/build-gate/$base"
build "$PWD" "$PWD/build-gate/here"
exec python3 tools/bench/gate.py "build-gate/$base/wdtrain" build-gate/here/wdtrain "$@"
