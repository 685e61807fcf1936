"""What a wheel of wdtrain brings besides Python: torchX.Y/ in this package, with the program and libraries for that torch."""

import importlib.metadata
import pathlib
import sys

_PACKAGE = pathlib.Path(__file__).absolute().parent


def prefix():
    """The folder for the torch that is installed, which is not imported. None if this package does not come from a wheel.

    Raises ImportError, in one line, if the wheel is for other versions of torch.
    """
    folders = {folder.parent.name.removeprefix("torch"): folder.parent for folder in _PACKAGE.glob("torch*/bin")}
    try:
        version = importlib.metadata.version("torch") if folders else ""
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    minor = ".".join(version.split(".")[:2])
    if folders and minor not in folders:
        known = ", ".join(sorted(folders))
        raise ImportError(f"wdtrain works with torch {known}, and {version} is installed: run {sys.executable} -m pip install 'torch=={max(folders)}.*'")
    return folders.get(minor)


def library():
    """The path of libwd_python.so, which steps environments."""
    folder = prefix()
    found = folder / "lib" / "libwd_python.so" if folder else _PACKAGE / "libwd_python.so"
    if not found.exists():
        raise ImportError(f"{found} is missing. Environments need the compiled part of wdtrain: run ./wd python in the project's folder")
    return str(found)
