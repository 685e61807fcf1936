"""Runs the program as users do."""

import os
import subprocess


# A build with a sanitizer reserves most of the address space, and reports errors of its own on stderr.
SANITIZED = "WD_SLOWDOWN" in os.environ


def wdtrain(*arguments, timeout=120, **settings):
    command = [os.environ["WDTRAIN"], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **settings)


class Runs:
    """A folder of runs that are trained when a test first names them: train(name, folder)."""

    def __init__(self, place, train):
        self.place, self._train = place, train

    def __truediv__(self, name):
        if not (self.place / name).exists():
            self._train(name, self.place / name)
        return self.place / name


def output(*arguments, **settings):
    """stdout of a run that must succeed."""
    done = wdtrain(*arguments, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout
