"""site_test.py: the documentation site builds without a warning, and every page is complete: its links, its resources, and how it
looks in headless Chromium on a phone and on a desktop, light and dark, opened from disk."""

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest

SOURCE = pathlib.Path(os.environ["WD_SOURCE_DIR"])
if shutil.which("doxygen") is None:
    pytest.skip("no doxygen is installed", allow_module_level=True)


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.path, self.anchors, self.links, self.resources, self.text = path, set(), [], [], path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes.get("id"), attributes.get("name")}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif attributes.get("src") or (tag == "link" and attributes.get("rel") != "canonical"):
            self.resources.append(attributes.get("src") or attributes["href"])

    def target(self, link):
        """The file that a relative link leads to, and the anchor."""
        path, _, anchor = link.partition("#")
        path = urllib.parse.unquote(path.split("?")[0])
        return (self.path.parent / path).resolve() if path else self.path, urllib.parse.unquote(anchor)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, SOURCE / "docs" / "site" / "build.py", out, "--program", os.environ["WDTRAIN"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    assert [path.name for path in out.parent.iterdir()] == ["site"], "nothing else is left"
    return out


@pytest.fixture(scope="module")
def pages(site):
    found = {path: Page(path) for path in site.rglob("*.html") if path.parent.name != "plays"}
    assert len(found) > 150
    return found


def test_links_and_resources_are_there(pages):
    for page in pages.values():
        for resource in page.resources:
            assert "://" not in resource and not resource.startswith("//"), f"{page.path}: {resource}"
            assert resource.startswith("data:") or page.target(resource)[0].is_file(), f"{page.path}: {resource}"
        for link in page.links:
            if re.match(r"https?://|mailto:", link):
                continue
            path, anchor = page.target(link)
            assert path.is_file(), f"{page.path}: {link}"
            assert not anchor or path.suffix != ".html" or anchor in pages[path].anchors, f"{page.path}: {link}"


def test_nothing_is_said_of_this_machine(pages):
    for page in pages.values():
        assert str(SOURCE) not in page.text and str(page.path.parent) not in page.text, page.path


def test_each_page_is_reached_from_the_first(site, pages):
    reached, ahead = set(), [site / "index.html"]
    while ahead:
        path = ahead.pop()
        if path in pages and path not in reached:
            reached.add(path)
            ahead += [pages[path].target(link)[0] for link in pages[path].links if "://" not in link]
    assert {path for path in pages if path.name not in ("search.html", "genindex.html")} <= reached


def test_each_page_has_the_version_and_a_search(site, pages):
    version = subprocess.run([os.environ["WDTRAIN"], "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    for page in pages.values():
        assert re.search(rf'sidebar-brand-text">[^<]*{re.escape(version)}<', page.text), page.path
        assert 'role="search"' in page.text, page.path


def test_the_site_has_every_document_header_command_and_setting(site):
    for path in (SOURCE / "docs").glob("**/*.md"):
        if "site" not in path.parts:
            assert (site / path.relative_to(SOURCE / "docs")).with_suffix(".html").is_file(), path
    for name in re.findall(r"`(wd/[\w/]+\.h)`", (SOURCE / "docs" / "headers.md").read_text()):
        assert (site / "reference" / "cpp" / f"{name}.html").is_file(), name
    commands = (site / "reference" / "commands.html").read_text()
    assert "wdtrain reproduce" in commands
    codes = re.findall(r"^\| (.*?) \|", (SOURCE / "docs/configuration.md").read_text().split("### Exit codes")[1].split("\n## ")[0], re.M)[2:]
    for code in codes:
        shown = code.replace(" + the signal's number", " + n")
        assert f"<td><p>{shown}</p></td>" in commands, code
    assert 'id="wdtrain.train"' in (site / "reference" / "python.html").read_text()
    player = (site / "reference" / "cpp" / "wd" / "player.h.html").read_text()
    assert "Draws among the legal actions" in player and "counts all steps" in player, "comments in front of a declaration, and after one"


def test_one_file_has_the_guides(site):
    text = (site / "llms.txt").read_text()
    for path in (SOURCE / "docs").glob("*.md"):
        if path.name not in ("index.md", "STATUS.md", "architecture.md"):
            assert path.read_text().split("\n")[0] in text.split("\n"), path
    for path in (SOURCE / "docs" / "tutorials").glob("*.md"):
        assert path.read_text().split("\n")[0] in text.split("\n"), path


STATES = [(1280, "light"), (400, "dark"), (400, "light"), (1280, "dark")]


# Each page is loaded once; widths and themes change while it is open. The gate looks at each page in both widths and both themes, but
# not at files of the repository, which are code alone; `./wd test --all` looks at all pages in all four pairs.
def test_each_page_fits_in_a_browser(browser, pages):
    troubles = []
    tab = browser.new_page()
    tab.on("console", lambda message: troubles.append((tab.url, message.text)) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: troubles.append((tab.url, str(error))))
    tab.on("requestfailed", lambda request: troubles.append((tab.url, request.url)))
    tab.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else troubles.append((tab.url, request.url)))
    gate = os.environ.get("WD_GATE")
    for number, path in enumerate(sorted(path for path in pages if not gate or "files" not in path.parts)):
        tab.goto(path.as_uri())
        for width, theme in STATES[number % 2 * 2 :][:2] if gate else STATES:
            tab.set_viewport_size({"width": width, "height": 800})
            tab.emulate_media(color_scheme=theme)
            wide, paper = tab.evaluate("[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]")
            if wide > width:
                troubles.append((path.as_uri(), f"{wide} wide, of {width}"))
            if (sum(map(int, re.findall(r"\d+", paper)[:3])) < 384) != (theme == "dark"):
                troubles.append((path.as_uri(), f"{theme}: {paper}"))
    tab.close()
    assert troubles == []


def test_a_search_from_disk_finds_a_setting(browser, site):
    tab = browser.new_page()
    tab.goto((site / "teams.html").as_uri())
    tab.fill("input[name=q]", "train_batch_size")
    tab.press("input[name=q]", "Enter")
    tab.wait_for_selector("#search-results li a:has-text('Configuration')")  # results appear one after another
    tab.close()
