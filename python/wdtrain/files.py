"""Files that other programs or people wrote: they are read and written so that bad ones are an error of one line.

A path is a folder that the caller named and, below it, names that nobody chose: `read(run, "weights", "p.safetensors")`.
Links are followed on the way to the first only.
"""

import contextlib
import json
import os
import secrets
import stat
import sys
import warnings

import numpy

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class RunError(Exception):
    """A folder or file is not what was asked for. The message says which, and what to do."""


class UsageError(ValueError):
    """A setting is wrong. The message says which, and what to do."""


@contextlib.contextmanager
def parsing(path):
    """Turns whatever a parser raises on a damaged file into a RunError that names the file."""
    try:
        yield
    except (RunError, KeyboardInterrupt, GeneratorExit):
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")[:200]
        raise RunError(f"{path}: damaged, or not such a file: {type(error).__name__}: {reason}") from error


def require_finite(path, tensors):
    for name, tensor in tensors.items():
        if not numpy.isfinite(tensor).all():
            raise RunError(f"{path}: tensor {name} has numbers that are NaN or infinite")


def command(work, *arguments):
    """Runs a command-line tool: errors and warnings are one line each, Ctrl-C is silent."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
            work(*arguments)
    except (RunError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


@contextlib.contextmanager
def _inside(folder, names, create=False):
    """A descriptor of the folder that holds the last of the names."""
    path, descriptor = folder, os.open(folder, _FOLDER)
    try:
        for name in names[:-1]:
            path = os.path.join(path, name)
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            with _refusing_links(path):
                below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _refusing_links(path):
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if os.path.islink(path):
            raise RunError(f"{path}: is a link, which is not followed inside a run's folder") from error
        raise RunError(f"{path}: {error.strerror}") from error


@contextlib.contextmanager
def opened(folder, *names):
    """A regular file, for reading. Never waits for a FIFO; raises FileNotFoundError if it is missing."""
    path = os.path.join(folder, *names)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if names:
        with _inside(folder, names) as parent, _refusing_links(path):
            descriptor = os.open(names[-1], flags | os.O_NOFOLLOW, dir_fd=parent)
    else:
        descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RunError(f"{path}: is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read(folder, *names):
    with opened(folder, *names) as file, parsing(os.path.join(folder, *names)):
        return file.read()


def read_object(folder, *names):
    """The dictionary that a JSON file holds."""
    path = os.path.join(folder, *names)
    text = read(folder, *names)
    with parsing(path):
        value = json.loads(text)
    if not isinstance(value, dict):
        raise RunError(f"{path}: is not a JSON object")
    return value


def write(data, folder, *names, replace=False):
    """Writes a file as a whole or not at all. `replace` allows a regular file to be there already, and no other."""
    path = os.path.join(folder, *names)
    if not names:
        folder, *names = os.path.split(path)
    with _inside(folder or ".", names, create=True) as parent:
        name, stage = names[-1], f".{names[-1]}.{secrets.token_hex(4)}.tmp"
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISREG(there.st_mode):
                raise RunError(f"{path}: is there, and is not a regular file: remove it, or name another file")
            if not replace:
                raise RunError(f"{path} exists: name another file")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(stage, flags, 0o666, dir_fd=parent), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(stage, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(stage, dir_fd=parent)
            if isinstance(error, OSError):
                raise RunError(f"{path}: cannot be written: {error.strerror}") from error
            raise


class Lines:
    """The lines of a file that another program appends to and, when it resumes, cuts back."""

    def __init__(self, *path):
        self._path, self._end, self._last, self.number = path, 0, b"", 0

    def new(self):
        """A list of (number, line) of about a megabyte that was added since the last call; empty if there is none.

        A line that is being written is left out. If the file was cut meanwhile, it begins with line 1 again.
        """
        try:
            with opened(*self._path) as file:
                file.seek(self._end - len(self._last))
                if file.read(len(self._last)) != self._last:
                    self._end, self._last, self.number = 0, b"", 0
                    file.seek(0)
                lines = file.readlines(1 << 20)
        except FileNotFoundError:
            return []
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        first = self.number + 1
        if lines:
            self._end, self._last = self._end + sum(map(len, lines)), lines[-1]
            self.number += len(lines)
        return list(enumerate(lines, first))
