#!/usr/bin/env bash
# gpu.sh: tests and benchmarks on a machine with a GPU, the most valuable first, in parts of at most nine minutes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: tools/bench/gpu.sh [--dry_run] [--device cuda|emulated] [--build_dir DIR] [--no_build] [--call 1|2] [--parts LIST]
                          [--out FOLDER] [--work FOLDER] [--seconds S] [--again]

  --dry_run         print the steps and their limits, run nothing
  --device emulated the emulated GPU stands in, with small games: to try the script. Its figures are no GPU's,
                    and its files say so
  --build_dir DIR   default build
  --no_build        take what is in DIR, for example from gpu_pack.sh
  --call 1          where time on a GPU is short, two calls that take at most 14 minutes together. The first measures: parts
                    kernels,profile,sweep,small
  --call 2          the second tests, and trains what no GPU has trained: parts check,play
  --parts LIST      some of kernels,profile,sweep,small,check,play,peers,bench,tests,learn,sanitize,install (all of them, in
                    this order); each takes at most nine minutes
  --out FOLDER      of DATE-gpu.json, .md and .log, written again after each step; default docs/benchmarks
  --work FOLDER     of logs and results; default DIR/gpu_results. A later call with the same commit and device leaves out the
                    steps that have passed, so a call that is cut off costs only its last step
  --seconds S       of all steps of this call together (3600)
  --again           forget earlier results

If the variable OUT names a folder, OUT/gpu.tar holds all results too, written again after each step.
Tests run beside each other where there are cores for it, figures are measured alone.
Each step has its own time limit; one that fails does not keep the others from running. A step that could not do its work,
because a tool or a GPU is missing, is listed as skipped with the reason.
Exit: 0 all steps passed, 1 a step failed or found no time, 3 none failed but some were skipped, 2 wrong usage.
TEXT
}

readonly kCalls=(kernels,profile,sweep,small check,play)
readonly kParts=${kCalls[0]},${kCalls[1]},peers,bench,tests,learn,sanitize,install
dry_run='' device=cuda build_dir=build build=1 parts=$kParts call='' out=docs/benchmarks work='' seconds=3600 again=''
while (($#)); do
  case $1 in
    --dry_run) dry_run=1 ;;
    --no_build) build='' ;;
    --again) again=1 ;;
    --device | --build_dir | --parts | --call | --out | --work | --seconds)
      [[ $# -ge 2 ]] || { usage >&2; exit 2; }
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "gpu.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if [[ $call =~ ^[12]$ ]]; then parts=${kCalls[call - 1]}; fi
if [[ ! $device =~ ^(cuda|emulated)$ || ! $call =~ ^[12]?$ || ! $seconds =~ ^[0-9]+$ || ! ,$parts =~ ^(,(${kParts//,/|}))+$ ]]; then
  usage >&2
  exit 2
fi
[[ ! -d .venv/bin ]] || export PATH=$PWD/.venv/bin:$PATH
program=$build_dir/wdtrain check_steps=300 python=${WD_PYTHON:-python3}
[[ $device == cuda ]] || program=${program}_emulated check_steps=20
work=${work:-$build_dir/gpu_results}
side_by_side=$((($(nproc) + 3) / 4))
commit=${WD_COMMIT:-$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)}

# --- steps -------------------------------------------------------------------------------------------------

readonly kSkipped=77  # a step's exit status where it could not do its work; its last line is the reason

# step NAME LIMIT COMMAND...: runs COMMAND, which may be a shell function, and writes NAME, outcome, seconds,
# command and last output line to steps.tsv, which replaces what an earlier call wrote of this step.
step() {
  wait  # for the steps beside each other
  run_step "$@"
}

# The same for a step without figures: it runs beside the others of its kind, at most one for each four cores.
step_beside() {
  while (($(jobs -rp | wc -l) >= side_by_side)); do wait -n; done
  if [[ $dry_run ]]; then run_step "$@"; else run_step "$@" & fi
}

run_step() {
  local name=$1 limit=$(($2 * ${WD_SLOWDOWN:-1})) left=$((seconds - SECONDS)) begin status outcome
  shift 2
  if [[ $dry_run ]]; then
    printf '%-22s %4s s  %s\n' "$name" "$limit" "$*"
    return
  fi
  if grep -qP "^$name\tpassed\t" "$work/steps.tsv"; then return; fi
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
  (
    flock 9
    { grep -vP "^$name\t" "$work/steps.tsv"; printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$outcome" $((SECONDS - begin)) "$*" "$last"; } >"$work/steps.new"
    mv "$work/steps.new" "$work/steps.tsv"
    printf '%-22s %-20s %4s s  %s\n' "$name" "$outcome" $((SECONDS - begin)) "$last"
    if [[ $outcome != passed && $outcome != skipped ]]; then tail -15 "$log" | sed 's/^/    | /'; fi
    report >/dev/null
    carry_back
  ) 9>"$work/lock"
}

report() { "$python" tools/bench/gpu_report.py --work "$work" --device "$device" --commit "$commit" --out "$out"; }

# All results so far in one file, on a machine from which files come back only in $OUT.
carry_back() {
  [[ -d ${OUT:-} ]] || return 0
  tar cf "$OUT/gpu.new" --transform='s,^,gpu/,' -C "$(realpath "$out")" . -C "$(realpath "$work")" --exclude='*.new' --exclude=lock . &&
    mv "$OUT/gpu.new" "$OUT/gpu.tar"
}

# Runs one file of tests that need a GPU: FOLDER/NAME_gpu_test.cpp or .py. A test that skips itself has not passed.
gpu_test() {
  local found=$work/${1//\//_}.out status
  if [[ $device == cuda ]]; then export WD_NEED_GPU=1; fi  # a test that finds no GPU fails
  if [[ $1 == install/* && ! -f $build_dir/CMakeCache.txt ]]; then
    echo "this build was carried here: there is nothing to install"
    return "$kSkipped"
  fi
  if [[ $1 == *.py ]]; then
    MKL_CBWR=AVX2,STRICT WDTRAIN=$PWD/$build_dir/wdtrain WD_BUILD_DIR=$PWD/$build_dir WD_SOURCE_DIR=$PWD PYTHONPATH=$PWD/tests PYTHONDONTWRITEBYTECODE=1 \
      "$python" -m pytest -q -p no:cacheprovider "tests/$1" 2>&1 | tee "$found"
  else
    MKL_CBWR=AVX2,STRICT "$build_dir/tests/test.${1%%/*}" --file="$1" 2>&1 | tee "$found"
  fi
  status=${PIPESTATUS[0]}
  ((status == 0)) || return "$status"
  if grep -qE '\[  SKIPPED \]|[0-9]+ skipped' "$found"; then
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
      "$build_dir/tests/$program" --gtest_filter="$filter" 2>&1 | tee "$work/sanitize_$1.out"
    local status=${PIPESTATUS[0]}
    ((status == 0)) || return "$status"
    grep -qE '\[  PASSED  \] [1-9]' "$work/sanitize_$1.out" && ran=$((ran + 1))
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
  "$program" bench --device cuda --json "$@" >"$work/bench_$name.new" || return
  mv "$work/bench_$name.new" "$work/bench_$name.json"
  head -c 300 "$work/bench_$name.json"
}

# Each kernel on its own. The emulated GPU has no kernels_bench: there only the program is tried.
kernels() {
  local only=(--benchmark_filter=/cuda --benchmark_min_time=0.05)
  [[ $device == cuda ]] || only=(--benchmark_filter=sample/cartpole/cpu --benchmark_min_time=0.001)
  "$build_dir/tests/kernels_bench" "${only[@]}" --benchmark_out="$work/kernels.new" --benchmark_out_format=json || return
  mv "$work/kernels.new" "$work/kernels.json"
}

# Times of kernels within four iterations, between which nothing is evaluated.
profile() {
  local name=$1
  shift
  "$program" --device cuda --profile=4 --set eval.every=0 --set saving.metrics_log_freq=100 --quiet --run_dir "$work/profile_$name" "$@" || return
  cp "$work/profile_$name/profile.json" "$work/profile_$name.json"
  rm -rf "${work:?}/profile_$name"
}

# A short training, whose run stays for the steps behind it.
train() {
  local name=$1
  shift
  rm -rf "${work:?}/play_$name"
  "$program" --device cuda --set eval.every=0 --quiet --run_dir "$work/play_$name" "$@" || return
  tail -1 "$work/play_$name/metrics.jsonl" | head -c 300
}

# What the kernels that take longest wait for.
stalls() {
  local ncu
  ncu=$(command -v ncu || echo /usr/local/cuda/bin/ncu)
  if [[ $device != cuda || ! -x $ncu ]]; then
    echo "there is no ncu, or no GPU"
    return "$kSkipped"
  fi
  "$ncu" --target-processes all --kernel-name-base demangled --kernel-name regex:'backward_rows|forward_rows|product_of_rows|staged_loss|staged_sample|step_replicas' --launch-skip 40 --launch-count 24 \
    --section SpeedOfLight --section Occupancy --section WarpStateStats --csv "$program" "${game[@]}" "${size[@]}" $(precision bf16) --device cuda \
    --set trainer.cuda_graphs=false --set eval.every=0 --train_batch_size 8192 --total_steps 16384 --quiet --run_dir "$work/stalls" >"$work/stalls.csv"
}

# Trains a row of docs/learning with five seeds at the same time, and judges it by its target.
learn() {
  if [[ $device != cuda ]]; then
    echo "the emulated GPU is too slow to learn"
    return "$kSkipped"
  fi
  WDTRAIN=$PWD/$program "$python" tests/learn/rows.py run "$1" --seeds 1 2 3 4 5 --device cuda --together 5 --json "$work/learn_$1.json"
}

# One comparison, of the training that both sides write alike, with products of both sides in the precision $1.
peers() {
  local python_of_peers=.venv-peers/bin/python kind=gpu
  [[ -x $python_of_peers ]] || python_of_peers=$python
  if ! "$python_of_peers" -c 'import jax, optax' 2>/dev/null; then
    echo "the peers are not installed: tools/bench/peers/setup.sh"
    return "$kSkipped"
  fi
  [[ $device == cuda ]] || kind=cpu
  WDTRAIN=$PWD/$program "$python_of_peers" tools/bench/peers/run.py --"$kind" --pairs 2 --seconds 0.5 --scripts tag_continuous_jax \
    --only 'full, train, activations kept' --precision "$1" --out "$work/peers_$1.json" || return
  if grep -q '"comparisons": {}' "$work/peers_$1.json"; then
    echo "not run: $(grep -A 1 '"not_run": {' "$work/peers_$1.json" | tail -1)"
    return "$kSkipped"
  fi
}

sees_gpu() {
  if [[ $device != cuda ]]; then
    echo "the emulated GPU stands in for a GPU"
    return "$kSkipped"
  fi
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
}

# The first use reads 3 GB of libraries from the disk.
warm_up() {
  if [[ $device != cuda ]]; then
    echo "there is no GPU to warm up"
    return "$kSkipped"
  fi
  "$python" -c 'import torch; x = torch.ones(8, device="cuda"); print(torch.cuda.get_device_name(), x.sum().item())'
}

examine() { "$program" doctor; }

build_all() { ./wd build --tests; }

export build_dir device program check_steps work python kSkipped

# --- the steps to run --------------------------------------------------------------------------------------

if [[ ! $dry_run ]]; then
  mkdir -p "$work" "$out"
  identity="$commit $device"
  if [[ $again || $(cat "$work/identity" 2>/dev/null) != "$identity" ]]; then
    rm -f "$work"/steps.tsv "$work"/*.json "$work"/*.log
    echo "$identity" >"$work/identity"
    date +%F >"$work/date"  # a later call that continues this one after midnight writes the same files
  fi
  touch "$work/steps.tsv"
fi

has() { [[ ,$parts, == *,$1,* ]]; }

# The main benchmark: 5 taggers and 100 runners with full observation, A2C, two policies of 2 x 256 units.
game=(--config configs/tag_continuous_perceptron.yaml --set policy.tagger.algorithm=A2C --set policy.runner.algorithm=A2C --set trainer.observations=rows)
shipped=(--env tag_continuous)  # networks over the nearest agents, PPO with several epochs
kept=(--set policy.tagger.reuse_activations=true --set policy.runner.reuse_activations=true)
size=(--num_envs 2048) half_size=(--num_envs 1024) measured=(--seconds 1) trained=(--train_batch_size 204800 --total_steps 1638400)
first_envs=512..4096 chunks=131072,65536,16384 played=(--max_seconds 8)
if [[ $device != cuda ]]; then
  game+=(--set env.num_taggers=1 --set env.num_runners=3)
  shipped+=(--set env.num_taggers=1 --set env.num_runners=3)
  size=(--num_envs 2) half_size=(--num_envs 1) measured=(--seconds 0.1) trained=(--train_batch_size 40 --total_steps 320)
  first_envs=2..4 chunks=16384,131072
  played=(--num_envs 4 --train_batch_size 80 --total_steps 160)
fi
bench_step() { step "bench_$1" "$2" bench "$1" "${game[@]}" "${size[@]}" "${measured[@]}" "${@:3}"; }
sweep_step() { step "sweep_$1" "$2" bench "sweep_$1" "${game[@]}" "${measured[@]}" --mode train "${@:3}" --sweep "trainer.chunk_rows=$chunks"; }
precision() { echo "--set trainer.precision=$1"; }

[[ ! $build ]] || step build 600 build_all
if has kernels; then
  step gpu 10 sees_gpu
  step warm_up 20 warm_up
  step kernels 30 kernels
fi
if has profile; then
  step profile_bf16 20 profile bf16 "${game[@]}" "${size[@]}" "${trained[@]}" $(precision bf16)
  step profile_tf32 20 profile tf32 "${game[@]}" "${size[@]}" "${trained[@]}" $(precision tf32)
  for kind in tf32 bf16; do
    step "profile_shipped_$kind" 20 profile "shipped_$kind" "${shipped[@]}" "${size[@]}" "${trained[@]}" $(precision $kind)
    step "profile_table_$kind" 20 profile "table_$kind" "${game[@]}" --set trainer.observations=table "${size[@]}" "${trained[@]}" $(precision $kind)
  done
  step stalls 50 stalls
fi
if has sweep; then
  sweep_step bf16 30 "${size[@]}" $(precision bf16)
  sweep_step kept_bf16 30 "${size[@]}" $(precision bf16) "${kept[@]}"
  # In tf32, kept activations of 2,048 replicas need more memory than an H100 has: half as many are compared.
  sweep_step tf32 30 "${half_size[@]}" $(precision tf32)
  sweep_step kept_tf32 30 "${half_size[@]}" $(precision tf32) "${kept[@]}"
  step sweep_table 30 bench sweep_table "${game[@]}" "${size[@]}" "${measured[@]}" --mode train --set trainer.observations=table --sweep trainer.precision=tf32,bf16
  step sweep_table_chunks 30 bench sweep_table_chunks "${game[@]}" "${size[@]}" "${measured[@]}" --mode train --set trainer.observations=table $(precision bf16) \
    --sweep trainer.chunk_rows=131072,524288
  step sweep_shipped 30 bench sweep_shipped "${shipped[@]}" "${size[@]}" "${measured[@]}" --mode train --sweep trainer.precision=tf32,bf16
fi
if has small; then  # games whose time is that of starting kernels, without the start of the program
  for name in cartpole pendulum_sac cartpole_dqn pendulum_td3_large; do
    step "bench_$name" 12 bench "$name" --config "configs/$name.yaml" "${measured[@]}" --mode train
  done
  bench_step act_bf16 12 --mode act $(precision bf16)
  step start 20 train start --config configs/cartpole.yaml --total_steps 1024
fi
if has check; then
  step doctor 15 examine
  step_beside twins_gpu_test 20 gpu_test kernels/twins_gpu_test.cpp
  step_beside linear_gpu_test 20 gpu_test policy/linear_gpu_test.cpp
  step_beside executor_gpu_test 20 gpu_test parity/executor_gpu_test.cpp
  step_beside graph_gpu_test 60 gpu_test trainer/graph_gpu_test.cpp
fi
if has play; then  # what no GPU has run yet
  for name in simple_spread_mappo simple_spread_qmix simple_spread_pqn_qmix; do
    step "play_$name" 20 train "$name" --config "configs/$name.yaml" "${played[@]}"
  done
  step play_alone 20 train alone --env simple_tag "${played[@]}"
  step play_opponent 20 train opponent --env simple_tag "${played[@]}" --set "opponents={adversary: [self, $work/play_alone]}"
  step play_pool 20 train pool --env tag_gridworld "${played[@]}" --set 'opponents={runner: [{pool: {size: 4, every: 20k}, share: 0.5}, self]}'
  [[ $device != cuda ]] || step profile_gru 30 profile gru --env cartpole --num_envs 32 --train_batch_size 4096 --total_steps 40960 --set 'policy.shared.model={type: gru, width: 64}'
fi
if has peers; then for kind in fp32 tf32; do step "peers_$kind" 90 peers "$kind"; done; fi
if has bench; then
  bench_step env 45 --mode env
  for kind in tf32 bf16 fp32; do bench_step "train_$kind" 60 --mode train $(precision $kind); done
  bench_step train_table 60 --mode train --set trainer.observations=table $(precision tf32)
  bench_step env_bf16 30 --mode env $(precision bf16)
  bench_step act_tf32 40 --mode act $(precision tf32)
  step bench_shipped_tf32 60 bench shipped_tf32 "${shipped[@]}" "${size[@]}" "${measured[@]}" --mode train $(precision tf32)
  step sweep_envs 100 bench sweep_envs "${game[@]}" "${measured[@]}" --mode env --sweep "num_envs=$first_envs"
fi
if has tests; then
  step kernels_gpu_test 60 gpu_test profile/kernels_gpu_test.cpp  # measures, so it runs alone
  step_beside commands_gpu_test 160 gpu_test cli/commands_gpu_test.py
  step_beside nccl_cuda_gpu_test 20 gpu_test distributed/nccl_cuda_gpu_test.cpp
  for env in cartpole tag_gridworld simple_tag tag_continuous; do step_beside "parity_$env" 25 parity "$env"; done
fi
if has learn; then
  for row in pendulum_td3_large pendulum_sac cartpole_dqn cartpole_ppo pendulum_td3; do step "learn_$row" 60 learn "$row"; done
  step learn_tag_continuous 240 learn tag_continuous
fi
if has sanitize; then
  for tool in memcheck racecheck initcheck synccheck; do step_beside "$tool" 130 sanitize "$tool"; done
fi
if has install; then step project_gpu_test 300 gpu_test install/project_gpu_test.py; fi
[[ ! $dry_run ]] || exit 0

wait
report || exit 1
if cut -f2 "$work/steps.tsv" | grep -qvE '^(passed|skipped)$'; then exit 1; fi
if cut -f2 "$work/steps.tsv" | grep -q '^skipped$'; then exit 3; fi
