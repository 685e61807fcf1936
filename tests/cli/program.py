"""Runs the program as users do."""

import os
import subprocess


def wdtrain(*arguments, timeout=120, **settings):
    command = [os.environ["WDTRAIN"], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **settings)


def output(*arguments, **settings):
    """stdout of a run that must succeed."""
    done = wdtrain(*arguments, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout
