"""Runs the program as users do."""

import os
import subprocess


# A build with a sanitizer reserves most of the address space, and reports errors of its own on stderr.
SANITIZED = "WD_SLOWDOWN" in os.environ


def wdtrain(*arguments, timeout=120, **settings):
    command = [os.environ["WDTRAIN"], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **settings)


class OnDemand:
    """A folder whose entries are made when a test first names them: make(name, path)."""

    def __init__(self, place, make):
        self.place, self._make, self._made = place, make, set()

    def __truediv__(self, name):
        if name not in self._made:
            self._make(name, self.place / name)
            self._made.add(name)
        return self.place / name


def output(*arguments, **settings):
    """stdout of a run that must succeed."""
    done = wdtrain(*arguments, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout
