"""conftest.py: leaves out the cases of tests/gate.txt where WD_GATE=1, as `./wd test` sets it, and starts a browser for tests of pages."""

import collections
import fnmatch
import os
import pathlib
import shutil

import pytest

HERE = pathlib.Path(__file__).resolve().parent


def kept(file, cases):
    """Those of a file's cases, as of cli/eval_test.py, that the gate runs."""
    rules = collections.defaultdict(list)
    for line in (HERE / "gate.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            verb, name, *words = line.split()
            if fnmatch.fnmatchcase(file, name):
                rules[verb] += words

    def matches(verb, case):
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in rules[verb])

    left = [case for case in cases if not matches("drop", case) and ("keep" not in rules or matches("keep", case))]
    if "few" not in rules:
        return left
    most, of_function = min(map(int, rules["few"])), collections.defaultdict(list)
    for case in left:
        of_function[case.partition("[")[0]].append(case)
    few = set()
    for function in of_function.values():
        n = min(most, len(function))
        few |= {function[k * len(function) // n] for k in range(n)}
    return [case for case in left if case in few or matches("always", case)]


@pytest.hookimpl(tryfirst=True)  # before -k chooses among what is left
def pytest_collection_modifyitems(config, items):
    if os.environ.get("WD_GATE") != "1":
        return
    of_file = collections.defaultdict(list)
    for item in items:
        of_file[item.path.relative_to(HERE).as_posix()].append(item.name)
    names = {file: set(kept(file, cases)) for file, cases in of_file.items()}
    left = [item for item in items if item.name in names[item.path.relative_to(HERE).as_posix()]]
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = left
        return
    for item in items:  # if nothing were collected, that would be an error
        item.add_marker(pytest.mark.skip(reason="only in ./wd test --all (tests/gate.txt)"))


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, as Playwright's browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
