"""pictures.py: makes the pictures of docs/images: python3 docs/site/pictures.py [NAME...]

speed.svg is drawn from the figures below, which docs/benchmarks/README.md has with their commands; the others are films and
screenshots of pages that build/wdtrain (or the program of WDTRAIN) writes about policies that come with it. Needs ffmpeg or
imageio-ffmpeg, playwright and Chromium.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs/images"
PROGRAM = pathlib.Path(os.environ.get("WDTRAIN", ROOT / "build/wdtrain"))

# Millions of agent steps trained per second; docs/benchmarks/README.md: "JAX on the same card", "tuned peer",
# "JaxMARL 0.2.0 ... train", "cartpole PPO: train, jax, tuned peer".
SPEEDS = [
    ("tag_continuous, 105 agents: one H100", [("wd, bf16", 130.5), ("wd, tf32, as JAX", 109.0), ("JAX, tuned for this game, tf32", 28.8)]),
    ("tag_continuous, 105 agents: two CPU cores", [("wd", 0.275), ("JAX, tuned for this game", 0.105)]),
    ("simple_tag, 4 agents: two CPU cores", [("wd", 0.448), ("JaxMARL", 0.179)]),
    ("cartpole, PPO: two CPU cores", [("wd", 0.222), ("JAX, tuned for this game", 0.117)]),
]


def speed():
    """Bars; each game has its own scale. Colors are readable on a light and on a dark page."""
    title = "Agent steps trained per second"
    text, y, left, longest = [f'<text x="0" y="16" style="font-weight:600;font-size:15px">{title}</text>'], 46, 220, 380
    for game, bars in SPEEDS:
        text.append(f'<text x="0" y="{y}">{game}</text>')
        y += 10
        for name, value in bars:
            length = longest * value / bars[0][1]
            color = "#d55e00" if name.startswith("wd") else "#7f8790"
            number = f"{value:.3g} M"
            text.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{name}</text><rect x="{left}" y="{y}" width="{length:.1f}" height="18" rx="2" '
                        f'fill="{color}"/><text x="{left + length + 6:.1f}" y="{y + 13}">{number}</text>')
            y += 22
        y += 24
    style = "text{font-family:system-ui,sans-serif;font-size:13px;fill:#57606a}@media(prefers-color-scheme:dark){text{fill:#9aa4af}}"
    (IMAGES / "speed.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {y - 20}" role="img" aria-label="{title}"><title>{title}</title>'
                                      f"<style>{style}</style>" + "\n".join(text) + "</svg>\n")


def play(*arguments, folder):
    subprocess.run([PROGRAM, "play", "--device", "cpu", *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def film():
    """Seven seconds, eight pictures each, small."""
    small = "fps=8,scale=480:-1:flags=area,split[a][b];[a]palettegen=max_colors=24:stats_mode=full[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("ffmpeg") is None:
            import imageio_ffmpeg

            os.symlink(imageio_ffmpeg.get_ffmpeg_exe(), f"{folder}/ffmpeg")
            os.environ["PATH"] += f":{folder}"
        play("--pretrained", "tag_continuous", "--beside", "random", "--max_steps", 140, "--out", "film.mp4", folder=folder)
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", "film.mp4", "-vf", small, IMAGES / "tag_continuous.gif"], cwd=folder, check=True)


def shots(name, page, script):
    """A page at 1280 x 800, light, and at 400 x 800, dark, with 64 colors."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for file, width, theme in [(f"{name}.png", 1280, "light"), (f"{name}_phone.png", 400, "dark")]:
            view = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme, reduced_motion="reduce").new_page()
            view.goto(page.as_uri())
            view.wait_for_timeout(500)
            view.evaluate(script)
            view.wait_for_timeout(500)
            view.screenshot(path=IMAGES / file)
            Image.open(IMAGES / file).convert("RGB").quantize(64, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(IMAGES / file, optimize=True)
        browser.close()


def pages():
    with tempfile.TemporaryDirectory() as folder:
        where = pathlib.Path(folder)
        play("--pretrained", "tag_continuous", "--out", "play.html", folder=folder)
        shots("play", where / "play.html", "go(60)")
        play("--pretrained", "simple_tag", "--beside", "random", "--out", "beside.html", folder=folder)
        shots("beside", where / "beside.html", "go(20)")


def gallery():
    """Each game 30 steps after the start, or at half of a shorter episode."""
    from playwright.sync_api import sync_playwright

    (IMAGES / "gallery").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_context(viewport={"width": 400, "height": 300}, reduced_motion="reduce").new_page()
        for run in sorted((ROOT / "configs/pretrained").glob("*/about.json")):
            play("--pretrained", run.parent.name, folder=folder)
            view.goto((pathlib.Path(folder) / f"{run.parent.name}.html").as_uri())
            view.wait_for_timeout(500)
            view.add_style_tag(content="header, aside, #controls { display: none !important } #stage { height: 300px !important; min-height: 0 }")
            view.evaluate("go(Math.min(30, Math.floor(lastFrame() / 2)))")
            view.wait_for_timeout(300)
            view.screenshot(path=IMAGES / "gallery" / f"{run.parent.name}.png")
        browser.close()


def report():
    with tempfile.TemporaryDirectory() as folder:
        for rate in ("0.001", "0.0003"):
            for seed in range(1, 6):
                subprocess.run([PROGRAM, "train", "cartpole", "--device", "cpu", "--quiet", "--seed", str(seed), "--total_steps", "60416", "--set", "trainer.stop_return=none",
                                "--set", f"policy.shared.lr={rate}", "--run_dir", f"runs/{rate}_{seed}"], cwd=folder, check=True)
        subprocess.run([PROGRAM, "report", "runs", "--out", "report.html"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        shots("report", pathlib.Path(folder) / "report.html", "0")


if __name__ == "__main__":
    made = {"speed": speed, "film": film, "pages": pages, "report": report, "gallery": gallery}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(made)}; without one: all")
    for name in parser.parse_args().names or made:
        made[name]()
