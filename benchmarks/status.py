"""How long `etude status` takes for many finished runs, from the start of the process to its end.

    python benchmarks/status.py [--runs 500]

The runs are made up, with files as large as those of real ones.
"""

import argparse
import json
import tempfile
from pathlib import Path

from omegaconf import OmegaConf
from turns import seconds_of

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.store.results_version import RESULTS_VERSION
from etude.study.study import load_study

RESULT = {
    "parameters": 475904,
    "steps": 1000,
    "valid": {"perplexity": 3.09, "tokens": 5716},
    "test": {"perplexity": 3.01, "tokens": 11387, "bleu": 51.6, "sentences": 1000},
    "seconds": 42.0,
    "results_version": RESULTS_VERSION,
    "weights": "0123456789abcdef" * 4,
    "finished": True,
}
LOG = "11:15:13 step 1000/1000  loss 2.324  validation perplexity 3.09  9206 tokens/s  42 s\n" * 20
TIMES = 5


def make_up(runs_dir: Path, runs: int) -> None:
    arms = list(load_study("table3").arms)
    configs = [resolve(compose([f"experiment=table3/{arm}"])) for arm in arms]
    frozen = [OmegaConf.to_yaml(OmegaConf.create(config)) for config in configs]
    for number in range(runs):
        folder = runs_dir / "table3" / arms[number % len(arms)] / f"seed{number // len(arms) + 1}-{number:010x}"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(frozen[number % len(arms)])
        training = runs_dir / ".trainings" / f"{number:010x}"
        training.mkdir(parents=True)
        (training / "trained.json").write_text(json.dumps(RESULT, indent=2))
        (folder / "training.txt").write_text(f"{training.name}\n")
        (folder / "result.json").write_text(json.dumps(RESULT | {"training": training.name}, indent=2))
        (folder / "log.txt").write_text(LOG)
        (folder / ".lock").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_up(Path(folder), options.runs)
        for words in ([], ["--json"]):
            told = ", ".join(f"{seconds_of('status', f'runs_dir={folder}', *words):.2f}" for _ in range(TIMES))
            print(f"{options.runs} finished runs, etude status {' '.join(words):7} {told} s", flush=True)


if __name__ == "__main__":
    main()
