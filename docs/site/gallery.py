"""gallery.py: pages of the shipped games, each with a rollout that plays, for build.py.

What they say is of the program (`wdtrain envs NAME --json`), of docs/learning/rows.yaml and of configs/pretrained.
"""

import json
import pathlib
import re
import subprocess
import sys

import yaml

PLAYS = "gallery/plays"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from learn import rows  # noqa: E402

ORACLES = {"tag": "rl-warp-drive 2.7.1", "simple_tag": "JaxMARL 0.2.0", "simple": "mpe2 1.1.1", "foraging": "lbforaging 2.0.0", "": "Gymnasium 1.4.0"}
# Name, place in games.md, and what one reads below the name, of each game in gallery.md.
GAMES = {name: (rules, about) for name, rules, about in re.findall(r"<br>\[(\w+)\]\(games\.md#?([\w-]*)\)<br>(.+?) \|", (ROOT / "docs/gallery.md").read_text())}


def table(head, lines):
    row = lambda cells: "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n"  # noqa: E731
    return row(head) + row(["---"] * len(head)) + "".join(map(row, lines))


def action(role):
    space = role["action"]
    if "heads" in space:
        return ", ".join(f"{name}: one of {n}" for name, n in zip(space["names"], space["heads"], strict=True))
    return ", ".join(f"{name}: {low:g} to {high:g}" for name, low, high in zip(space["names"], space["low"], space["high"], strict=True))


def learned(name):
    """Rows of docs/learning, the pretrained policy's first."""
    about = json.loads((ROOT / "configs/pretrained" / name / "about.json").read_text())
    found = [row for row in rows.load() if row["environment"] == name and "measured" in row]
    text = ""
    for row in sorted(found, key=lambda row: row["name"] != about["row"]):
        measured = row["measured"]
        config = f"[{row['config']}](../../{row['config']})" if "config" in row else "its defaults"
        text += f"\n### {row['algorithm']}, {config}\n\n"
        text += table(["judged by", "target", "median [quartiles]", "seeds that meet it"],
                      [[judged["what"], " ".join(map(str, rows.target(judged))), rows.text_of(values), rows.share(judged, values)]
                       for judged, values in zip(row["judged"], measured["values"], strict=True)])
        text += f"\n{rows.text_of(measured['env_steps'])} environment steps, {rows.text_of(measured['seconds'])} s on one thread of a CPU, " \
                f"two at a time ({measured['date']}):\n\n```console\npython3 tests/learn/rows.py run {row['name']}\n```\n"
        text += f"\n![{row['name']}: {' and '.join(rows.curves_of(row))}](../learning/{row['name']}.svg)\n"
    judged = "; ".join(f"{judged['what']}: **{judged['value']:.4g}**" for judged in about["judged"])
    return f"\nThe policies above are those of seed {about['seed']} of the row `{about['row']}`. {judged}.\n" + text


def page(stage, name, program):
    rules, about = GAMES[name]
    oracle = next(oracle for begin, oracle in sorted(ORACLES.items(), key=lambda item: -len(item[0])) if name.startswith(begin))
    game = json.loads(subprocess.run([program, "envs", name, "--json"], check=True, capture_output=True, text=True).stdout)
    text = f"# {name}\n\n{about}\n\n"
    text += f'<iframe class="rollout" src="plays/{name}.html" title="{name}: trained policies beside random ones" allowfullscreen></iframe>\n\n'
    text += f'Trained policies, and random ones in the same start; <a href="plays/{name}.html">the page alone</a> has their numbers. The command:\n\n'
    text += f"```console\nwdtrain play --pretrained {name} --beside random\n```\n\n"
    where = f"[The shipped games](../games.md#{rules})" if rules else "[The shipped games](../games.md), and WarpDrive's paper"
    text += table(["", ""], [["rules and rewards", where], ["source", f"[envs/{name}.cu](../../envs/{name}.cu)"],
                             ["compared step by step with", f"{oracle}, by [a test](../../tests/envs/{name}_oracle_test.py)"],
                             ["ends", f"after {game['time_limit']} steps, which {game['at_time_limit']} the episode"]])
    text += "\n## Spaces\n\n" + table(["role", "agents", "observes", "acts"], [
        [role["name"], role["agents"], f"{role['observation_size']} numbers: " + ", ".join(f"{part['name']} ({part['end'] - part['begin']})" for part in role["observation"]),
         action(role) + (", with a mask" if role["action_mask"] else "")] for role in game["roles"]])
    text += "\n## Parameters\n\n" + table(["`env.`", "as shipped", "range", ""],
                                          [[f"`{each['name']}`", each["value"], each.get("range") or "", each["help"]] for each in game["parameters"]])
    stage.copy(f"docs/gallery/{name}.md", text + "\n## Learning\n" + learned(name))


def write(stage, program):
    """Pages into the stage, and rollouts into its folder PLAYS, which build.py copies as it is."""
    extra = stage.folder / PLAYS
    extra.mkdir(parents=True)
    for name in GAMES:
        page(stage, name, program)
        subprocess.run([program, "play", "--pretrained", name, "--beside", "random", "--device", "cpu", "--out", extra / f"{name}.html"],
                       check=True, capture_output=True)
    listed = (stage.folder / "gallery.md").read_text()
    tree = "```{toctree}\n:hidden:\n\n" + "".join(f"gallery/{name}\n" for name in GAMES) + "```\n"
    for name in GAMES:
        listed = re.sub(rf"\[{name}\]\(games\.md[^)]*\)", f"[{name}](gallery/{name}.md)", listed)
    stage.write("gallery.md", listed + "\n" + tree)
