"""No program or library that is built looks for its libraries in the working folder, where a stranger may have put
some. tests/install has the same test for an installation."""

import os
import shutil
import subprocess

import pytest

from build.run_paths import elf_files, elements, unsafe

BUILD = os.environ["WD_BUILD_DIR"]
pytestmark = pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf (Debian's package binutils)")


def test_all_that_is_built():
    names = {path.name for path in elf_files(BUILD)}
    assert {"wdtrain", "faulty", "test.kernels"} <= names and any(name.startswith("libwd.so") for name in names), names
    assert unsafe(BUILD) == {}


def test_an_empty_element_is_noticed(tmp_path):
    for path in ("/usr/lib:", "lib", "$ORIGIN"):
        subprocess.run(["gcc", "-x", "c", "-", "-o", tmp_path / path.replace("/", "_"), f"-Wl,-rpath,{path}"], input="int main() {}", text=True, check=True)
    assert sorted(unsafe(tmp_path).values()) == [[""], ["lib"]]


def test_torchs_cuda_libraries_precede_a_toolkits():
    """libwd_cuda asks for cuBLASLt before torch's libraries do, and torch then uses the same one."""
    for path in elf_files(BUILD):
        if path.name.startswith("libwd_cuda.so"):
            folders = elements(path)
            ours = [k for k, folder in enumerate(folders) if folder.endswith("nvidia/cu13/lib")]
            assert ours and not any("cuda" in folder for folder in folders[: ours[0]]), folders


def test_a_library_in_the_working_folder_is_not_loaded(tmp_path):
    source = "#include <stdio.h>\n__attribute__((constructor)) static void load(void) { puts(\"planted\"); }"
    for name in ("libz.so.1", "libxxhash.so.0", "libyaml-cpp.so.0.7"):
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / name], input=source, text=True, check=True)
    done = subprocess.run([os.environ["WDTRAIN"], "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "planted" not in done.stdout, done.stdout + done.stderr
