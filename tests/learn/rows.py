"""rows.py: the rows of the table of learning results (docs/learning/README.md), which docs/learning/rows.yaml defines.

    python3 tests/learn/rows.py list
    python3 tests/learn/rows.py run ROW [--seeds 1 2 3] [--write] [--device cuda] [--together 5] [--json FILE] [--set SETTING]
    python3 tests/learn/rows.py write FILE
    python3 tests/learn/rows.py table

`run` trains the row's configuration with every seed, two at a time with one thread each on the CPU, judges every run by
fresh episodes (`wdtrain eval`) or by a metric of its last line, and prints medians, quartiles, interquartile means and how
many seeds meet the target. Without --seeds, seeds are 1 to 10 if a seed took below 30 s when the row was measured, and 1 to
5 otherwise. It ends with 1 if a median misses its target. `--write` stores what was measured, draws the curve
(docs/learning/ROW.svg) and rewrites the table; `table` only rewrites the table. `--json` writes it to a file: on a GPU, the
only way to keep it. `write` stores what such a file has of a CPU. Both write only what a commit without changes gave, in a
tree without changes outside of docs/learning. `--set trainer.precision=bf16` tries a row with another setting.
The program is build/wdtrain, or that of the variable WDTRAIN.

Keys of a row:

    name, environment, algorithm     for the table
    config                           what is trained; or instead
    file                             beside config: the source of an environment that is none of wd's
    program                          the program of build/ that has the environment, which is trained with the defaults of
                                     the algorithm and nothing else but what `set` says
    set                              further settings, as of --set
    judged                           a list, each with
        what                         in words
        eval                         arguments of `wdtrain eval RUN`, and
        value                        the number in what it prints with --json, as returns.cart.mean; or instead of both
        metric                       a name in the last line of metrics.jsonl that has it, as cart/recent_return
        script                       or: a script of Python and its arguments, which judges RUN and prints JSON, and
        value                        the number in it
        at_least, or at_most         the target, which the median over the seeds must meet
        source                       whose target it is
    curve                            metric that is drawn, or a list of those that are drawn in one picture
    measured                         what `run --write` found, by seed in the order of `seeds`; a row without it is not
                                     in the table
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import yaml

try:
    from learn.curve import picture
except ModuleNotFoundError:  # run as a script
    from curve import picture

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs/learning"
BEGIN, END = "<!-- rows.py writes from here -->\n", "<!-- to here -->\n"
HEAD = "# rows.yaml: the rows of the table of README.md. tests/learn/rows.py explains the keys, and writes `measured`.\n"


def wdtrain(row, *arguments, **options):
    program = ROOT / "build" / row["program"] if row.get("program", "wdtrain") != "wdtrain" else os.environ.get("WDTRAIN", ROOT / "build/wdtrain")
    return subprocess.run([program, *map(str, arguments)], check=True, text=True, **options)


def load(docs=DOCS):
    return yaml.safe_load((docs / "rows.yaml").read_text())


def save(rows, docs=DOCS):
    (docs / "rows.yaml").write_text(HEAD + yaml.safe_dump(rows, sort_keys=False, width=110, default_flow_style=None))


def number_at(tree, path):
    for key in path.split("."):
        tree = tree[key]
    return float(tree)


def lines_with(run, metric):
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(row["env_steps"], row[metric]) for row in rows if row.get(metric) is not None]


def judge(row, run, judged, answers):
    """answers: what the scripts have said of this run."""
    if "metric" in judged:
        return float(lines_with(run, judged["metric"])[-1][1])
    if "script" in judged:
        script, *arguments = judged["script"]
        key = tuple(judged["script"])
        if key not in answers:
            answers[key] = json.loads(subprocess.run([sys.executable, ROOT / script, run, *arguments, "--json"], check=True, text=True, capture_output=True).stdout)
        return number_at(answers[key], judged["value"])
    done = wdtrain(row, "eval", run, *judged["eval"], "--threads", 1, "--json", capture_output=True)
    return number_at(json.loads(done.stdout), judged["value"])


def train(row, seed, folder, device):
    """What one seed gives: a dictionary of numbers, and the points of its curve."""
    run = folder / str(seed)
    settings = [argument for setting in row.get("set", []) for argument in ("--set", setting)]
    began = time.monotonic()
    what = ["--config", ROOT / row["config"]] if "config" in row else ["--env", row["environment"]]
    if "file" in row:
        what += ["--env", ROOT / row["file"]]
    wdtrain(row, *what, "--seed", seed, "--set", "trainer.threads=1", *settings, "--run_dir", run, "--quiet", "--device", device)
    seconds = time.monotonic() - began
    summary = json.loads((run / "summary.json").read_text())
    answers = {}
    values = [judge(row, run, judged, answers) for judged in row["judged"]]
    return {"env_steps": summary["env_steps"], "seconds": round(seconds, 1), "values": values,
            "commit": summary["version"]["commit"], "processor": summary["hardware"]["cpu"] if device == "cpu" else ", ".join(summary["hardware"]["gpus"])}, [lines_with(run, name) for name in curves_of(row)]


def curves_of(row):
    return row["curve"] if isinstance(row["curve"], list) else [row["curve"]]


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def target(judged):
    return ("at least", judged["at_least"]) if "at_least" in judged else ("at most", judged["at_most"])


def meets(judged, value):
    direction, wanted = target(judged)
    return value >= wanted if direction == "at least" else value <= wanted


def holds(judged, values):
    return meets(judged, statistics.median(values))


def share(judged, values):
    return f"{sum(meets(judged, value) for value in values)} of {len(values)}"


def interquartile_means(values):
    """Of each row, the mean without its lowest and highest quarter: scipy.stats.trim_mean(values, 0.25, axis=1)."""
    cut = values.shape[1] // 4
    return numpy.sort(values, axis=1)[:, cut:values.shape[1] - cut].mean(axis=1)


def iqm(values):
    """The interquartile mean and its 95 % interval by rliable's bootstrap (Agarwal et al. 2021), as in `wdtrain report`, which
    also gives no interval below four values (src/run_report/scores.h)."""
    values = numpy.asarray(values, dtype=float)
    mean = interquartile_means(values[None])[0]
    if len(values) < 4:
        return mean, None, None
    drawn = numpy.random.default_rng(1).choice(values, (10_000, len(values)))
    return mean, *numpy.percentile(interquartile_means(drawn), [2.5, 97.5])


def measure(row, seeds, device, together):
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(together) as pool:
        done = list(pool.map(lambda seed: train(row, seed, pathlib.Path(folder), device), seeds))
    runs = [run for run, _ in done]
    measured = {"date": datetime.date.today().isoformat(), "commit": runs[0]["commit"],
                "processor": f"{runs[0]['processor']} ({platform.machine()})", "seeds": list(seeds),
                "env_steps": [run["env_steps"] for run in runs], "seconds": [run["seconds"] for run in runs],
                "values": [[round(run["values"][k], 3) for run in runs] for k in range(len(row["judged"]))]}
    return measured, [[curves[k] for _, curves in done] for k in range(len(curves_of(row)))]


def with_interval(middle, low, high):
    low, middle, high = ("" if x is None else f"{x:,.4g}" if abs(x) < 10_000 else f"{x:,.0f}" for x in (low, middle, high))
    return middle if low == high else f"{middle} [{low}, {high}]"


def text_of(values):
    low, median, high = quartiles(values)
    return with_interval(median, low, high)


def seeds_of(row):
    """Seeds are cheap below 30 s."""
    seconds = row.get("measured", {}).get("seconds")
    return list(range(1, 11 if seconds and statistics.median(seconds) < 30 else 6))


def seeds_text(seeds):
    """Neighbors as ranges: 1 to 5, 101 to 120."""
    parts = []
    for seed in seeds:
        if parts and seed == parts[-1][1] + 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in parts)


def table(rows):
    lines = ["| environment | algorithm | target | source | median | share | IQM | environment steps | time [s] | command |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        measured, targets, found, shares, means = row["measured"], [], [], [], []
        for judged, values in zip(row["judged"], measured["values"], strict=True):
            targets.append(f"{judged['what']}: {' '.join(map(str, target(judged)))}")
            found.append(text_of(values) + ("" if holds(judged, values) else ", **missed**"))
            shares.append(share(judged, values))
            means.append(with_interval(*iqm(values)))
        sources = list(dict.fromkeys(judged["source"] for judged in row["judged"]))
        changed = [f"`{setting}`" for setting in row.get("set", []) if not setting.startswith("eval.")]
        link = f"[{row['algorithm']}](../../{row['config']})" if "config" in row else f"{row['algorithm']}, its defaults"
        algorithm = link + "".join(f", {setting}" for setting in changed)
        lines.append(f"| {row['environment']} | {algorithm} | {'<br>'.join(targets)} | {'<br>'.join(sources)} | {'<br>'.join(found)} "
                     f"| {'<br>'.join(shares)} | {'<br>'.join(means)} "
                     f"| {text_of(measured['env_steps'])} | {text_of(measured['seconds'])} | `python3 tests/learn/rows.py run {row['name']}` |")
    lines += ["", "Median [quartiles] over the seeds; share: seeds that meet the target; IQM: interquartile mean [95 % interval]. Times are those of whole trainings by the clock, with one thread, two at a time, on a machine "
              "with other work:", ""]
    lines += [f"- {row['name']}: {row['measured']['date']}, commit {row['measured']['commit']}, {row['measured']['processor']}, seeds {seeds_text(row['measured']['seeds'])}" for row in rows]
    for row in rows:
        lines += ["", f"![{row['name']}: {' and '.join(curves_of(row))}]({row['name']}.svg)"]
    return "\n".join(lines) + "\n"


def with_table(text, rows):
    """The page with the table of the measured rows between its markers."""
    assert text.count(BEGIN) == text.count(END) == 1, "README.md must have both markers once"
    rows = [row for row in rows if "measured" in row]
    return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + "\n" + table(rows) + "\n" + END, text, flags=re.S)


def write_table(rows, docs=DOCS):
    page = docs / "README.md"
    page.write_text(with_table(page.read_text(), rows))


def changes_outside(docs):
    """The changes of the Git tree of `docs` that are not in that folder, a line each."""
    status = ["git", "-C", docs, "status", "--porcelain", "--", ":/", ":!."]
    return subprocess.run(status, check=True, capture_output=True, text=True).stdout.splitlines()


def require_a_commit(commit):
    if not commit or commit.endswith("-dirty"):
        raise SystemExit(f"the program is of {commit or 'no commit'}, and a row names what it was measured with: build it of a commit without changes")


def write(row, measured, curves, rows, docs):
    require_a_commit(measured["commit"])
    row["measured"] = measured
    save(rows, docs)
    (docs / f"{row['name']}.svg").write_text(
        picture(f"{row['name']}: {' and '.join(curves_of(row))}, seeds {', '.join(map(str, measured['seeds']))}", curves)
    )
    write_table(rows, docs)


def run(row, options, rows, docs):
    seeds = options.seeds or seeds_of(row)
    measured, curves = measure(row, seeds, options.device, options.together)
    print(f"{row['name']}: {text_of(measured['env_steps'])} environment steps, {text_of(measured['seconds'])} s")
    for judged, values in zip(row["judged"], measured["values"], strict=True):
        result = "holds" if holds(judged, values) else "MISSED"
        print(f"  {judged['what']}: {text_of(values)}; {' '.join(map(str, target(judged)))}: {result}, {share(judged, values)}; IQM {with_interval(*iqm(values))}; seeds {seeds}: {values}")
    if options.json:
        options.json.write_text(json.dumps({"row": row["name"], "device": options.device, "judged": row["judged"], "measured": measured, "curves": curves}) + "\n")
    if options.write:
        write(row, measured, curves, rows, docs)
    return all(holds(judged, values) for judged, values in zip(row["judged"], measured["values"], strict=True))


def write_file(file, rows, docs):
    """Stores what `run --json` wrote on a CPU, if the row is still judged alike."""
    found = json.loads(file.read_text())
    if found["device"] != "cpu":
        raise SystemExit(f"{file}: was measured on a GPU, and the table is of the CPU")
    (row,) = [row for row in rows if row["name"] == found["row"]]
    if found["judged"] != row["judged"]:
        raise SystemExit(f"{file}: {row['name']} is judged in another way now: run it again")
    write(row, found["measured"], found["curves"], rows, docs)


def main(arguments=None, docs=DOCS):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    commands.add_parser("table")
    commands.add_parser("write").add_argument("file", type=pathlib.Path)
    runs = commands.add_parser("run")
    rows = load(docs)
    runs.add_argument("row", choices=[row["name"] for row in rows])
    runs.add_argument("--seeds", type=int, nargs="+", help="1 to 10 below 30 s per seed, otherwise 1 to 5")
    runs.add_argument("--write", action="store_true", help="into rows.yaml, README.md and ROW.svg")
    runs.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    runs.add_argument("--together", type=int, default=2, help="trainings at a time")
    runs.add_argument("--json", type=pathlib.Path)
    runs.add_argument("--set", action="append", default=[], help="a further setting, as of wdtrain; not with --write")
    options = parser.parse_args(arguments)
    if options.command == "list":
        for row in rows:
            targets = "; ".join(f"{judged['what']} {' '.join(map(str, target(judged)))}" for judged in row["judged"])
            print(f"{row['name']}: {row.get('config', row['algorithm'] + ', its defaults')}; {targets}")
        return 0
    if options.command == "table":
        write_table(rows, docs)
        return 0
    if (options.command == "write" or options.write) and (changed := changes_outside(docs)):
        raise SystemExit("\n".join(["the tree has changes, and a row names the commit that it was measured with: commit them, and build again", *changed]))
    if options.command == "write":
        write_file(options.file, rows, docs)
        return 0
    if options.write and options.device != "cpu":
        parser.error("the table is of the CPU: --json writes the results of a GPU")
    if options.set and (options.write or options.json):
        parser.error("--set: what a row measures has the row's settings alone: set them in rows.yaml, or leave out --write and --json")
    (row,) = [row for row in rows if row["name"] == options.row]
    if options.set:
        row = {**row, "set": [*row.get("set", []), *options.set]}
    return 0 if run(row, options, rows, docs) else 1


if __name__ == "__main__":
    sys.exit(main())
