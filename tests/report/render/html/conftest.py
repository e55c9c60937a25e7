"""A headless Chromium, spoken to in its own protocol over a pipe: no driver, no port, no package.

And made-up studies to show in it.
"""

import base64
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import yaml

from etude.report.compare import compare
from etude.report.comparison import Compared
from etude.report.selection import select
from etude.report.statistics.sentences import count
from etude.store.records import read_rows
from etude.store.run_dir import RunDir
from etude.study.study import load_study

# Chromium reads from descriptor 3 and writes to 4. Both are moved out of the way first: either may be the other.
_PIPED = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--hide-scrollbars",
)


class RefusedError(Exception):
    """The browser did not do what it was asked for."""


class Browser:
    """One Chromium; a context manager. Each `open` is a fresh tab."""

    def __init__(self, executable: str, profile: Path) -> None:
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        words = [executable, *_FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PIPED, str(reads), str(writes), *words],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._left = b""
        self._last = 0
        self.listeners: dict[str, Callable[[dict[str, Any]], None]] = {}

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The answer of a method of the DevTools protocol; events that come before it are handed to their tabs."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        os.write(self._to, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RefusedError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("sessionId") in self.listeners:
                self.listeners[answer["sessionId"]](answer)

    def open(self, url: str, width: int = 1280, height: int = 900, **emulated: str) -> "Tab":
        """A new tab at `url`, loaded; `emulated` are media features, such as prefers_color_scheme="dark"."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        tab.resize(width, height)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in emulated.items()]
        tab.call("Emulation.setEmulatedMedia", features=features)
        tab.go(url)
        return tab

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            read = os.read(self._from, 1 << 20)
            assert read, "Chromium is gone"
            self._left += read
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)


class Tab:
    """A page in the browser, with what it complained of and what it asked the network for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.complaints: list[str] = []
        self.requests: list[str] = []
        browser.listeners[session] = self._heard
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && 'ready' in document.documentElement.dataset")

    def resize(self, width: int, height: int, phone: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def run(self, script: str) -> Any:
        """The value of an expression, promises awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str, seconds: float = 20) -> None:
        """Wait until an expression is true."""
        waiting = f"""new Promise((resolve, reject) => {{
            const end = Date.now() + {1000 * seconds};
            const look = () => {condition} ? resolve() : Date.now() > end ? reject("never") : setTimeout(look, 20);
            look();
        }})"""
        while True:
            try:
                answer = self.call("Runtime.evaluate", expression=waiting, awaitPromise=True)
            except RefusedError:  # the page that was waiting has gone, and another has come
                continue
            assert "exceptionDetails" not in answer, f"{condition}: {answer['exceptionDetails']}"
            return

    def press(self, selector: str) -> None:
        """A real press of the mouse on the middle of an element."""
        self.run(
            f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})"
        )
        left, top, width, height = self.box(selector)
        for kind in ("mousePressed", "mouseReleased"):
            x, y = left + width / 2, top + height / 2
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Where an element is on the screen: left, top, width, height."""
        box = self.run(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
        return box["x"], box["y"], box["width"], box["height"]

    def choose(self, select: str, value: str) -> None:
        """Choose an option, as a person would."""
        self.run(
            f"(select => {{ select.value = {json.dumps(value)}; select.dispatchEvent(new Event('change')); }})"
            f"(document.querySelector({json.dumps(select)}))"
        )

    def key(self, key: str, code: int, text: str = "") -> None:
        """A real press of a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A real drag of the mouse."""
        moves = (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end))
        for kind, (x, y) in moves:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def pdf(self) -> bytes:
        """What would be printed."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def _heard(self, event: dict[str, Any]) -> None:
        method, told = event["method"], event["params"]
        if method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([one.get("value", one.get("description")) for one in told["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(f"{told['entry']['level']}: {told['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not found:
        pytest.skip("needs a browser: apt-get install chromium")
    with Browser(found, tmp_path_factory.mktemp("profile")) as started:
        yield started


WORDS = [f"{start}{end}" for start in ("ba", "de", "gi", "lo", "mu", "tra") for end in ("k", "nen", "r", "st", "")]
METRICS = "step,tokens,seconds,loss,learning_rate,tokens_per_second,valid_loss,valid_perplexity,valid_bleu"
Fabricate = Callable[..., Compared]


@pytest.fixture(scope="session")
def fabricate(tmp_path_factory: pytest.TempPathFactory) -> Fabricate:
    """Makes up a study of arms "base", "A1", "A2", ..., with finished runs; arm k gets fewer words right than k - 1.

    `said` replaces the first sentence: (source, reference, translation); `analysis` lies beside base's first run.
    """

    def make(
        arms: int, seeds: int, sentences: int, said: tuple[str, str, str] | None = None, analysis: Any = None
    ) -> Compared:
        folder = tmp_path_factory.mktemp("study")
        chance = random.Random(0)
        names = ["base", *(f"A{k}" for k in range(1, arms))]
        (folder / "experiments" / "made-up").mkdir(parents=True)
        study = {
            "title": "Heads & <positions>",
            "baseline": "base",
            "arms": {name: [f"model.heads={k}"] if k else [] for k, name in enumerate(names)},
            "columns": {"h": "model.heads", "d_k": "model.d_k"},
            "agreement": {"large": 0.03, "margin": 0.05},
        }
        paper = {
            "source": "Someone 2017",
            "arms": {name: {"ppl": 5 + k / 10, "bleu": 25 - k % 7} for k, name in enumerate(names)},
        }
        for file, content in (("study", study), ("paper", paper)):
            (folder / "experiments" / "made-up" / f"{file}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        references = [" ".join(chance.choices(WORDS, k=chance.randint(4, 20))) + "." for _ in range(sentences)]
        sources = [line.upper() for line in references]
        if said:
            sources[0], references[0] = said[:2]
        for k, name in enumerate(names):
            for seed in range(1, seeds + 1):
                run = RunDir(folder / "runs" / "made-up" / name / f"seed{seed}-{k:05}{seed:05}")
                run.path.mkdir(parents=True)
                config = {
                    "model": {"heads": k, "d_k": 64},
                    "seed": seed,
                    "choices": {"data": "files", "scale": "pocket"},
                }
                run.config_file.write_text(yaml.safe_dump(config))
                run.overrides_file.write_text(f"experiment=made-up/{name}\nseed={seed}\n")
                right = 0.9 - 0.5 * k / arms
                hypotheses = [
                    " ".join(word if chance.random() < right else chance.choice(WORDS) for word in line.split())
                    for line in references
                ]
                if said:
                    hypotheses[0] = said[2] if k else references[0]
                texts = (("hypotheses", hypotheses), ("references", references), ("sources", sources))
                for kind, lines in texts:
                    (run.path / f"{kind}.test.txt").write_text("".join(f"{line}\n" for line in lines))
                bleu = float(count(name, [hypotheses], references).bleu[0])
                test = {
                    "perplexity": 3 + k / 10 + seed / 100,
                    "bleu": bleu,
                    "sentences": sentences,
                    "signature": "nrefs:1",
                }
                costs = {"parameters": 1000 * (k + 1), "steps": 100, "tokens": 5000.0, "seconds": 60.0 + k}
                run.write_result({**costs, "test": test, "store": "s0", "finished": True})
                rows = [
                    f"{step},{50 * step},{step / 10},{100 / step + seed / 50},,,,"
                    f"{20 / step + k + seed / 50},{step / 50}"
                    for step in range(1, 1001)
                ]
                run.metrics_file.write_text("\n".join([METRICS, *rows]) + "\n")
        if analysis:
            (folder / "runs" / "made-up" / "base" / "seed1-0000000001" / "analysis.json").write_text(
                json.dumps(analysis)
            )
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            told = load_study("made-up")
        return compare(told, select(told, read_rows(folder / "runs" / "made-up")[0], {}))

    return make
