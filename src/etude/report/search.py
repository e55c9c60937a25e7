"""What a search found: its trials by validation score, and what so many trials may be expected to find.

A trial is what was tried, whatever its seeds. It is ranked by its validation perplexity, for who chooses by the test
set has trained on it; of the test set the best trial's score is shown, and no other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean

from etude.config.studies import value_at
from etude.errors import UserError
from etude.report.rows import Column, Row, Rows
from etude.report.statistics import Scores, expected_best
from etude.report.wording import fixed
from etude.rundir import RunDir

Words = frozenset[str]
"""What was typed for a run, as far as it can change what the run finds."""

_NO_MATTER = ("hydra", "stale", "runs_dir", "cache_dir", "trainer", "logger")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?(e[-+]?\d+)?")
_ROOM = 8  # characters that a number may take as it was drawn
_TOLD = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of trials, for which the expected best is told


@dataclass(frozen=True)
class Trial:
    """One thing that was tried.

    Attributes:
        words: key -> value, as typed; those that all trials share and the seed left out.
        runs: its finished ones, one a seed.
        perplexity: of the validation set, the mean over its runs; infinite or NaN where one diverged.
    """

    words: dict[str, str]
    runs: list[RunDir]
    perplexity: float

    def test(self, metric: str) -> float:
        """The mean over its runs of a score on the test set."""
        return fmean(float(value_at(run.result(), f"test.{metric}")) for run in self.runs)


def search(name: str, planned: Sequence[Sequence[str]], runs_dir: Path, drawn: bool) -> Rows:
    """The table of a search.

    Args:
        name: what was typed to start it, such as "sweeps/learning_rate.yaml run_cap=40".
        planned: the overrides of each of its runs.
        runs_dir: where the runs lie.
        drawn: whether the trials were drawn at random, so that luck can be reckoned.

    Raises:
        UserError: none of its runs is finished.
    """
    wanted = dict.fromkeys(_words(overrides) for overrides in planned)
    there = _finished(runs_dir)
    trials = _trials([words for words in wanted if words in there], there, _varied(wanted))
    if not trials:
        raise UserError(
            f"{runs_dir} holds no finished run of this search; this makes them: etude sweep {name}  "
            "(what was typed behind etude sweep is typed here too)"
        )
    missing = sum(words not in there for words in wanted)
    return _rows(name, trials, missing, drawn)


def _words(overrides: Iterable[str]) -> Words:
    plain = (override.strip().lstrip("+") for override in overrides)
    return frozenset(word for word in plain if word and not word.lstrip("~").startswith(_NO_MATTER))


def _finished(runs_dir: Path) -> dict[Words, RunDir]:
    """By what was typed for it; the newest of those for which the same was."""
    found = [RunDir(file.parent) for file in runs_dir.glob("*/*/seed*/result.json")]
    newest_last = sorted(found, key=lambda run: run.result_file.stat().st_mtime)
    return {
        _words(run.overrides_file.read_text(encoding="utf-8").splitlines()): run
        for run in newest_last
        if run.overrides_file.is_file()
    }


def _varied(wanted: Iterable[Words]) -> list[str]:
    """The keys that not all runs share, but for the seed."""
    runs = [dict(_pair(word) for word in words) for words in wanted]
    keys = sorted({key for run in runs for key in run} - {"seed"})
    return [key for key in keys if len({run.get(key, "") for run in runs}) > 1]


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key, value


def _trials(done: Iterable[Words], there: Mapping[Words, RunDir], varied: Sequence[str]) -> list[Trial]:
    """The best first, those that diverged last."""
    grouped: dict[tuple[str, ...], list[RunDir]] = {}
    for words in done:
        values = dict(_pair(word) for word in words)
        grouped.setdefault(tuple(values.get(key, "") for key in varied), []).append(there[words])
    trials = [
        Trial(dict(zip(varied, values, strict=True)), runs, fmean(_perplexity(run) for run in runs))
        for values, runs in grouped.items()
    ]
    return sorted(trials, key=lambda trial: trial.perplexity if isfinite(trial.perplexity) else float("inf"))


def _perplexity(run: RunDir) -> float:
    return float(value_at(run.result(), "valid.perplexity"))


def _rows(name: str, trials: Sequence[Trial], missing: int, drawn: bool) -> Rows:
    columns = [*(Column(key, words=not _numbers(key, trials)) for key in trials[0].words), Column("PPL", "validation")]
    several = any(len(trial.runs) > 1 for trial in trials)
    rows = [
        Row(
            group="",
            cells=[
                *map(_short, trial.words.values()),
                fixed(trial.perplexity, 2),
                *([str(len(trial.runs))] if several else []),
            ],
            run=True,
        )
        for trial in trials
    ]
    left_out = [f"Not finished: {missing} {'run' if missing == 1 else 'runs'} of the search."] if missing else []
    file = name.split()[0]
    return Rows(
        file,
        Path(file).stem,
        [*columns, *([Column("seeds")] if several else [])],
        rows,
        notes=[f"The runs of: etude sweep {name}", *_notes(trials, drawn)],
        left_out=left_out,
    )


def _numbers(key: str, trials: Sequence[Trial]) -> bool:
    return all(_NUMBER.fullmatch(trial.words[key]) for trial in trials)


def _short(value: str) -> str:
    """A drawn number to four figures; the best one's note tells it in full."""
    return f"{float(value):.4g}" if _NUMBER.fullmatch(value) and len(value) > _ROOM else value


def _notes(trials: Sequence[Trial], drawn: bool) -> list[str]:
    best, finite = trials[0], [trial.perplexity for trial in trials if isfinite(trial.perplexity)]
    told = []
    if isfinite(best.perplexity):
        chosen = " ".join(f"{key}={value}" for key, value in best.words.items())
        told.append(
            f"The best of {len(trials)} by validation perplexity, {chosen}, has on the test set a perplexity of "
            f"{fixed(best.test('perplexity'), 2)} and {fixed(best.test('bleu'), 1)} BLEU. The others' are not shown: "
            "who chooses by the test set has no test set left."
        )
    if len(finite) < len(trials):
        told.append(f"{len(trials) - len(finite)} of {len(trials)} diverged.")
    if drawn and len(finite) > 1:
        told.append(_expected(finite, len(trials) - len(finite)))
    return told


def _expected(perplexities: Sequence[float], diverged: int) -> str:
    found = expected_best(Scores("the search", perplexities), lower_is_better=True)
    kept = [n for n in _TOLD if n < len(perplexities)] + [len(perplexities)]
    curve = ", ".join(f"{n}: {fixed(found.expected[n - 1], 2)} ± {fixed(found.deviation[n - 1], 2)}" for n in kept)
    among = " that did not diverge" if diverged else ""
    return (
        f"Expected best of n trials{among} (Dodge et al. 2019) and its standard deviation: {curve}. "
        "Near the end it is too modest: what is better than the best of these, they cannot show."
    )
