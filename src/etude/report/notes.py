"""The notes below a table: the meaning of its marks and numbers, and their limits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from etude.report.agreement import on_agreement, on_ranks
from etude.report.comparison import BUDGET, TOLERANCE, ArmResult, Compared
from etude.report.confounds import find_confounds
from etude.report.effects import on_company, on_effects
from etude.report.more_trials import on_more_trials
from etude.report.sequential import on_looks
from etude.report.significance_notes import on_differences
from etude.report.wording import SUPERSCRIPTS, format_fixed, format_range, format_value, name_arms
from etude.store.identity import find_copies
from etude.store.provenance import explain_marks, is_one_code, marks_on_code, notes_on_libraries
from etude.store.records import Run
from etude.store.run_state import State
from etude.study.study import value_at

_BUDGET = "§"
_AFTER_A_LOOK = (
    " Seeds added after a look at the table make false stars more likely: whoever looks after each seed from 3 to 10 "
    "gives one in 14 % of comparisons, not in 5 %."
)


@dataclass(frozen=True)
class Note:
    """A sentence below a table."""

    text: str
    mark: str = ""  # the mark in a cell that it explains
    is_command: bool = False  # to be pasted, so that it must not be wrapped or escaped

    def __str__(self) -> str:
        return f"{self.mark} {self.text}".strip()


def marks(compared: Compared) -> dict[str, str]:
    """Return the marks behind the name of each arm: numbers of footnotes, § and marks on code."""
    footnotes = _numbered(compared)
    marked = {}
    for arm in compared.arms:
        numbers = [n for n, arms in enumerate(footnotes.values(), start=1) if arm.arm in arms]
        mark = "".join(str(n).translate(SUPERSCRIPTS) for n in numbers) + (_BUDGET if arm.budget else "")
        marked[arm.arm] = mark + marks_on_code(run.code for run in arm.runs)
    return marked


def _numbered(compared: Compared) -> dict[str, list[str]]:
    """Return the numbered footnotes in order, each with the arms that it applies to."""
    sweep = f"etude sweep {compared.study.name}"
    edited = f"Made before study.yaml was edited: the arm has other values now; {sweep} makes the runs that have them."
    return find_confounds(compared) | ({edited: compared.edited} if compared.edited else {})


def notes(compared: Compared) -> list[Note]:
    """Return all notes: first the agreement with the paper, then the meaning of the marks, then the rest."""
    runs = [run for arm in compared.arms for run in arm.runs]
    explained = {str(n).translate(SUPERSCRIPTS): text for n, text in enumerate(_numbered(compared), start=1)}
    explained |= _budgets(compared.arms) | explain_marks(run.result for run in runs if run.code)
    first = [*on_agreement(compared), *_on_tuning(compared)]
    rest = [
        *_on_copies(compared),
        *notes_on_libraries(run.result for run in runs),
        *_on_mixed_code(compared.arms),
        *_on_empty_columns(compared, runs),
        *compared.notes,
        *_on_seeds(compared),
        *on_differences(compared),
        *on_effects(compared),
        *on_company(compared),
        *_on_conditions(compared, runs),
        *on_ranks(compared),
        *_on_unfinished(compared.arms),
    ]
    return [*map(Note, first), *(Note(text, mark) for mark, text in explained.items()), *map(Note, rest)]


def _on_unfinished(arms: Sequence[ArmResult]) -> list[str]:
    """Say why runs failed, and which others are unfinished."""
    failed = [run.failure for arm in arms for run in arm.unfinished if run.state is State.FAILED]
    others = {arm.arm: [run for run in arm.unfinished if run.state is not State.FAILED] for arm in arms}
    begun = ", ".join(f"{arm} (seed {_seeds(runs)})" for arm, runs in others.items() if runs)
    return [*(f"{why}." for why in failed), *[f"Not finished yet: {begun}."] * bool(begun)]


def _seeds(runs: Iterable[Run]) -> str:
    return ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))


def _on_mixed_code(arms: Sequence[ArmResult]) -> list[str]:
    """List the arms whose seeds were run with different versions of the code, with the mark of each seed."""
    mixed = []
    for arm in arms:
        if not is_one_code(run.result for run in arm.runs):
            marked = [f"{run.seed}{mark}" for run in arm.runs if (mark := marks_on_code([run.code]))]
            mixed.append(f"{arm.arm} (seed {', '.join(marked)})")
    return [f"Averaged over seeds of different versions of the code: {'; '.join(mixed)}."] * bool(mixed)


def _on_empty_columns(compared: Compared, runs: Sequence[Run]) -> list[str]:
    """List the columns for which no run has a value, which a misspelt key makes, too."""
    columns = compared.study.columns.items()
    empty = [f"{header} ({key})" for header, key in columns if all(value_at(run.config, key) is None for run in runs)]
    return [f"No run has a value for the columns {', '.join(empty)}."] * bool(runs and empty)


def _on_tuning(compared: Compared) -> list[str]:
    """Report the best tuned value of each arm, and how many values were tried."""
    tuned, readings = compared.tuned, compared.readings
    if tuned is None:
        return []
    own = _only_tuned(tuned, compared)
    arms = [arm.arm for arm in tuned.arms if arm.runs]
    if not arms:
        return own
    chosen: dict[str, list[str]] = {}
    for arm in (arm for arm in readings.values if arm in arms):
        pairs = zip(compared.study.tune, readings.values[arm], strict=True)
        chosen.setdefault(", ".join(f"{key}={format_value(value)}" for key, value in pairs), []).append(arm)
    trials = format_range(readings.trials[arm] for arm in arms)
    alike = ", the same for all arms" * (len({readings.trials[arm] for arm in arms}) == 1)
    of = f"{trials} draws{alike}" if compared.study.draws else f"{trials} values"
    best = "; ".join(f"{values}: {', '.join(names)}" for values, names in chosen.items())
    pilots = ", ".join(map(str, compared.study.pilots))
    return [
        f"tuned: each arm with the best of {of}, by validation loss on seed {pilots}, which the table does not hold: "
        f"{best}.",
        *on_more_trials(readings.losses),
        *on_agreement(tuned, "Tuned: agreement")[:1],
        *own,
    ]


def _only_tuned(tuned: Compared, compared: Compared) -> list[str]:
    """Say what is missing or different in the tuned reading only."""
    sentences = [f"Tuned: {note}" for note in tuned.notes if note not in compared.notes]
    if not tuned.baseline.runs:
        sentences.append(f"Tuned: {tuned.baseline.arm} has no run at its best value, so that nothing is compared.")
    if tuned.edited:
        sentences.append(f"Tuned: {', '.join(tuned.edited)} made before study.yaml was edited.")
    seeds = {arm.arm: arm.seeds for arm in compared.arms}
    others = [f"{arm.arm} {_seeds(arm.runs)}" for arm in tuned.arms if arm.runs and arm.seeds != seeds[arm.arm]]
    return sentences + [f"Tuned, the seeds are others: {'; '.join(others)}."] * bool(others)


def _on_seeds(compared: Compared) -> list[str]:
    """Say which arms have more or fewer seeds than the study fixed in advance."""
    fixed_before = compared.study.seeds
    if not isinstance(fixed_before, int):
        return on_looks(compared)
    counts = {arm.arm: len(arm.runs) + len(arm.diverged) for arm in compared.arms if arm.runs or arm.diverged}
    more = [arm for arm, seeds in counts.items() if seeds > fixed_before]
    fewer = [arm for arm, seeds in counts.items() if seeds < fixed_before]
    return [
        f"{word} seeds than the {fixed_before} that the study fixes: {name_arms(arms, len(counts), 'all arms')}.{why}"
        for word, arms, why in (("More", more, _AFTER_A_LOOK), ("Fewer", fewer, ""))
        if arms
    ]


def _budgets(arms: Sequence[ArmResult]) -> dict[str, str]:
    """Explain the mark of a budget by the budgets that differ from the baseline's, by kind."""
    sentences = []
    for what in BUDGET.values():
        if multiples := [f"{arm.arm} {arm.budget[what]:.2f}" for arm in arms if what in arm.budget]:
            sentences.append(f"{what}: {', '.join(multiples)}")
    meaning = f"Not the baseline's budget, by more than {100 * TOLERANCE:.0f} %; as a multiple of it"
    return {_BUDGET: f"{meaning}: {'; '.join(sentences)}."} if sentences else {}


def _on_copies(compared: Compared) -> list[str]:
    """List the arms that are the same run as the baseline, or as another arm."""
    base = compared.baseline
    told = [arm for arm in (base, *compared.arms) if arm.runs and arm.runs[0].code]  # of another trainer, none is known
    of_run = {arm.arm: arm.runs[0].config | {"trained_as": arm.runs[0].trained_as} for arm in told}  # a CSV tells less
    configs = {"the baseline" if name == base.arm else name: config for name, config in of_run.items()}
    return [f"Arms that are the same run as {one}: {', '.join(rest)}." for one, rest in find_copies(configs).items()]


def _on_conditions(compared: Compared, runs: Sequence[Run]) -> list[str]:
    """Describe the setting, the test set and the signatures of the metrics; then the paper's."""
    if not runs:
        return []
    metrics, paper = compared.study.metrics.values(), compared.study.paper
    scores = ", ".join(metric.label for metric in metrics if metric.over == "text" and metric.key.startswith("test."))
    translated = [value_at(run.result, "test.sentences") for run in runs]
    whole = [value_at(run.result, "test.pairs") or one for run, one in zip(runs, translated, strict=True)]
    part = (
        ""
        if whole == translated or None in translated or not scores
        else f", {scores} on the first {format_range(translated)} of them"
    )
    steps = [int(steps) for run in runs if (steps := run.score("steps")) is not None]
    conditions = (
        *[", ".join(f"{key}={value}" for key, value in compared.setting.items())][: len(compared.setting)],
        *([f"{format_range(steps)} steps"] if len(steps) == len(runs) else []),
        f"seed {_seeds(runs)}",
        *([f"tested on {format_range(whole)} sentences{part}"] if None not in whole else []),
        *(f"{metric.label} per subword" for metric in metrics if metric.over == "tokens"),
    )
    sentences = [f"{'Ours' if paper.arms else 'All arms'}: {'; '.join(conditions)}."]
    signatures = {
        m.scorer: sorted({str(value) for run in runs if (value := value_at(run.result, m.signature))}) for m in metrics
    }
    sentences += [f"{scorer}: {' or '.join(found)}" for scorer, found in signatures.items() if found]
    sentences += [f"Paper: {paper.source}; {paper.test_set}."] * bool(paper.arms)
    return sentences + _on_the_papers_recipe(compared)


def _on_the_papers_recipe(compared: Compared) -> list[str]:
    """Give the baseline's BLEU as computed by sacreBLEU and as computed by Vaswani et al."""
    base, metrics = compared.baseline, compared.study.metrics.values()
    metric = next((one for one in metrics if one.sentences and one.name in compared.study.printed), None)
    scored = [score for run in base.runs if (score := run.score("test.paper_bleu")) is not None]
    if metric is None or metric.name not in base.means or len(scored) < len(base.runs):
        return []
    return [
        "BLEU is sacreBLEU here, and in Vaswani et al. 2017 that of tokenised text with German compounds split: the "
        f"mean of {base.arm} is {format_fixed(base.means[metric.name].value, 2)} by the one, "
        f"{format_fixed(fmean(scored), 2)} by the other."
    ]
