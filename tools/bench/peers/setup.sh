#!/usr/bin/env bash
# setup.sh: creates .venv-peers, which holds the programs that ours is compared with. `setup.sh cuda` adds jax
# for NVIDIA GPUs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
venv=$PWD/.venv-peers
[[ -x $venv/bin/pip ]] || python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt"
"$venv/bin/pip" install -q --disable-pip-version-check --no-deps rl-warp-drive==2.7.1
case ${1:-cpu} in
  cpu) ;;
  cuda)  # jax's plugin of the same version; numba runs rl-warp-drive's own GPU back end
    jax=$(sed -n 's/^jax==//p' "$here/requirements.txt")
    "$venv/bin/pip" install -q --disable-pip-version-check "jax[cuda13]==$jax" numba numba-cuda
    ;;
  *) echo "usage: setup.sh [cpu|cuda]" >&2; exit 2 ;;
esac
echo "the peers are in .venv-peers"
