"""What a sweep costs beside its runs.

    python benchmarks/sweeping.py

1. Four runs of ten steps, one after another: the wall-clock time that is neither training nor translating, a run. Most
   of it is the start of a process that imports PyTorch and Lightning.
2. The same command again: a sweep in which all is finished.
3. Five hundred finished runs: Table 3 with 25 seeds, frozen by the sweep itself, their results made up.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from turns import seconds_of

from etude.config.compose import compose
from etude.config.compose_cache import expand
from etude.config.freeze import freeze_all
from etude.search.sweep_file import sweep_overrides

TEXT = ["data.train_pairs=300", "data.valid_pairs=8", "data.test_pairs=8", "data.vocab_size=300"]
SMALL = ["budget=smoke", "logger=none", "decoding.max_len_offset=5", "trainer=cpu", *TEXT]
FOUR = ["train", "-m", "experiment=table3/base,table3/A1", "seed=1,2", "hydra.launcher.workers=1", *SMALL]
RESULT = {"study": "table3", "seed": 1, "steps": 10, "parameters": 1, "seconds": 1.0, "finished": True}


def timed(folder: Path, *words: str) -> float:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ETUDE_CACHE": str(folder / "cache")}
    return seconds_of(*words, cwd=folder, env=environment, stderr=subprocess.DEVNULL)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        timed(folder, "prepare", *TEXT)
        whole = timed(folder, *FOUR)
        results = [json.loads(file.read_text()) for file in folder.glob("runs/*/*/*/result.json")]
        inside = sum(result["seconds"] + result["decoding_seconds"] for result in results)
        print(f"a run in a sweep, beside training and translating: {(whole - inside) / len(results):.2f} s")
        print(f"a sweep of four finished runs: {timed(folder, *FOUR):.2f} s")
        many = ["sweeps/table3.yaml", "seed=range(1,26)", "runs_dir=many", *SMALL]
        os.chdir(folder)
        os.environ["ETUDE_CACHE"] = str(folder / "cache")
        runs = freeze_all(expand(sweep_overrides(many[0], many[1:])), compose)
        for run in runs:
            test = {"perplexity": 2.0, "bleu": 50.0, "sentences": 8}
            run.write_result(RESULT | {"arm": run.path.parent.name, "test": test})
        print(f"a sweep of {len(runs)} finished runs: {min(timed(folder, 'sweep', *many) for _ in range(3)):.2f} s")


if __name__ == "__main__":
    main()
