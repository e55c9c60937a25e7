"""How long `etude report` takes with several seeds an arm, statistics included, from start to end of the process.

    python benchmarks/reporting.py [--seeds 3] [--sentences 1000]

The runs are made up: Table 3, every translation different from every other, which is the most work there can be.
"""

import argparse
import random
import tempfile
from pathlib import Path

from omegaconf import OmegaConf
from turns import seconds_of

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.store.results_version import RESULTS_VERSION
from etude.store.run_dir import RunDir
from etude.study.study import load_study
from etude.tasks.bleu import bleu

WORDS = [
    f"{start}{end}" for start in ("ba", "de", "gi", "lo", "mu", "ste", "tra") for end in ("k", "nen", "r", "st", "")
]
LENGTH = 12  # words of a sentence, as in Multi30k
RIGHT = 0.7  # of the words of a translation
TIMES = 3


def lines(chance: random.Random, sentences: int) -> list[str]:
    sizes = (max(1, round(chance.gauss(LENGTH, 4))) for _ in range(sentences))
    return [f"{' '.join(chance.choices(WORDS, k=size))}." for size in sizes]


def translated(chance: random.Random, references: list[str]) -> list[str]:
    return [
        " ".join(word if chance.random() < RIGHT else chance.choice(WORDS) for word in line.split())
        for line in references
    ]


def make_up(runs_dir: Path, seeds: int, sentences: int) -> int:
    chance = random.Random(0)
    references = lines(chance, sentences)
    runs = 0
    for arm in load_study("table3").arms:
        config = resolve(compose([f"experiment=table3/{arm}"]))
        for seed in range(1, seeds + 1):
            run = RunDir(runs_dir / "table3" / arm / f"seed{seed}-{runs:010x}")
            run.path.mkdir(parents=True)
            run.config_file.write_text(OmegaConf.to_yaml(OmegaConf.create(config | {"seed": seed})))
            run.overrides_file.write_text(f"experiment=table3/{arm}\nseed={seed}\n")
            hypotheses = translated(chance, references)
            for file, text in (
                (run.sources_file, references),
                (run.references_file, references),
                (run.hypotheses_file, hypotheses),
            ):
                file.write_text("".join(f"{line}\n" for line in text))
            found = bleu(hypotheses, references)
            test = {"perplexity": chance.gauss(5, 0.1), "bleu": found["score"], "signature": found["signature"]}
            test |= {"sentences": sentences, "tokens": LENGTH * sentences}
            result = {"parameters": 475904, "steps": 1000, "tokens": 260000, "test": test, "store": "made up"}
            run.write_result(result | {"results_version": RESULTS_VERSION, "finished": True})
            runs += 1
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = make_up(Path(folder), options.seeds, options.sentences)
        told = ", ".join(f"{seconds_of('report', 'table3', f'runs_dir={folder}'):.1f}" for _ in range(TIMES))
        print(f"{runs} runs, {options.sentences} sentences each: etude report {told} s", flush=True)


if __name__ == "__main__":
    main()
