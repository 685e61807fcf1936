#!/usr/bin/env python3
"""wheel.py: writes dist/wdtrain-VERSION-py3-none-PLATFORM.whl from a build folder. `./wd wheel` calls it.

usage: wheel.py BUILD [DIST]

What `cmake --install` installs lies in wdtrain/torchX.Y/, for the torch of the build. Libraries find those of torch and CUDA in
the packages beside wdtrain.
"""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLATFORM = "manylinux_2_34_x86_64"
PACKAGES = "$ORIGIN/../../.."  # from wdtrain/torchX.Y/lib
RUNPATH = f"$ORIGIN:{PACKAGES}/torch/lib:{PACKAGES}/nvidia/cu13/lib"
BUNDLED = {"libyaml-cpp.so": "libyaml-cpp*"}  # not on every system, and the Debian package with its license
COMPILER = ["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl"]
LEFT_OUT = ("share/man", "share/bash-completion", "share/zsh", "share/fish")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def torch_of(build):
    """The version of torch, and of the CUDA runtime that it needs, as X.Y."""
    cache = (build / "CMakeCache.txt").read_text()
    folder = pathlib.Path(re.search(r"^WD_TORCH_DIR:\w+=(.*)$", cache, re.M)[1])
    told = (folder / "version.py").read_text()
    return re.search(r"__version__ = '(\d+\.\d+)", told)[1], re.search(r"^cuda.* = '(\d+\.\d+)'", told, re.M)[1]


def installed(build, prefix):
    """Installs and strips the build, and brings the libraries that systems lack. Returns the packages of these libraries."""
    run("cmake", "--install", build, "--prefix", prefix, "--strip")
    for folder in LEFT_OUT:
        shutil.rmtree(prefix / folder, ignore_errors=True)
    library = prefix / "lib" / "libwd.so.0"
    for name, path in re.findall(r"(\S+) => (/\S+)", run("ldd", library)):
        if any(name.startswith(bundled) for bundled in BUNDLED):
            shutil.copy(path, prefix / "lib" / name)
            run("strip", prefix / "lib" / name)
    for link in [path for path in (prefix / "lib").iterdir() if path.is_symlink()]:  # a wheel has no links
        target = link.resolve()
        link.unlink()
        if re.search(r"\.so\.\d+$", link.name):
            target.rename(link)
    for file in (prefix / "lib/cmake/wd").glob("wdTargets-*.cmake"):
        file.write_text(re.sub(r"(libwd\w*\.so\.\d+)\.[\d.]+", r"\1", file.read_text()))
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
        for name in ("libwd.so.0", "libwd_cuda.so.0", "libwd_python.so"):  # the program has $ORIGIN/../lib
            if (path := prefix / "lib" / name).exists():
                script.write(f'file(RPATH_SET FILE "{path}" NEW_RPATH "{RUNPATH.replace("$", chr(92) + "$")}")\n')
        script.flush()
        run("cmake", "-P", script.name)


def metadata(project, torch, cuda):
    """METADATA: what pyproject.toml says, and the torch of the build."""
    needs = [*project["dependencies"], f"torch>={torch},<{torch.split('.')[0]}.{int(torch.split('.')[1]) + 1}"]
    extras = {key: value for key, value in project["optional-dependencies"].items() if key != "torch"}
    extras["compile"] = [f"{name}=={cuda}.*" for name in COMPILER]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
             f"License: {project['license']['text']}", f"Requires-Python: {project['requires-python']}", *(f"Requires-Dist: {one}" for one in needs)]
    for extra, packages in extras.items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {one}; extra == "{extra}"' for one in packages)]
    return "\n".join(lines) + "\n"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    dist = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "dist").resolve()
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    torch, cuda = torch_of(build)
    name = f"{project['name']}-{project['version']}"
    tag = f"py3-none-{PLATFORM}"
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder)
        package, info = stage / "wdtrain", stage / f"{name}.dist-info"
        shutil.copytree(ROOT / "python/wdtrain", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        installed(build, package / f"torch{torch}")
        (info / "licenses").mkdir(parents=True)
        shutil.copy(ROOT / "LICENSE", info / "licenses")
        for pattern in BUNDLED.values():
            for file in pathlib.Path("/usr/share/doc").glob(f"{pattern}/copyright"):
                shutil.copy(file, info / "licenses" / file.parent.name)
        (info / "METADATA").write_text(metadata(project, torch, cuda))
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n")
        scripts = "".join(f"{key} = {value}\n" for key, value in project["scripts"].items())
        (info / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
        files = sorted(path for path in stage.rglob("*") if path.is_file())
        record = ""
        for path in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
            record += f"{path.relative_to(stage)},sha256={digest},{path.stat().st_size}\n"
        (info / "RECORD").write_text(f"{record}{info.name}/RECORD,,\n")
        dist.mkdir(parents=True, exist_ok=True)
        wheel = dist / f"{name}-{tag}.whl"
        with zipfile.ZipFile(f"{wheel}.new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in [*files, info / "RECORD"]:
                archive.write(path, path.relative_to(stage))
        os.replace(f"{wheel}.new", wheel)
    print(f"{wheel} {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
