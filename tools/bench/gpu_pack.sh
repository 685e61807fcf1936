#!/usr/bin/env bash
# gpu_pack.sh: carries a finished build to a machine with a GPU on which nothing can be built or installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'TEXT'
usage: tools/bench/gpu_pack.sh [--build_dir DIR] [--out FOLDER] [--emulated]

Writes to FOLDER (.gpu) what that machine needs of the build in DIR (build, made by ./wd build --tests): wdtrain, its libraries,
the test programs of *_gpu_test.cpp, kernels_bench, and Debian's libraries that it may lack. The machine needs x86-64 with AVX2,
glibc 2.35, an NVIDIA driver, and a python3 with the same version of torch (with CUDA), numpy and pytest; no network, package
manager, toolkit or root. Copy FOLDER into the root of a copy of the tracked files, in any place, and run there:

    . FOLDER/there.sh && tools/bench/gpu.sh --no_build --parts check,bench --seconds 540 --out RESULTS

--emulated adds wdtrain_emulated, to try the pack without a GPU.
TEXT
}

build=build out=.gpu emulated=''
while (($#)); do
  case $1 in
    --emulated) emulated=1 ;;
    --build_dir) build=${2:?"$(usage)"} && shift ;;
    --out) out=${2:?"$(usage)"} && shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "gpu_pack.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
python=$(sed -n 's/^WD_PYTHON:FILEPATH=//p' "$build/CMakeCache.txt")
programs=(wdtrain tests/kernels_bench)
for folder in $(printf '%s\n' tests/*/*_gpu_test.cpp | cut -d/ -f2 | sort -u); do programs+=("tests/test.$folder"); done
[[ ! $emulated ]] || programs+=(wdtrain_emulated)
for program in "${programs[@]}"; do
  [[ -x $build/$program ]] || { echo "gpu_pack.sh: there is no $build/$program: run ./wd build --tests" >&2; exit 1; }
done

rm -rf "$out"
mkdir -p "$out/build/tests" "$out/lib"
for program in "${programs[@]}"; do cp "$build/$program" "$out/build/$program"; done
cp -P "$build"/libwd*.so* "$out/build/"
find "$out/build" -type f -exec strip --strip-unneeded {} +
# All other libraries are the C library's or torch's.
for library in $(ldd "$out/build/libwd.so" "$out/build/tests/kernels_bench" | awk '$2 == "=>" {print $3}' | sort -u); do
  case $library in
    *libyaml-cpp* | *libspdlog* | *libfmt* | *libxxhash* | *libbenchmark*) cp -L "$library" "$out/lib/" ;;
  esac
done
find "$out/build" -type f -exec gzip {} +
"$python" -c 'import torch; print(torch.__version__, torch.version.git_version)' >"$out/torch"
git describe --always --dirty --abbrev=12 >"$out/commit" 2>/dev/null || echo unknown >"$out/commit"

# Puts the carried build in its place, and finds torch's libraries and those of the pack.
cat >"$out/there.sh" <<'THERE'
# there.sh: source it in the root of the copy, on the machine with a GPU.
WD_PACK=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WD_PACKAGES=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || return 1
if [ "$(python3 -c 'import torch; print(torch.__version__, torch.version.git_version)')" != "$(cat "$WD_PACK/torch")" ]; then
  echo "there.sh: the build needs torch $(cat "$WD_PACK/torch")" >&2
  return 1
fi
mkdir -p build && cp -a "$WD_PACK/build/." build/ && find build -name '*.gz' -exec gunzip -f {} + || return 1
export LD_LIBRARY_PATH=$PWD/build:$WD_PACK/lib:$WD_PACKAGES/torch/lib:$WD_PACKAGES/nvidia/cu13/lib
export WD_COMMIT WD_PYTHON=python3
WD_COMMIT=$(cat "$WD_PACK/commit")
THERE
echo "$out: $(du -sm "$out" | cut -f1) MB, commit $(cat "$out/commit"), torch $(cut -d' ' -f1 "$out/torch")"
