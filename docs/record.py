"""The gallery made anew, from the runs of Table 3 in `runs/`: `python docs/record.py [WORDS]`, or `make gallery`.

WORDS choose the runs that are reported on, such as seed=1,2,3. Commands are typed into a terminal, and what they draw
on it becomes an SVG; the sweep has runs of its own, of a few steps each, in a folder that is thrown away. The page is
photographed by Chromium, where there is one.
"""

import itertools
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from etude.cli.report import WEB_FONT

PICTURES = Path(__file__).parent / "pictures"
PAGE = Path(__file__).parent / "gallery" / "table3.html"
COLUMNS, LINES = 120, 50
FRAMES, PACE, STILL = 12, 0.9, 5.0  # of a film: at most so many pictures, the seconds of each, and of the last
WIPE = re.compile(r"\r?\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")  # how rich takes a table away before it draws it anew
HIDE_CURSOR, CURSOR = "\x1b[?25l", re.compile(r"\x1b\[\?25[hl]|\r")
SHOTS = {"table": 962, "forest": 965, "analysis": 1475}  # sections of the page, in so many pixels
THEMES = ["dark", "light"]  # as Chromium counts them


def main(words: list[str]) -> None:
    """Type the commands, draw what they show, write the page and photograph it."""
    here, chosen = Path.cwd(), " ".join(words)
    plan, report = "etude plan table3 scale=full device=a100 data=wmt14_en_de", f"etude report table3 {chosen}".strip()
    for name, command in (("plan", plan), ("report", report)):
        _write(name, draw(command, typed(command, here), name))
    with tempfile.TemporaryDirectory() as folder:
        sweep = "etude sweep table3 budget=smoke"
        shown = screens(typed(sweep, Path(folder)))
    _write("sweep", film([draw(sweep, screen, f"sweep{n}") for n, screen in enumerate(shown)]))
    PAGE.parent.mkdir(exist_ok=True)
    typed(f"{report} --html {shlex.quote(str(PAGE))}", here)
    photograph(PAGE)


def typed(command: str, folder: Path) -> str:
    """All that a command writes to a terminal, with the sequences that move the cursor and colour the text."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES), "TERM": "xterm-256color"}
    words = [sys.executable, "-m", "etude", *shlex.split(command)[1:]]
    process = subprocess.Popen(words, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | size)
    os.close(theirs)
    written = b""
    while part := _read(ours):
        written += part
    if process.wait():
        sys.exit(f"{command} ended with status {process.returncode}:\n{written.decode()}")
    return written.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how Linux says that nobody writes to a terminal any more
        return b""


def screens(written: str) -> list[str]:
    """What could be seen one after the other while a table was drawn anew in its place, all of the same height."""
    above, _, drawn = written.partition(HIDE_CURSOR)
    seen = [CURSOR.sub("", above + table).rstrip("\n") for table in WIPE.split(drawn) if table.strip()]
    seen = [screen for screen, _ in itertools.groupby(seen)]
    some = seen[: -1 : -(-len(seen) // FRAMES)] + seen[-1:]
    height = max(screen.count("\n") for screen in some) + 1
    return [screen + "\n" * (height - screen.count("\n")) for screen in some]


def draw(command: str, screen: str, name: str) -> str:
    """A terminal in which a command was typed, as SVG."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text.assemble(("$ ", "dim"), command, "\n"))
    console.print(Text.from_ansi(screen), end="\n\n")
    return WEB_FONT.sub("", console.export_svg(title="étude", unique_id=name))


def film(pictures: list[str]) -> str:
    """SVGs of one size that follow one another for ever; the last alone where nothing may move."""
    seconds = PACE * (len(pictures) - 1) + STILL
    share = 100 * PACE / seconds
    times = [f"animation-delay: {PACE * n - seconds:.1f}s" for n in range(len(pictures))]
    style = f"""<style>@media (prefers-reduced-motion: no-preference) {{
.frame {{ visibility: hidden; animation: show {seconds:.1f}s step-end infinite }}
.frame:last-of-type {{ animation-name: stay }}
@keyframes show {{ 0% {{ visibility: visible }} {share:.3f}% {{ visibility: hidden }} }}
@keyframes stay {{ 0% {{ visibility: visible }} {100 * STILL / seconds:.3f}% {{ visibility: hidden }} }}
}}</style>"""
    frames = [f'<g class="frame" style="{time}">\n{one}</g>' for time, one in zip(times, pictures, strict=True)]
    box = pictures[0].split('viewBox="')[1].split('"')[0]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">', style, *frames, "</svg>\n"])


def photograph(page: Path) -> None:
    """Pictures of the page, light and dark."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("no Chromium: the pictures of the page are left as they were")
    with tempfile.TemporaryDirectory() as folder:
        for (name, height), theme in itertools.product(SHOTS.items(), THEMES):
            alone = f"main > section:not(#{name}) {{ display: none !important }}</style>"
            part = Path(folder, "part.html")
            part.write_text(page.read_text(encoding="utf-8").replace("</style>", alone, 1), encoding="utf-8")
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            # Its plots are drawn: milliseconds of the page's own clock, and every frame of them, on busy machines too.
            options += ["--virtual-time-budget=15000", "--run-all-compositor-stages-before-draw"]
            options += [f"--blink-settings=preferredColorScheme={THEMES.index(theme)}", f"--window-size=1280,{height}"]
            options += [f"--screenshot={PICTURES / f'page-{name}-{theme}.png'}", part.as_uri()]
            subprocess.run([chromium, *options], check=True, capture_output=True, timeout=120)


def _write(name: str, svg: str) -> None:
    (PICTURES / f"terminal-{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
