#!/usr/bin/env bash
# setup.sh: creates .venv-peers, which holds the programs that ours is compared with. `setup.sh cuda` adds jax
# for NVIDIA GPUs. `setup.sh memorax` creates .venv-memorax instead, for memory.py: memorax pins another Gymnasium, and its
# wrappers unpack five results of a step, which gymnax has not returned since 1.0.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../.."
if [[ ${1:-} == memorax ]]; then
  [[ -x .venv-memorax/bin/pip ]] || python3 -m venv .venv-memorax
  .venv-memorax/bin/pip install -q --disable-pip-version-check memorax==1.0.1 gymnax==0.0.9 jax==0.10.2 flax==0.12.8 numpy==2.4.6
  echo "memorax is in .venv-memorax"
  exit
fi
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
  *) echo "usage: setup.sh [cpu|cuda|memorax]" >&2; exit 2 ;;
esac
echo "the peers are in .venv-peers"
