"""Small sweeps killed at random moments, and started again each time, end as undisturbed ones: bit for bit.

    python benchmarks/soak.py --kills 50
    python benchmarks/soak.py --search --kills 100

Three sweeps on one folder of runs, which is empty at first: one trains four families (the Transformer, a recurrent
decoder, a convolutional encoder, linear attention), two runs at a time; one shares two of these trainings, with the
same beam in another study and with another; one trains on running text, over the boundaries of documents and not.
Round after round, until as many blows as asked for have fallen. Two
in six of them are SIGKILL to a sweep, the others SIGKILL to one of its runs, SIGTERM and Ctrl-C to a sweep, and `etude
clean --yes`; each falls at a moment drawn from the seed, be it while the text is prepared, in training or in
evaluation. Then the report is struck as well while it writes its page. In the end of a round metrics, hypotheses and
weights of every run, the optimizer where it was not cleaned, and the table of them all, are compared with those of the
same sweeps left in peace. Exit status 1 if anything differs.

With --search, it is searches that are struck: with promotion, by one worker and by two, in turn. With one worker, all
trials are those of the search left in peace, to the last bit of each validation. With two, no trial is lost and none is
there twice, and what the same config found is the same every time.
"""

import argparse
import csv
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

SIGNALS = {"SIGKILL to a sweep": signal.SIGKILL, "SIGTERM to a sweep": signal.SIGTERM, "Ctrl-C": signal.SIGINT}
BLOWS = (*SIGNALS, "SIGKILL to a sweep", "SIGKILL to a run", "clean")
TIMES = {"seconds", "tokens_per_second", "decoding_seconds"}
FAMILIES = "experiment=axes/base,axes/decoder-recurrent,axes/encoder-convolution,axes/attention-linear"
PAIRS = [
    *("data=files", "data.tsv=pairs.tsv", "data.holdout=20", "tokenizer.vocab_size=20"),
    *("budget.source_tokens=200", "decoding.max_len_offset=5"),
]
TEXT = [
    *("task=language_modelling", "data=text", "data.files=text.txt", "tokenizer=char", "data.valid=[0.9,1]"),
    *("data.test=[0.9,1]", "data.separator=x", "budget.context=32", "study=text"),
]
SWEEPS = [
    [*PAIRS, FAMILIES],
    [*PAIRS, "experiment=axes/base,axes/decoder-recurrent", "decoding.beam=2,4", "study=again"],
    [*TEXT, "data.documents=cross,mask"],
]
SETTING = [
    *("-m", "seed=1", "model.d_model=16", "model.d_ff=32", "model.n_layers=1", "logger=none"),
    *("budget.target_tokens=200", "budget.val_every=50", "trainer=cpu", "trainer.matmul=default"),
    *("hydra.launcher.workers=2", "cache_dir=${runs_dir}/cache"),
]


def start(folder: Path, runs: str, steps: int, sweep: list[str]) -> subprocess.Popen[bytes]:
    words = [*SETTING, *sweep, f"budget.max_steps={steps}", f"runs_dir={runs}"]
    command = [sys.executable, "-m", "etude", "train", *words]
    with (folder / f"{runs}.log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def strike(blow: str, sweep: subprocess.Popen[bytes], runs: Path) -> bool:
    """Deal one blow, wait until the sweep has ended where it was meant, and say whether there was something to hit."""
    if blow == "clean":
        command = [sys.executable, "-m", "etude", "clean", "--yes", f"runs_dir={runs.name}"]
        done = subprocess.run(command, cwd=runs.parent, capture_output=True, text=True, check=False)
        if done.returncode and "there is no folder" not in done.stderr:
            sys.exit(f"etude clean: {done.stderr}")
        return "freed" in done.stdout
    if blow == "SIGKILL to a run":
        for pid in training_processes(runs)[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False
    sweep.send_signal(SIGNALS[blow])
    sweep.wait()
    return True


def left_behind(runs: Path, sweeps: list[subprocess.Popen[bytes]]) -> set[int]:
    """The training processes below a folder that no sweep is the launcher of any more."""
    launchers = {str(sweep.pid) for sweep in sweeps if sweep.poll() is None}
    found = set()
    for pid in training_processes(runs):
        with suppress(OSError):
            supervisor = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            words = [Path(f"/proc/{one}/cmdline").read_text().split("\0") for one in (pid, supervisor)]
            if not launchers & {*words[0], *words[1]}:  # a supervisor names its launcher itself
                found.add(pid)
    return found


def training_processes(runs: Path) -> list[int]:
    """Of the runs below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
            inside = (process / "cwd").resolve() == runs.parent
        except OSError:
            continue
        if inside and "etude.training.run" in words and any(word.startswith(f"{runs.name}/") for word in words):
            found.append(int(process.name))
    return sorted(found)


def without(node: dict[str, Any], ignored: Set[str]) -> dict[str, Any]:
    """Return a dictionary and those in it without some keys."""
    kept = {key: value for key, value in node.items() if key not in ignored}
    return {key: without(value, ignored) if isinstance(value, dict) else value for key, value in kept.items()}


def checkpoints(runs: Path) -> dict[str, str]:
    """The digest of weights and optimizer of each training, unless they were cleaned."""
    found = {}
    for file in sorted(runs.glob(".trainings/*/checkpoints/last.ckpt")):
        checkpoint = torch.load(file, weights_only=True)
        moments = [torch.as_tensor(v) for m in checkpoint["optimizer_states"][0]["state"].values() for v in m.values()]
        hashed = hashlib.sha256()
        for tensor in [*checkpoint["state_dict"].values(), *moments]:
            hashed.update(tensor.numpy().tobytes())
        found[file.parents[1].name] = hashed.hexdigest()
    return found


def digest(run: Path, ignored: Set[str] = TIMES) -> str:
    """Of all that a run found, the hash of its weights included, but for how long it took."""
    hashed = hashlib.sha256()
    with (run / "metrics.csv").open(newline="") as file:
        rows = [without(row, ignored) for row in csv.DictReader(file)]
    result = without(json.loads((run / "result.json").read_text()), ignored)
    hashed.update(json.dumps([rows, result], sort_keys=True).encode())
    with suppress(FileNotFoundError):  # a language model has none
        hashed.update((run / "hypotheses.test.txt").read_bytes())
    return hashed.hexdigest()


def digests(runs: Path) -> dict[str, str]:
    return {str(file.parent.relative_to(runs)): digest(file.parent) for file in sorted(runs.glob("*/*/*/result.json"))}


def report(folder: Path, runs: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "etude", "report", "axes", f"runs_dir={runs}"]
    with (folder / f"{runs}.report.log").open("ab") as log:
        words = [*command, "--html", str(folder / f"{runs}.html")]
        return subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, start_new_session=True, text=True)


def table(folder: Path, runs: str) -> str:
    command = [sys.executable, "-m", "etude", "report", "axes", f"runs_dir={runs}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def strike_the_report(folder: Path, runs: str, chance: random.Random, seconds: float) -> str | None:
    """What is wrong with the page that a report was writing when it was struck, within as many `seconds`."""
    page = folder / f"{runs}.html"
    process = report(folder, runs)
    time.sleep(chance.uniform(0, seconds))
    process.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
    process.wait()
    if page.exists() and not page.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        return "half a page"
    if report(folder, runs).wait() or not page.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        return "no page from the report that came after the blow"
    return None


def one_round(folder: Path, runs: str, steps: int, chance: random.Random, most: float, left: int) -> Counter[str]:
    """The blows that fell before the sweeps had ended, `left` at most; whatever else is wrong ends the program."""
    dealt: Counter[str] = Counter()
    dying: set[int] = set()  # what a sweep that was killed has left, and what is writing its checkpoint
    sweeps = [start(folder, runs, steps, words) for words in SWEEPS]
    while True:
        for place, sweep in enumerate(sweeps):
            if sweep.poll() == 1:  # it had lost a run, and went on to the end with the others
                sweeps[place] = start(folder, runs, steps, SWEEPS[place])
            elif sweep.poll():
                log = (folder / f"{runs}.log").read_text()
                sys.exit(f"a sweep ended with {sweep.returncode}:\n{log[-3000:]}")
        going = [place for place, sweep in enumerate(sweeps) if sweep.poll() is None]
        if not going:
            break
        time.sleep(chance.uniform(0.1, most))
        place, blow = chance.choice(going), chance.choice(BLOWS)
        if dealt.total() >= left or sweeps[place].poll() is not None:
            continue
        dealt[blow] += strike(blow, sweeps[place], folder / runs)
        if blow in SIGNALS:
            there = left_behind(folder / runs, sweeps)
            if blow != BLOWS[0] and there - dying:
                sys.exit(f"{blow}: processes were left behind")
            dying = there
            sweeps[place] = start(folder, runs, steps, SWEEPS[place])
    if training_processes(folder / runs):
        sys.exit("processes were left behind in the end")
    return +dealt


def write_text(folder: Path) -> None:
    rows = (" ".join("abcdefgh"[(k * j + k // 64) % 8] for j in range(1, 4 + k % 7)) for k in range(1, 600))
    text = "".join(f"{row} {'abcdefgh'[k % 8]}\t{row} {'abcdefgh'[k % 8]}\n" for k, row in enumerate(rows))
    (folder / "pairs.tsv").write_text(text)
    (folder / "text.txt").write_text(text.replace("\t", "x"))


def soak(folder: Path, kills: int, steps: int, seed: int, most: float) -> int:
    chance = random.Random(seed)
    write_text(folder)
    started = time.monotonic()
    if any(start(folder, "peace", steps, sweep).wait() for sweep in SWEEPS):
        sys.exit(f"the undisturbed sweeps failed:\n{(folder / 'peace.log').read_text()[-3000:]}")
    print(f"undisturbed: {time.monotonic() - started:.0f} s", flush=True)
    started = time.monotonic()
    expected, peace, weights = table(folder, "peace"), digests(folder / "peace"), checkpoints(folder / "peace")
    of_a_report = time.monotonic() - started
    dealt: Counter[str] = Counter()
    rounds = same = 0
    while dealt.total() < kills:
        rounds += 1
        runs = f"war{rounds}"
        dealt += one_round(folder, runs, steps, chance, most, left=kills - dealt.total())
        wrong = strike_the_report(folder, runs, chance, of_a_report)
        if not wrong and (found := table(folder, runs)) != expected:
            wrong = f"the table was and is\n{expected}\n{found}"
        if wrong:
            sys.exit(f"round {rounds}: {wrong}")
        if dealt.total() < kills:
            dealt["any, to the report"] += 1
        war = digests(folder / runs)
        same += sum(peace[run] == war.get(run) for run in peace)
        if not checkpoints(folder / runs).items() <= weights.items():
            sys.exit(f"round {rounds}: weights or optimizer of a training differ")
        print(f"round {rounds}: {dealt.total()} blows, {same} of {rounds * len(peace)} runs the same", flush=True)
        shutil.rmtree(folder / runs)
    told = ", ".join(f"{count} {blow}" for blow, count in sorted(dealt.items()))
    every = rounds * len(peace)
    print(f"{dealt.total()} blows ({told}); {same} of {every} runs are the same to the last bit", flush=True)
    return 0 if same == every and (len(peace), len(weights)) == (10, 6) else 1


SEARCH = """
method: bayes
metric: {name: valid.perplexity}
run_cap: TRIALS
search: {sampler: tpe, manner: promote, rungs: [0.125, 0.375, 1], n_jobs: WORKERS}
parameters:
  budget.lr_factor: {distribution: log_uniform_values, min: 0.3, max: 3}
  model.dropout: {values: [0.0, 0.1, 0.2]}
  budget.warmup_steps: {value: 20}
"""


@dataclass(frozen=True)
class Size:
    """How many trials a search has, and of how many steps each."""

    trials: int
    steps: int


def start_search(folder: Path, runs: str, size: Size, workers: int) -> subprocess.Popen[bytes]:
    file = folder / f"{runs}.yaml"
    file.write_text(SEARCH.replace("WORKERS", str(workers)).replace("TRIALS", str(size.trials)))
    words = [*PAIRS, *SETTING[1:], f"budget.max_steps={size.steps}", f"runs_dir={runs}"]
    with (folder / f"{runs}.log").open("ab") as log:
        command = [sys.executable, "-m", "etude", "sweep", file.name, *words]
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def trials(runs: Path) -> list[tuple[Any, ...]]:
    """What the journal of a search holds of each trial."""
    [journal] = runs.glob("*/*.journal")
    storage = JournalStorage(JournalFileBackend(str(journal)))
    [name] = optuna.get_all_study_names(storage)
    study = optuna.load_study(study_name=name, storage=storage)
    return [
        (one.number, one.params, one.state.name, one.values, one.intermediate_values, one.user_attrs.get("runs"))
        for one in study.trials
    ]


def strike_a_search(
    folder: Path, runs: str, size: Size, workers: int, chance: random.Random, most: float, kills: int
) -> Counter[str]:
    """Carry out a search with so many blows, or until it has ended; how many there were of each kind."""
    dealt, search = Counter[str](), start_search(folder, runs, size, workers)
    while search.poll() is None and dealt.total() < kills:
        time.sleep(chance.uniform(0.1, most))
        blow = chance.choice([*SIGNALS, "SIGKILL to a sweep", "SIGKILL to a sweep", "SIGKILL to a run"])
        if search.poll() is not None:
            break
        dealt[blow] += strike(blow, search, folder / runs)
        if search.poll() is not None:
            search = start_search(folder, runs, size, workers)
    if search.wait() == 1:
        search = start_search(folder, runs, size, workers)
        search.wait()
    if search.returncode:
        sys.exit(f"a search ended with {search.returncode}:\n{(folder / f'{runs}.log').read_text()[-3000:]}")
    return dealt


def soak_searches(folder: Path, kills: int, size: Size, seed: int, most: float) -> int:
    chance = random.Random(seed)
    write_text(folder)
    if start_search(folder, "peace", size, 1).wait():
        sys.exit(f"the undisturbed search failed:\n{(folder / 'peace.log').read_text()[-3000:]}")
    expected, found = trials(folder / "peace"), {Path(run).name: it for run, it in digests(folder / "peace").items()}
    dealt, rounds = Counter[str](), 0
    while dealt.total() < kills:
        rounds += 1
        workers, runs = 2 - rounds % 2, f"war{rounds}"
        dealt += strike_a_search(folder, runs, size, workers, chance, most, kills - dealt.total())
        here = trials(folder / runs)
        if workers == 1 and here != expected:
            sys.exit(f"round {rounds}: the trials were and are\n{expected}\n{here}")
        if [one[0] for one in here] != [*range(len(expected))]:
            sys.exit(f"round {rounds}: trials were lost or are there twice: {here}")
        for run, digest_ in digests(folder / runs).items():
            if found.setdefault(Path(run).name, digest_) != digest_:
                sys.exit(f"round {rounds}: {run} found something else")
        for number, _, state, values, _, where in here:
            result = folder / runs / where[0] / "result.json"
            if state == "COMPLETE" and json.loads(result.read_text())["valid"]["perplexity"] not in values:
                sys.exit(f"round {rounds}: trial {number} has another value than its run")
        print(f"round {rounds}: {dealt.total()} blows, {workers} workers, all the same", flush=True)
        shutil.rmtree(folder / runs)
    told = ", ".join(f"{count} {blow}" for blow, count in sorted(dealt.items()))
    print(f"{dealt.total()} blows ({told}) in {rounds} searches; every trial is the same to the last bit", flush=True)
    return 0


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--kills", type=int, default=50)
    words.add_argument("--steps", type=int, default=400, help="of each run")
    words.add_argument("--seed", type=int, default=1, help="of the moments")
    words.add_argument("--most", type=float, default=12.0, help="seconds between two blows, at most")
    words.add_argument("--search", action="store_true", help="strike searches")
    words.add_argument("--trials", type=int, default=12, help="of each search")
    asked = words.parse_args()
    # A shell has it ignored behind an ampersand, and every sweep would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        here = Path(folder).resolve()
        if asked.search:
            size = Size(asked.trials, asked.steps)
            sys.exit(soak_searches(here, asked.kills, size, asked.seed, asked.most))
        sys.exit(soak(here, asked.kills, asked.steps, asked.seed, asked.most))


if __name__ == "__main__":
    main()
