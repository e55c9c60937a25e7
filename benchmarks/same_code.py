"""Show that a change of code changes no result, so that runs keep the name of the code before it.

    git worktree add ../before COMMIT
    python benchmarks/same_code.py ../before FOLDER_WITH_MULTI30K

Every arm of docs/record that the code of COMMIT made is trained for some steps by that code and by this: weights,
optimizer, losses, scores and translations must be the same to the last bit. Code for which they are is known by the
name of the code before from then on (src/etude/runs/same_code.txt), so that no table marks results that it did not
change. Code for which they are not has a name of its own, and the exit status is 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from soak import TIMES, digest

ROOT = Path(__file__).resolve().parents[1]
RECORD, NAMES = ROOT / "docs" / "record", ROOT / "src" / "etude" / "runs" / "same_code.txt"
SHORT = {"max_steps": 60, "warmup_steps": 20, "val_every": 20, "bleu_sentences": 40, "test_pairs": 200}
# How something was scored is of metrics alone, and not told by all code.
_IGNORED = TIMES | {"code", "store", "scored_by", "bits_per_byte_signature", "accuracy_signature"}
NAME = """
import json, sys
from pathlib import Path
from etude.runs.code import {0}
from etude.runs.run_dir import RunDir
print(json.dumps([{0}(RunDir(Path(run)).config()) for run in sys.argv[1:]]))
"""
TRAIN = """
import json, sys
from pathlib import Path
from etude.model import precision
from etude.runs.run_dir import RunDir
from etude.training.run import train
precision._processor_has_bf16 = lambda: True  # mixed precision is compared on any processor, on some slowly
for run in sys.argv[1:]:
    try:
        train(RunDir(Path(run)))
        print(json.dumps(""))
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
    sys.stdout.flush()
"""


def python(program: str, tree: Path, runs: Sequence[Path], **options: Any) -> subprocess.Popen[str]:
    """Start a program on some runs by the code in `tree`."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, runs)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tree.resolve() / "src"), "OMP_NUM_THREADS": "1"},
        **options,
    )


def codes(of: str, tree: Path, runs: Sequence[Path]) -> dict[Path, str]:
    """What a function of `etude.runs.code` in `tree` says of the config of each run."""
    return dict(zip(runs, json.loads(python(NAME.format(of), tree, runs).communicate()[0]), strict=True))


def arms(before: Path) -> dict[Path, str]:
    """One run of each arm of the record that the code before made, and the name of that code."""
    runs = (file.parent for file in sorted(RECORD.rglob("result.json")))
    each = list({run.parent: run for run in runs}.values())
    made = (json.loads((run / "result.json").read_text(encoding="utf-8"))["code"] for run in each)
    names = codes("code_fingerprint", before, each)
    return {run: name for (run, name), code in zip(names.items(), made, strict=True) if name == code}


def shortened(config: dict[str, Any], cache: Path) -> dict[str, Any]:
    """The config for some steps, with prepared text of its own."""

    def short(section: str) -> dict[str, Any]:
        return {key: SHORT.get(key, value) for key, value in config[section].items()}

    averaging = config["averaging"] | ({"every": 2} if config["averaging"]["checkpoints"] else {})
    sections = {section: short(section) for section in ("budget", "data", "schedule")}
    return config | sections | {"averaging": averaging, "cache_dir": str(cache)}


def start(tree: Path, runs: Sequence[Path], folder: Path, data: Path) -> subprocess.Popen[str]:
    """Train these runs by the code in `tree`, one after the other, below `folder`; a line says what went wrong."""
    for run in runs:
        short = folder / run.relative_to(RECORD)
        short.mkdir(parents=True)
        config = shortened(yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8")), folder / "cache")
        (short / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        for name in ("overrides.txt", "training.txt"):
            shutil.copyfile(run / name, short / name)
    with (folder / "stderr.txt").open("w") as errors:
        return python(TRAIN, tree, [folder / run.relative_to(RECORD) for run in runs], stderr=errors, cwd=data)


def differing(before: Path, runs: Sequence[Path], folder: Path, data: Path) -> list[Path]:
    """Train these runs by both, and return those that are not the same."""
    sides = folder / "before", folder / "today"
    both = [start(tree, runs, side, data) for tree, side in zip((before, ROOT), sides, strict=True)]
    found = []
    for run in runs:
        name = run.relative_to(RECORD)
        said = [one.stdout.readline() if one.stdout else "" for one in both]
        if "" in said:
            sys.exit(f"one of both has ended: {[(side / 'stderr.txt').read_text()[-2000:] for side in sides]}")
        why = next(filter(None, map(json.loads, said)), "")
        same = not why and len({digest(side / name, _IGNORED) for side in sides}) == 1
        print("same" if same else "NOT THE SAME", name, why, flush=True)
        found += [] if same else [run]
    return found


def write_names(names: Mapping[str, str]) -> None:
    """Write down today's digits and what they are known as, in place of what earlier code was known as."""
    lines = NAMES.read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("#")]
    kept = [line for line in lines if not line.startswith("#") and line.split()[1] not in names.values()]
    NAMES.write_text("\n".join([*head, *sorted([*kept, *map(" ".join, names.items())]), ""]), encoding="utf-8")


def main() -> int:
    """Train, compare and write; 1 if anything is not the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the code before")
    parser.add_argument("data", type=Path, help="the folder in which there is a folder multi30k")
    given = parser.parse_args()
    for place in (given.before / "src" / "etude", given.data / "multi30k"):
        if not place.is_dir():
            parser.error(f"there is no folder {place}")
    known = arms(given.before)
    if not known:
        parser.error(f"the code in {given.before} made no run of {RECORD}")
    today = codes("code_digits", ROOT, [*known])
    with tempfile.TemporaryDirectory() as folder:
        changed = differing(given.before, [*known], Path(folder), given.data)
    other = {today[run] for run in changed}
    write_names({today[run]: known[run] for run in known if today[run] not in {*other, known[run]}})
    print(f"{len(known)} arms, {len({*known.values()})} of code of their own; {len(changed)} not the same")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
