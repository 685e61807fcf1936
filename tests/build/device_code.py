"""Registers, memory and stores of the compiled kernels, as cuobjdump reads them from the object files.

    python3 tests/build/device_code.py [BUILD_DIR]     prints a table of all kernels
"""

import dataclasses
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys


def find_tool():
    """Path of cuobjdump from the toolkit or from the wheel nvidia-cuda-cuobjdump of this Python; None if
    there is none."""
    wheels = [pathlib.Path(path) / "nvidia/cu13/bin" for path in sys.path]
    return shutil.which("cuobjdump", path=os.pathsep.join(map(str, [os.environ.get("PATH", ""), "/usr/local/cuda/bin", *wheels])))


@functools.cache
def dump(option, path):
    tool = find_tool()
    # cuobjdump runs nvdisasm, which is in the same folder.
    beside = {**os.environ, "PATH": os.path.dirname(tool) + os.pathsep + os.environ.get("PATH", "")}
    return subprocess.run([tool, option, path], check=True, capture_output=True, text=True, env=beside).stdout


@dataclasses.dataclass
class Kernel:
    symbol: str
    file: pathlib.Path
    registers: int
    # [bytes] of local memory per thread: arrays indexed at run time, spilled registers
    stack: int
    shared: int  # [bytes], static

    @property
    def name(self):
        """A short name, such as sample_row, decide or step_replicas<Cartpole, 8, true>: that of the body of one_kernel or several_kernel."""
        plain = subprocess.run(["c++filt", self.symbol], check=True, capture_output=True, text=True).stdout
        plain = plain.replace("(anonymous namespace)::", "").replace("wd::cuda::", "")
        item = re.search(r"run_item<&?\(?(?:void )?(?:wd::)?(\w+(?:<.*?>(?=\())?)", plain)
        step = re.search(r"step_replicas<[^>]*>", plain)
        body = re.search(r"_kernel<&\(?(?:void )?(\w+(?:<.*?>(?=\())?)", plain)
        other = re.search(r"(\w+(?:<.*?>)?)\((?!Into)", plain)
        return item[1] if item else step[0] if step else body[1] if body else other[1] if other else plain.strip()

    @property
    def is_several(self):
        """Whether it runs for several members of a population."""
        return "several_kernel" in self.symbol


def objects(build):
    return sorted((pathlib.Path(build) / "CMakeFiles/wd.dir").rglob("*.cu.o"))


def kernels(path):
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", dump("--dump-resource-usage", path))
    return [Kernel(symbol, path, int(registers), int(stack) + int(local), int(shared)) for symbol, registers, stack, shared, local in found]


def functions(text, begins):
    """Maps each symbol to the text of its function; the regular expression `begins` matches a function's
    first line."""
    parts = re.split(begins, text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def sass(path):
    return functions(dump("-sass", path), r"^\s*Function : (\S+)$")


def ptx(path):
    return functions(dump("-ptx", path), r"^(?:\.weak |\.visible )*\.entry (\w+)\($")


def main():
    print("| kernel | registers | for several members | static shared memory [bytes] | stack [bytes] | STG.128 |\n|---|---|---|---|---|---|")
    rows = []
    for path in objects(sys.argv[1] if len(sys.argv) > 1 else "build"):
        code = sass(path)
        several = {kernel.name: kernel.registers for kernel in kernels(path) if kernel.is_several}
        for kernel in kernels(path):
            if not kernel.is_several:
                wide = len(re.findall(r"\bSTG\.E(?:\.\w+)*\.128\b", code[kernel.symbol]))
                rows.append(f"| `{kernel.name}` | {kernel.registers} | {several.get(kernel.name, '-')} | {kernel.shared} | {kernel.stack} | {wide} |")
    print("\n".join(sorted(rows)))


if __name__ == "__main__":
    main()
