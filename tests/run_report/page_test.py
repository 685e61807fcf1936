"""The page of `wdtrain report` in headless Chromium: light and dark, desktop and phone, by mouse and by keyboard,
without an error and without a request."""

import json
import math

import pytest

from cli.program import output
from run_report.folders import make_run, search


ROWS = 40


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for lr in (0.001, 0.01):
        for seed in (1, 2, 3):
            curve = [seed + 1000 * lr * math.sin(i / 5) for i in range(ROWS)]
            run = make_run(folder / "runs" / f"lr{lr}_{seed}", {"shared/entropy": curve[::-1], "shared/recent_return": curve,
                                                               "time/update_s": [1.0] * ROWS}, seed=seed, lr=lr)
    (run / "rollouts").mkdir()
    (run / "rollouts" / "iteration_1.html").write_text("<title>episode</title>")
    output("report", folder / "runs", "--out", folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def opened(browser, page_file):
    """Opens the page; afterward there must have been no error and no request."""
    troubles = []

    def open_page(width=1280, height=900, dark=False, file=page_file):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: troubles.append(request.url) if request.url != file.as_uri() and not request.url.startswith("data:") else None)
        page.goto(file.as_uri())
        page.wait_for_function("document.title !== 'report'")
        return page

    yield open_page
    assert troubles == []


def inked(page):
    """Fraction of the chart that is drawn on."""
    return page.evaluate("""() => { let n = 0, all = 0; for (const c of document.querySelectorAll('#chart canvas')) {
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        for (let i = 3; i < d.length; i += 4) n += d[i] > 0; all = d.length / 4; } return n / all; }""")


def legend(page):
    return [text.split("\n")[0].strip() for text in page.locator("#legend label").all_inner_texts()]


@pytest.mark.parametrize("width, height, dark", [(1280, 900, False), (390, 844, True)])
def test_it_is_drawn_and_fits(opened, width, height, dark):
    page = opened(width, height, dark)
    assert page.inner_text("#title") == "6 runs of cartpole" and page.input_value("#metric") == "1"
    assert inked(page) > 0.03, "bands are areas"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    brightness = lambda color: sum(int(part) for part in color.strip("rgb()").split(",")[:3])
    assert (brightness(ink) > brightness(paper)) == dark
    assert page.locator("#scores tbody tr").count() == 2 and page.locator("#runs tbody tr").count() == 6


def test_a_summary_with_odd_hardware_is_shown(opened, tmp_path):
    odd = {"toString": 1, "valueOf": [2]}
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0]}, hardware={"host": odd, "cpu": [odd], "cores": None, "gpus": [odd, "H100"]},
                   version={"program": odd, "commit": ""})
    output("report", run, "--out", tmp_path / "odd.html")
    page = opened(file=tmp_path / "odd.html")
    assert page.locator("#machines tbody td").all_inner_texts() == ["run", "cpu", "-", "-", "-", "-", "-, H100", "-", "-"]


def test_probes_of_the_autoscaler_are_a_table(opened, tmp_path):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0]})
    (run / "autoscale.json").write_text(json.dumps(search()))
    output("report", run, "--out", tmp_path / "page.html")
    page = opened(file=tmp_path / "page.html")
    rows = [row.split("\t") for row in page.locator("#search tbody tr").all_inner_texts()]
    assert [[cell.strip() for cell in row[1:]] for row in rows] == [
        ["32", "16", "512", "128 MiB", "1.5k", "", "fits"], ["64", "16", "1024", "256 MiB", "2k", "", "chosen"],
        ["128", "16", "2048", "-", "-", "", "out of memory: <b>5 GB</b>"]]
    assert page.evaluate("[...document.querySelectorAll('#search meter')].map(bar => bar.value / bar.max)") == [0.75, 1, 0]


def test_groups_are_bands_and_runs_are_lines(opened):
    page = opened()
    assert page.evaluate("series.map(each => each.curve.iterations)") == [1, 1] and len(legend(page)) == 2
    page.select_option("#show", "runs")
    assert len(legend(page)) == 6 and page.evaluate("series[0].curve.values.length") == ROWS
    page.select_option("#axis", "time")
    assert len(legend(page)) == 6 and page.evaluate("series[0].curve.x.time.at(-1)") == ROWS / 2
    shown = page.locator("#chart").screenshot()
    page.click("#none")
    assert page.locator("#chart").screenshot() != shown and page.locator("#legend input:checked").count() == 0
    page.click("#all")
    assert page.locator("#legend input:checked").count() == 6


def test_values_are_shown_under_the_pointer_and_dragging_zooms(opened):
    page = opened()
    box = page.locator("#chart").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.inner_text("#cursor").startswith("At ") and page.inner_text("#cursor").endswith(" steps:")
    whole = page.evaluate("chart.xAxisRange()")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    low, high = page.evaluate("chart.xAxisRange()")
    assert whole[0] < low < high < whole[1]
    page.click("#reset")
    assert page.evaluate("chart.xAxisRange()") == whole


def test_every_metric_has_a_panel(opened):
    page = opened()
    names = page.evaluate("report.metrics.map(each => each.name)")
    panels = page.locator(".panel")
    assert sorted(panels.locator("button").all_text_contents()) == sorted(names) and page.locator("#panels h3").all_inner_texts() == ["shared"]
    assert page.locator("#panels > .panels .panel button").all_inner_texts() == ["shared/recent_return", "shared/entropy"], "what everybody looks at first"
    first = page.locator(".panel").first
    first.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.panel').chart")
    colors = page.evaluate("[chart.getColors(), document.querySelector('.panel').chart.getColors()]")
    assert colors[0] == colors[1] and len(colors[0]) == 2, "a group has one color"
    last = [text.strip() for text in page.locator("#legend output").all_inner_texts()]
    assert first.locator("p").inner_text().split() == " ".join(last).split()
    box = first.locator(".plot").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert first.locator("p").inner_text().startswith("At ") and " steps: " in first.locator("p").inner_text()
    page.locator("#legend input").first.uncheck()
    assert page.evaluate("document.querySelector('.panel').chart.visibility()") == [False, True]
    page.locator(".panel button", has_text="entropy").click()
    assert page.evaluate("metric.name") == "shared/entropy"
    assert not page.evaluate("!!document.querySelector('details .panel').chart"), "of a closed list nothing is drawn"
    page.click("#panels summary")
    page.wait_for_function("document.querySelector('details .panel').chart")


def test_the_keyboard_is_enough(opened):
    page = opened()
    page.keyboard.press("[")
    assert page.evaluate("metric.name") == "shared/entropy"
    page.keyboard.press("]")
    assert page.evaluate("metric.name") == "shared/recent_return"
    reached = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.type"))
    assert {"metric", "axis", "show", "zoom-in", "zoom-out", "reset", "chart", "checkbox"} <= reached
    page.focus("#legend input")
    page.keyboard.press("Space")
    assert page.evaluate("chart.visibility()") == [False, True]
    page.focus("#chart")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#cursor") == "At 200 steps:"
    assert page.locator("#legend output").last.inner_text().startswith(f"{2 + 10 * math.sin(0.2):.3f}"[:4])
    page.keyboard.press("Shift+ArrowRight")
    assert page.inner_text("#cursor") == "At 1200 steps:"
    whole = page.evaluate("chart.xAxisRange()")
    page.keyboard.press("+")
    low, high = page.evaluate("chart.xAxisRange()")
    assert high - low == pytest.approx((whole[1] - whole[0]) / 2)
    page.keyboard.press("0")
    assert page.evaluate("chart.xAxisRange()") == whole


def test_links_lead_to_episodes_and_the_license_is_there(opened, page_file):
    page = opened()
    page.click("footer summary")
    assert "Dan Vanderkam" in page.inner_text("#license-text") and "Permission is hereby granted" in page.inner_text("#license-text")
    (href,) = page.eval_on_selector_all("#rollouts a", "links => links.map(link => link.href)")
    assert href == (page_file.parent / "runs" / "lr0.01_3" / "rollouts" / "iteration_1.html").as_uri()


def test_strange_names_do_not_break_the_page(opened, tmp_path):
    run = make_run(tmp_path / "a <!--<script>b & 'c'", {"shared/<i>x</i>": [1.0, 2.0]})
    output("report", run, "--out", tmp_path / "report.html")
    page = opened(file=tmp_path / "report.html")
    assert page.inner_text("#title") == "cartpole: a <!--<script>b & 'c'"
    assert page.locator("#metric option").first.inner_text() == "shared/<i>x</i>"


def headings(page, table):
    return page.locator(f"#{table} th").all_inner_texts()


def test_labels_say_what_the_numbers_are(opened, page_file, tmp_path):
    page = opened()
    assert headings(page, "scores") == ["metric", "group", "runs", "return", "median", "[min, max]", "difference"]
    assert page.locator("#scores td").nth(3).inner_text().startswith("mean ")
    assert page.is_visible("#mean-note") and page.is_hidden("#iqm-note") and page.is_hidden("#configuration-section")
    assert page.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#runs').parentElement)"), "not cut at 1280"
    runs = [make_run(tmp_path / f"{k}", {"shared/recent_return": [k]}, seed=k, settings={"stop_return": 2}, stop_reason="stop_return") for k in range(4)]
    output("report", *runs, "--out", tmp_path / "four.html")
    page = opened(file=tmp_path / "four.html")
    assert headings(page, "scores") == ["metric", "group", "runs", "return", "95 % interval", "median", "[min, max]"]
    assert page.locator("#scores td").nth(3).inner_text() == "IQM 1.5"
    assert page.is_visible("#iqm-note") and page.is_hidden("#mean-note") and page.is_visible("#stopped-note")
    assert page.locator("#reached td").all_inner_texts() == ["cartpole PPO", "2", "4 of 4", "100", "0.5 s"]
    output("report", runs[3], "--out", tmp_path / "one.html")
    page = opened(file=tmp_path / "one.html")
    assert headings(page, "scores") == ["metric", "group", "return"] and page.locator("#scores td").nth(2).inner_text() == "3"
    assert page.is_hidden("#mean-note") and page.is_hidden("#difference-note")
    page.click("#configuration-section summary")
    assert "policy.shared.lr\t0.001" in page.inner_text("#configuration")


def test_a_run_without_metrics_has_tables(opened, tmp_path):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0]})
    (run / "metrics.jsonl").unlink()
    output("report", run, "--out", tmp_path / "report.html")
    page = opened(file=tmp_path / "report.html")
    assert page.is_hidden("#curves") and "no metrics" in page.inner_text("#runs")
