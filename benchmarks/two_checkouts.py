"""Show that a change of code changes no result: two checkouts train the same to the last bit on this machine.

    git worktree add ../before COMMIT
    python benchmarks/two_checkouts.py ../before .
    python benchmarks/two_checkouts.py ../before . experiment=table3/C1 budget=smoke

Both train ten small arms of all families, or what the words say, from their own text on. Compared are the SHA-256 of
the final weights, and `result.json` without times and what it says of the code. Exit status 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from soak import TIMES, without

ARMS = [
    *("axes/base", "axes/position-rope", "axes/norm-rms", "axes/feedforward-swiglu", "axes/attention-local"),
    *("axes/attention-linear", "axes/encoder-convolution", "axes/decoder-recurrent"),
    *("families/self_attention", "families/recurrent"),
]
IGNORED = TIMES | {"code", "results_version", "own_files"}


def start(tree: Path, words: list[str], folder: Path) -> subprocess.Popen[str]:
    folder.mkdir(parents=True)
    fixed = ["logger=none", "trainer.matmul=default", f"runs_dir={folder}", f"cache_dir={folder.parent / 'cache'}"]
    env = os.environ | {"PYTHONPATH": str(tree.resolve() / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "etude", "train", *words, *fixed]
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def found(folder: Path) -> tuple[str, str]:
    """The digest of the weights of the run below `folder`, and its result."""
    [file] = folder.glob("*/*/*/result.json")
    [newest] = {path.resolve() for path in file.parent.glob("**/checkpoints/last.ckpt")} or {
        (file.parent / "training" / "checkpoints" / "last.ckpt").resolve()
    }
    weights = torch.load(newest, weights_only=True)["state_dict"]
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    result = without(json.loads(file.read_text(encoding="utf-8")), IGNORED)
    return digest.hexdigest(), json.dumps(result, sort_keys=True)


def difference(trees: list[Path], words: list[str], sides: list[Path]) -> str:
    """What differs between the runs of these words by both trees, each in a folder; "" if nothing does."""
    for process in [start(tree, words, side) for tree, side in zip(trees, sides, strict=True)]:
        errors = process.communicate()[1]
        if process.returncode:
            sys.exit(f"{' '.join(words)} failed:\n{errors[-2000:]}")
    weights, results = zip(*map(found, sides), strict=True)
    return ", ".join(name for name, pair in (("weights", weights), ("result.json", results)) if len({*pair}) > 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, type=Path, help="the two checkouts")
    parser.add_argument("words", nargs="*", help="of `etude train`")
    given = parser.parse_args()
    for tree in given.trees:
        if not (tree / "src" / "etude").is_dir():
            parser.error(f"there is no folder {tree / 'src' / 'etude'}")
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        each = [given.words] if given.words else [[f"experiment={arm}", "budget=smoke"] for arm in ARMS]
        for number, words in enumerate(each):
            what = difference(given.trees, words, [Path(folder, side, str(number)) for side in ("before", "after")])
            print(f"NOT THE SAME {' '.join(words)}: {what}" if what else f"same {' '.join(words)}", flush=True)
            differ += bool(what)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
