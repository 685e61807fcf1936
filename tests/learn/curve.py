"""curve.py: trains a configuration with several seeds, judges each by fresh episodes, and draws the returns of the
evaluations during training as an SVG picture.

    python3 tests/learn/curve.py configs/cartpole_pqn.yaml --every 12 --svg docs/learning/cartpole_pqn.svg
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WDTRAIN = ROOT / "build/wdtrain"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 60, 45, 30


def train(config, seed, every, folder):
    run = folder / str(seed)
    began = time.monotonic()
    subprocess.run([WDTRAIN, "--config", config, "--seed", str(seed), "--set", f"eval.every={every}", "--run_dir", run, "--quiet"], check=True)
    seconds = time.monotonic() - began
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (name,) = {key for row in rows for key in row if key.startswith("eval/") and key.endswith("/return")}
    judged = json.loads(subprocess.run([WDTRAIN, "eval", run, "--episodes", "1000", "--json"], check=True, capture_output=True, text=True).stdout)
    return seconds, [(row["env_steps"], row[name]) for row in rows if row.get(name) is not None], judged


def picture(title, curves):
    last = max(x for curve in curves for x, _ in curve)
    low, high = min(0.0, *(y for c in curves for _, y in c)), max(0.0, *(y for c in curves for _, y in c))

    def at(x, y):
        return f"{LEFT + (WIDTH - LEFT - 20) * x / last:.1f},{TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low):.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="18" font-size="14">{title}</text>']
    for k in range(5):
        y = low + (high - low) * k / 4
        x0, y0 = at(0, y).split(",")
        lines.append(f'<path d="M{at(0, y)} L{at(last, y)}" stroke="#ddd"/><text x="{float(x0) - 6}" y="{float(y0) + 4}" text-anchor="end">{y:g}</text>')
        x = last * k / 4
        lines.append(f'<text x="{at(x, low).split(",")[0]}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x / 1000:.0f} k</text>')
    lines.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">environment steps</text>')
    for k, curve in enumerate(curves):
        color = ["#1b6ca8", "#d1495b", "#2e8b57", "#e09f3e", "#6a4c93"][k % 5]
        lines.append(f'<path d="M{" L".join(at(x, y) for x, y in curve)}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--every", type=int, required=True, help="iterations between evaluations")
    parser.add_argument("--svg", type=pathlib.Path, required=True)
    options = parser.parse_args()
    curves = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.seeds + 1):
            seconds, curve, judged = train(options.config, seed, options.every, pathlib.Path(folder))
            curves.append(curve)
            print(f"seed {seed}: {seconds:.1f} s with evaluations; 1,000 fresh episodes: {judged['returns']}", flush=True)
    options.svg.write_text(picture(f"{options.config}: return of evaluations, seeds 1 to {options.seeds}", curves))


if __name__ == "__main__":
    main()
