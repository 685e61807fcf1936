#!/usr/bin/env bash
# gpu.sh: builds, tests and benchmarks on a machine with a GPU, in parts of at most ten minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: tests/bench/gpu.sh [--dry_run] [--device cuda|emulated] [--build_dir DIR] [--no_build] [--parts LIST] [--out FOLDER] [--seconds S]

  --dry_run         print the steps and their limits, run nothing
  --device emulated the emulated GPU stands in, with small games: to try the script. Its figures are no GPU's,
                    and its files say so
  --build_dir DIR   default build
  --no_build        take what is in DIR
  --parts LIST      some of tests,bench,peers,sanitize (all of them); each takes at most ten minutes
  --out FOLDER      of DATE-gpu.json and DATE-gpu.md; default docs/benchmarks
  --seconds S       of all steps together (1800)

Each step has its own time limit; one that fails does not keep the others from running. A step that could not do its work,
because a tool or a GPU is missing, is listed as skipped with the reason.
Exit: 0 all steps passed, 1 a step failed or found no time, 3 none failed but some were skipped, 2 wrong usage.
TEXT
}

dry_run='' device=cuda build_dir=build build=1 parts=tests,bench,peers,sanitize out=docs/benchmarks seconds=1800
while (($#)); do
  case $1 in
    --dry_run) dry_run=1 ;;
    --no_build) build='' ;;
    --device | --build_dir | --parts | --out | --seconds)
      [[ $# -ge 2 ]] || { usage >&2; exit 2; }
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "gpu.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if [[ ! $device =~ ^(cuda|emulated)$ || ! $seconds =~ ^[0-9]+$ || ! ,$parts =~ ^(,(tests|bench|peers|sanitize))+$ ]]; then
  usage >&2
  exit 2
fi
export PATH=$PWD/.venv/bin:$PATH
program=$build_dir/wdtrain check_steps=300
[[ $device == cuda ]] || program=${program}_emulated check_steps=20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- steps -------------------------------------------------------------------------------------------------

readonly kSkipped=77  # a step's exit status where it could not do its work; its last line is the reason

# step NAME LIMIT COMMAND...: runs COMMAND, which may be a shell function, and writes NAME, outcome, seconds,
# command and last output line to steps.tsv.
step() {
  local name=$1 limit=$(($2 * ${WD_SLOWDOWN:-1})) left=$((seconds - SECONDS)) begin status outcome
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

# Runs a test that needs a GPU. A skipped test did not pass.
gpu_test() {
  ctest --test-dir "$build_dir" -R "^$1\$" --output-on-failure --no-tests=error 2>&1 | tee "$work/ctest.out"
  local status=${PIPESTATUS[0]}
  ((status == 0)) || return "$status"
  if grep -q 'Skipped' "$work/ctest.out"; then
    echo "it skipped itself"
    return "$kSkipped"
  fi
}

# Runs tests under one tool of compute-sanitizer, which makes kernels 10 to 100 times slower: only small tests,
# and none that trace kernels, because only one tool can use CUPTI. torch's allocator would round sizes up and
# hand out used memory again, which hides accesses beyond the end and reads of memory that was never written.
sanitize() {
  local line program filter tool=compute-sanitizer ran=0 cases=Cases/Executors.AgreeOverWholeEpisodes
  local tests=(
    "test.kernels Kernels/OnGpu.*"
    "test.parity $cases/cartpole_fixed:$cases/tag_gridworld_fixed:$cases/tag_almost_48_KiB"
    "test.policy Linear.*"
  )
  command -v "$tool" >/dev/null || tool=/usr/local/cuda/bin/compute-sanitizer
  if [[ ! -x $(command -v "$tool") ]]; then
    echo "there is no compute-sanitizer here"
    return "$kSkipped"
  fi
  for line in "${tests[@]}"; do
    read -r program filter <<<"$line"
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 MKL_CBWR=AVX2,STRICT "$tool" --tool "$1" --error-exitcode 9 \
      "$build_dir/tests/$program" --gtest_filter="$filter" 2>&1 | tee "$work/sanitize.out"
    local status=${PIPESTATUS[0]}
    ((status == 0)) || return "$status"
    grep -qE '\[  PASSED  \] [1-9]' "$work/sanitize.out" && ran=$((ran + 1))
  done
  if ((ran < ${#tests[@]})); then
    echo "in $((${#tests[@]} - ran)) of ${#tests[@]} programs no test ran"
    return "$kSkipped"
  fi
  echo "$ran programs without a finding"
}

parity() {
  "$program" check --env "$1" --device cuda --seconds 4 --steps "$check_steps"
}

bench() {
  local name=$1
  shift
  "$program" bench --device cuda --json "$@" >"$work/bench_$name.json" || return
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
  if [[ $device != cuda ]]; then
    echo "the emulated GPU stands in for a GPU"
    return "$kSkipped"
  fi
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
}

build_all() { ./wd build --tests; }

export build_dir device program check_steps work kSkipped

# --- the steps to run --------------------------------------------------------------------------------------

# Limits are about twice the expected times.
has() { [[ ,$parts, == *,$1,* ]]; }

step gpu 10 sees_gpu
[[ ! $build ]] || step build 600 build_all
if has tests; then
  for test in tests/*/*_gpu_test.{cpp,py}; do
    name=$(basename "${test%.*}") test=${test#tests/}
    step "$name" 66 gpu_test "${test%.cpp}"  # as CMake names them
  done
  for env in cartpole tag_gridworld simple_tag tag_continuous; do step "parity_$env" 12 parity "$env"; done
fi
# The main benchmark: 5 taggers and 100 runners with full observation, A2C, two policies of 2 x 256 units.
headline=(--env tag_continuous --num_envs 2048 --seconds 3 --set policy.tagger.algorithm=A2C --set policy.runner.algorithm=A2C)
[[ $device == cuda ]] || headline=("${headline[@]:0:3}" 2 --seconds 0.1 "${headline[@]:6}" --set env.num_taggers=1 --set env.num_runners=3)
if has bench; then
  for mode in env act train; do step "bench_$mode" 30 bench "$mode" --mode "$mode" "${headline[@]}"; done
  for mode in env act train; do
    step "bench_bf16_$mode" 30 bench "bf16_$mode" --mode "$mode" "${headline[@]}" --set trainer.precision=bf16
  done
  step bench_table_train 30 bench table_train --mode train "${headline[@]}" --set trainer.observations=table
fi
if has peers; then step peers 150 peers; fi
if has sanitize; then
  for tool in memcheck racecheck initcheck synccheck; do step "$tool" 120 sanitize "$tool"; done
fi
[[ ! $dry_run ]] || exit 0

python3 tests/bench/gpu_report.py --work "$work" --device "$device" --out "$out" || exit 1
if cut -f2 "$work/steps.tsv" | grep -qvE '^(passed|skipped)$'; then exit 1; fi
if cut -f2 "$work/steps.tsv" | grep -q '^skipped$'; then exit 3; fi
