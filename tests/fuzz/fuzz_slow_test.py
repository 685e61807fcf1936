# fuzz_slow_test.py: libFuzzer on the parsers of untrusted bytes, starting from the stored corpora, for one
# minute each.
#
# WD_FUZZ_SECONDS sets another time. Store inputs that fail in tests/fuzz/corpus/, together with the change
# that fixes them.
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = os.environ.get("WD_FUZZ_SECONDS", "60")
FLAGS = ["-std=c++20", "-g", "-O1", "-fsanitize=fuzzer,address,undefined,float-cast-overflow", "-fno-sanitize-recover=all",
         "-I.", "-Iinclude", '-DWD_VERSION="fuzz"']
# Everything else comes from the library, which is not instrumented. Its strings and lists would look like
# overflows of containers.
LIBRARY = [f"-L{os.environ['WD_BUILD_DIR']}", "-lwd", f"-Wl,-rpath,{os.environ['WD_BUILD_DIR']}", "-Wl,--allow-shlib-undefined"]
OPTIONS = dict(os.environ, ASAN_OPTIONS="detect_container_overflow=0:detect_leaks=0")
FILES = ["src/base/name.cpp", "src/base/files.cpp", "src/base/json.cpp"]
TARGETS = {  # the sources that are instrumented
    "config": (["src/config/*.cpp", "src/base/name.cpp", "src/base/suggest.cpp", "src/base/utf8.cpp"], ["-lyaml-cpp"]),
    "manifest": (["src/checkpoint/manifest.cpp", *FILES], ["-lxxhash"]),
    "safetensors": (["src/checkpoint/safetensors*.cpp", "src/base/atomic_file.cpp", *FILES], []),
}


@pytest.fixture(scope="module", autouse=True)
def fuzzer(tmp_path_factory):
    empty = tmp_path_factory.mktemp("fuzzer") / "empty.cpp"
    empty.write_text('extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n')
    command = ["clang++", "-fsanitize=fuzzer,address", str(empty), "-o", str(empty.with_suffix(""))]
    if shutil.which("clang++") is None or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no clang++ with libFuzzer: apt-get install clang libclang-rt-dev")


@pytest.mark.parametrize("target", TARGETS)
def test_any_bytes(target, tmp_path):
    patterns, libraries = TARGETS[target]
    sources = [f"tests/fuzz/{target}_fuzz.cpp"] + sorted(str(path.relative_to(ROOT)) for p in patterns for path in ROOT.glob(p))
    program, corpus = str(tmp_path / target), shutil.copytree(ROOT / "tests/fuzz/corpus" / target, tmp_path / "corpus")
    subprocess.run(["clang++", *FLAGS, *sources, *libraries, *LIBRARY, "-o", program], cwd=ROOT, check=True)
    done = subprocess.run([program, f"-max_total_time={SECONDS}", "-timeout=5", "-rss_limit_mb=2048", "-print_final_stats=1",
                           f"-artifact_prefix={tmp_path}/finding-", str(corpus)], capture_output=True, text=True, errors="replace", env=OPTIONS)
    print(done.stderr[-2000:])
    findings = {str(path): path.read_bytes() for path in tmp_path.glob("finding-*")}
    assert done.returncode == 0 and not findings, f"{findings}\n{done.stderr[-8000:]}"
