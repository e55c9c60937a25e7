"""Put several studies into one table: an arm that two of them have, such as a shared baseline, stands there once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from etude.report.selection import Selection
from etude.store.identity import canonical
from etude.store.records import Run
from etude.study.metrics import Metric
from etude.study.study import Paper, Study

if TYPE_CHECKING:
    from etude.report import Results

Part = tuple[Study, Selection]


def join_studies(found: "Sequence[Results]") -> list[Part]:
    """Join the studies whose runs share a setting; those of another setting stay apart, in tables of their own."""
    by_setting: dict[str, list[Part]] = {}
    for one in found:
        setting = one.compare().setting
        by_setting.setdefault(canonical(setting), []).append((one.study, one.selection))
    return [parts[0] if len(parts) == 1 else _join(parts) for parts in by_setting.values()]


def _join(parts: Sequence[Part]) -> Part:
    """Make one study of several; each arm is held against what its own study holds it against.

    An arm with the config of one that is there already is that arm, with the runs of both. Of two other arms of one
    name the second has the name of its study before it.
    """
    arms: dict[str, list[str]] = {}
    against: dict[str, str] = {}
    papers: dict[str, dict[str, float | None]] = {}
    columns: dict[str, str] = {}
    metrics: dict[str, Metric] = {}
    by_config: dict[str, str] = {}
    runs: dict[tuple[str, int], Run] = {}
    unfinished: list[Run] = []
    for study, selection in parts:
        names, before = {}, dict(by_config)  # two arms of one study stay two, though their configs be the same
        for arm, overrides in study.arms.items():
            its = next((run for run in selection.runs if run.arm == arm), None)
            config = canonical(its.recipe | {"choices": {}, "text": its.text}) if its else ""
            same_words = next((one for one, words in arms.items() if words == overrides), "")
            if its and same_words in by_config.values():  # the words are the same, and what they gave need not be
                same_words = ""
            name = before.get(config) or same_words or (f"{study.name}/{arm}" if arm in arms else arm)
            names[arm] = name
            by_config |= {config: name} if its else {}
            arms.setdefault(name, overrides)
            if arm in study.paper.arms:
                papers.setdefault(name, study.paper.arms[arm])
        held = {names[arm]: names[study.reference(arm)] for arm in study.arms}
        against = {a: b for a, b in held.items() if a != b} | against
        metrics |= {name: metric for name, metric in study.metrics.items() if name not in metrics}
        columns |= {header: key for header, key in study.columns.items() if key not in columns.values()}
        for run in _renamed(selection.runs, names):
            runs.setdefault((run.arm, run.seed), run)
        unfinished += _renamed(selection.unfinished, names)
    first, titles = parts[0][0], [study.title for study, _ in parts]
    baseline = first.baseline
    sources = [study.paper.source for study, _ in parts if study.paper.source]
    joined = Study(
        name="+".join(study.name for study, _ in parts),
        title=" · ".join(titles),
        baseline=baseline,
        arms=arms,
        columns=columns,
        paper=Paper("; ".join(sources), "; ".join(s.paper.test_set for s, _ in parts if s.paper.test_set), papers),
        against={arm: other for arm, other in against.items() if other != baseline and arm != baseline},
        criteria=next((study.criteria for study, _ in parts if study.criteria), None),
        metrics=metrics,
        seeds=next((study.seeds for study, _ in parts if study.until_decided), None),
    )
    notes = dict.fromkeys(note for _, selection in parts for note in selection.notes)
    return joined, Selection([*runs.values()], unfinished, [*notes])


def _renamed(runs: Iterable[Run], names: dict[str, str]) -> list[Run]:
    return [replace(run, arm=names[run.arm], config=run.config | {"arm": names[run.arm]}) for run in runs]
