#!/usr/bin/env bash
# checkpoint_cost.sh: the cost of checkpoints, in paired runs of tag_continuous_small. Prints, PAIRS times,
# the seconds with a checkpoint every EVERY iterations, the seconds without (first and last checkpoint only),
# and their ratio.
#
#   tools/bench/checkpoint_cost.sh [PAIRS] [ITERATIONS] [EVERY]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
pairs=${1:-5} iterations=${2:-200} every=${3:-100}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seconds() {  # seconds OUT [SETTING...]
  local out=$folder/$1
  shift
  build/wdtrain --config configs/tag_continuous_small.yaml --device cpu --quiet --run_dir "$out" --total_steps $((iterations * 6400)) "$@"
  python3 -c "import json; print(json.load(open('$out/summary.json'))['wall_s'])"
}
for ((k = 1; k <= pairs; ++k)); do
  with=$(seconds "with$k" --set saving.checkpoint_freq="$every")
  without=$(seconds "without$k" --set saving.checkpoint_freq=0)
  python3 -c "print(f'with {$with:.2f} s, without {$without:.2f} s, ratio {$with / $without:.4f}')"
done
