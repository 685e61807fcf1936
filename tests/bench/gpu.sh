#!/usr/bin/env bash
# gpu.sh: builds, tests and benchmarks on a machine with a GPU, in at most ten minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: tests/bench/gpu.sh [--dry_run] [--device cuda|cpu] [--build_dir DIR] [--no_build] [--out FOLDER] [--seconds S]

  --dry_run         print the steps and their limits, run nothing
  --device cpu      the CPU stands in: to try the script. Its figures are no GPU's, and its files say so
  --build_dir DIR   default build
  --no_build        take what is in DIR
  --out FOLDER      of DATE-gpu.json and DATE-gpu.md; default docs/benchmarks
  --seconds S       of all steps together (600)

Each step has its own time limit; one that fails does not keep the others from running. A step that could not do its work,
because a tool or a GPU is missing, is listed as skipped with the reason.
Exit: 0 all steps passed, 1 a step failed or found no time, 3 none failed but some were skipped, 2 wrong usage.
TEXT
}

dry_run='' device=cuda build_dir=build build=1 out=docs/benchmarks seconds=600
while (($#)); do
  case $1 in
    --dry_run) dry_run=1 ;;
    --no_build) build='' ;;
    --device | --build_dir | --out | --seconds)
      [[ $# -ge 2 ]] || { usage >&2; exit 2; }
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "gpu.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if [[ ! $device =~ ^(cuda|cpu)$ || ! $seconds =~ ^[0-9]+$ ]]; then
  usage >&2
  exit 2
fi
export PATH=$PWD/.venv/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- steps -------------------------------------------------------------------------------------------------

readonly kSkipped=77  # a step's exit status where it could not do its work; its last line is the reason

# step NAME LIMIT COMMAND...: runs COMMAND, which may be a shell function, and writes NAME, outcome, seconds,
# command and last output line to steps.tsv.
step() {
  local name=$1 limit=$2 left=$((seconds - SECONDS)) begin status outcome
  shift 2
  if [[ $dry_run ]]; then
    printf '%-22s %4s s  %s\n' "$name" "$limit" "$*"
    return
  fi
  begin=$SECONDS
  local log=$work/$name.log
  if ((left < 5)); then
    outcome='no time left'
    echo "$seconds s were over before it began" >"$log"
  else
    ((limit <= left)) || limit=$left
    declare -fx "$1" 2>/dev/null || true  # COMMAND may be a function of this script
    timeout --kill-after=5 "$limit" bash -c '"$@"' step "$@" >"$log" 2>&1
    status=$?
    case $status in
      0) outcome=passed ;;
      "$kSkipped") outcome=skipped ;;
      124 | 137) outcome="stopped after $limit s" ;;
      *) outcome="failed ($status)" ;;
    esac
  fi
  local last
  last=$(grep -v '^[[:space:]]*$' "$log" | tail -1 | tr '\t' ' ' | cut -c1-200)
  printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$outcome" $((SECONDS - begin)) "$*" "$last" >>"$work/steps.tsv"
  printf '%-22s %-20s %4s s  %s\n' "$name" "$outcome" $((SECONDS - begin)) "$last"
  if [[ $outcome != passed && $outcome != skipped ]]; then tail -15 "$log" | sed 's/^/    | /'; fi
}

# Runs the tests that need a GPU. Skipped tests do not count as passed.
gpu_tests() {
  ctest --test-dir "$build_dir" -L '^gpu$' --output-on-failure --no-tests=error 2>&1 | tee "$work/ctest.out"
  local status=${PIPESTATUS[0]}
  ((status == 0)) || return "$status"
  if grep -q 'Skipped' "$work/ctest.out"; then
    echo "skipped by themselves: $(grep -o '[^ ]* \.*\*\*\*Skipped' "$work/ctest.out" | cut -d' ' -f1 | paste -sd ' ')"
    return "$kSkipped"
  fi
}

# Runs the test programs with the label gpu under one tool of compute-sanitizer.
sanitize() {
  local program tool=compute-sanitizer ran=0 programs=()
  command -v "$tool" >/dev/null || tool=/usr/local/cuda/bin/compute-sanitizer
  if [[ ! -x $(command -v "$tool") ]]; then
    echo "there is no compute-sanitizer here"
    return "$kSkipped"
  fi
  mapfile -t programs < <(find "$build_dir/tests" -maxdepth 1 -name 'test.*_gpu_test' -perm -u+x)
  for program in "${programs[@]}"; do
    MKL_CBWR=AVX2,STRICT "$tool" --tool "$1" --error-exitcode 9 "$program" 2>&1 | tee "$work/sanitize.out"
    local status=${PIPESTATUS[0]}
    ((status == 0)) || return "$status"
    grep -qE '\[  PASSED  \] [1-9]' "$work/sanitize.out" && ran=$((ran + 1))
  done
  if ((ran < ${#programs[@]} || ran == 0)); then
    echo "in $((${#programs[@]} - ran)) of ${#programs[@]} programs all tests skipped themselves"
    return "$kSkipped"
  fi
  echo "$ran programs without a finding"
}

parity() {
  "$build_dir/wdtrain" check --env "$1" --device "$device" --seconds 4 | tee "$work/parity.out"
  local status=${PIPESTATUS[0]}
  ((status == 0)) || return "$status"
  [[ $device == cuda ]] || { echo "nothing was compared with a GPU"; return "$kSkipped"; }
}

bench() {
  local name=$1
  shift
  "$build_dir/wdtrain" bench --device "$device" --json "$@" >"$work/bench_$name.json" || return
  head -c 300 "$work/bench_$name.json"
}

peers() {
  if [[ ! -x .venv-peers/bin/python ]]; then
    echo "the peers are not installed: tests/bench/peers/setup.sh"
    return "$kSkipped"
  fi
  local kind=gpu
  [[ $device == cuda ]] || kind=cpu
  # Only peers with a performance target. The file is rewritten after each of them.
  .venv-peers/bin/python tests/bench/peers/run.py --"$kind" --pairs 5 --seconds 1 --scripts warpdrive_gpu tag_continuous_jax --out "$work/peers.json"
}

sees_gpu() {
  if [[ $device == cpu ]]; then
    echo "the CPU stands in for a GPU"
    return "$kSkipped"
  fi
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
}

build_all() { ./wd build --tests; }

export build_dir device work kSkipped

# --- the steps to run
# --------------------------------------------------------------------------------------------------

step gpu 10 sees_gpu
[[ ! $build ]] || step build 150 build_all
step gpu_tests 60 gpu_tests
for env in cartpole tag_gridworld simple_tag tag_continuous; do step "parity_$env" 12 parity "$env"; done
for tool in memcheck racecheck initcheck synccheck; do step "$tool" 25 sanitize "$tool"; done
# The main benchmark: 5 taggers and 100 runners with full observation, A2C, two policies of 2 x 256 units.
headline=(--env tag_continuous --num_envs 2048 --seconds 3 --set policy.tagger.algorithm=A2C --set policy.runner.algorithm=A2C)
[[ $device == cuda ]] || headline[3]=16
for mode in env act train; do step "bench_$mode" 11 bench "$mode" --mode "$mode" "${headline[@]}"; done
for mode in env act train; do
  step "bench_bf16_$mode" 11 bench "bf16_$mode" --mode "$mode" "${headline[@]}" --set trainer.precision=bf16
done
step bench_table_train 11 bench table_train --mode train "${headline[@]}" --set trainer.observations=table
step peers 150 peers
[[ ! $dry_run ]] || exit 0

python3 tests/bench/gpu_report.py --work "$work" --device "$device" --out "$out" || exit 1
if cut -f2 "$work/steps.tsv" | grep -qvE '^(passed|skipped)$'; then exit 1; fi
if cut -f2 "$work/steps.tsv" | grep -q '^skipped$'; then exit 3; fi
