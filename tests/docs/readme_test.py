# readme_test.py: the documentation's commands run, its links and paths exist, and its excerpts match the
# code.
#
# In a block marked ```sh, every line runs except those that begin with ./wd (which would set up, build and
# test again) and those marked `# minutes`. The blocks of one document run in order in one folder, which
# contains configs/, examples/ and build/wdtrain; wdtrain is in PATH. Training has a time limit of one second.
import os
import pathlib
import re
import subprocess
import textwrap

import pytest

SOURCE = pathlib.Path(os.environ["WD_SOURCE_DIR"])
DOCUMENTS = [SOURCE / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(SOURCE.glob("docs/**/*.md"))
FOLLOWED = [SOURCE / "README.md", *SOURCE.glob("docs/tutorials/*.md"), SOURCE / "docs/coming_from.md"]  # tutorials_test.py runs their blocks
FOLDERS = "include|src|kernels|envs|configs|tests|cmake|docs|examples"


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def commands(document):
    lines = [line for block in blocks(document.read_text(), "sh") for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.strip() and not line.startswith("./wd ") and "# minutes" not in line]


def shortened(command):
    command = re.sub(r"--max_seconds \d+", "--max_seconds 1", command)
    begins = re.match(r"(?:build/)?wdtrain (?:(?=--)|train )", command)
    trains = begins and "--print_config" not in command and "--max_seconds" not in command
    return re.sub(r"\s*#|$", r" --max_seconds 1\g<0>", command, count=1) if trains else command


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def by_name(documents):
    return pytest.mark.parametrize("document", documents, ids=lambda path: str(path.relative_to(SOURCE)))


@by_name([document for document in DOCUMENTS if commands(document) and document not in FOLLOWED])
def test_commands_run(document, tmp_path):
    for folder in ("configs", "examples"):
        (tmp_path / folder).symlink_to(SOURCE / folder)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "wdtrain").symlink_to(os.environ["WDTRAIN"])
    path = f"{tmp_path / 'build'}:{os.environ['PATH']}"
    for command in commands(document):
        done = subprocess.run(["bash", "-c", shortened(command)], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")})
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_the_front_page_is_one_page():
    assert len((SOURCE / "README.md").read_text().splitlines()) <= 100


def test_the_run_folder_holds_what_the_tour_lists(tmp_path):
    text = (SOURCE / "docs/tour.md").read_text()
    files = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", text, re.M)))
    assert "summary.json" in files
    command = [os.environ["WDTRAIN"], "--env", "cartpole", "--total_steps", "2048", "--quiet", "--run_dir", "run"]
    subprocess.run(command, cwd=tmp_path, check=True)
    for name in files:
        assert list((tmp_path / "run").glob(name.replace("POLICY", "*"))), name


def test_commands_of_the_front_door_exist():
    known = re.findall(r"^  (\w+) ", (SOURCE / "wd").read_text().split("TEXT\n")[0], re.M)
    assert "train" in known and "test" in known
    for document in DOCUMENTS:
        for name in re.findall(r"\./wd (\w+)", document.read_text()):
            assert name in known, f"{document}: ./wd {name}"


@by_name(DOCUMENTS)
def test_links_lead_somewhere(document):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", prose(target.read_text()), re.M)
            assert anchor in map(slug, headings), link


@by_name(DOCUMENTS)
def test_paths_exist(document):
    for path in re.findall(rf"`((?:{FOLDERS})/[\w./*-]*)`", prose(document.read_text())):
        assert list(SOURCE.glob(path.replace("NAME", "*").rstrip("/"))), path


@by_name([document for document in DOCUMENTS if "<!-- from " in document.read_text()])
def test_excerpts_are_the_code(document):
    for path, excerpt in re.findall(r"<!-- from (\S+) -->\n```\w+\n(.*?)^```$", document.read_text(), re.M | re.S):
        flat = lambda text: "\n".join(line.strip() for line in textwrap.dedent(text).splitlines())  # noqa: E731
        assert flat(excerpt) in flat((SOURCE / path).read_text()), f"{path} has not:\n{excerpt}"
