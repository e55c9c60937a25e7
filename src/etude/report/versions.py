"""Tell runs with today's study.yaml and corpus text from runs that were made before an edit of these files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from etude.errors import UserError
from etude.report.wording import format_count
from etude.runs.records import Run
from etude.runs.typed import distinguishing_overrides
from etude.studies.arms import split_override
from etude.studies.study import Study, study_names

TODAY = "today"  # the version of runs whose corpus text is the one that their config gives now
_SHORT = 8  # digits of a fingerprint that a report shows


def may_be_todays(study: Study, run: Run) -> bool:
    """Whether a run has exactly the values that study.yaml gives its arm. A quick check, without Hydra."""
    return all(run.chosen(key) == value for key, value in map(split_override, study.arms[run.arm]))


def is_todays(run: Run) -> bool:
    """Whether the overrides of a run give its config again, with study.yaml and `conf/` as they are now."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from etude.config.compose import compose
    from etude.config.resolve import resolve

    with suppress(UserError, HydraException, OmegaConfBaseException):
        config = resolve(compose([f"experiment={run.study}/{run.arm}", *distinguishing_overrides(run.overrides)]))
        return run.differs_only_in_seed(replace(run, config=config))
    return False


def choose_config(study: Study, runs: Sequence[Run]) -> tuple[list[Run], list[str], list[str]]:
    """Choose for each arm the runs of today's config, or of its newest config if there are none; each seed once.

    Of several runs with the same arm, config and seed, such as a copied directory, the newest counts.

    Returns:
        The runs, the arms without a run of today's config, and sentences on what was left out.
    """
    alike: dict[str, list[list[Run]]] = {}  # arm -> groups of runs with the same config, the newest first
    for run in sorted(runs, key=lambda run: -run.changed):
        groups = alike.setdefault(run.arm, [])
        group = next((group for group in groups if run.differs_only_in_seed(group[0])), None)
        group.append(run) if group else groups.append([run])
    typed = study.name not in study_names()  # its arms are made from its runs, so that the newest count
    shown: dict[int, Run] = {}
    outdated = []
    for arm, groups in alike.items():
        certain = typed or (len(groups) == 1 and may_be_todays(study, groups[0][0]))
        todays = groups if certain else [group for group in groups if is_todays(group[0])]
        shown |= {id(run): run for run in (todays or groups)[0]}
        outdated += [] if todays else [arm]
    notes = []
    if others := len(runs) - len(shown):
        notes.append(f"Left out: {format_count(others)} of another config or text than those shown of the same arm.")
    newest = {(run.arm, run.seed): run for run in sorted(shown.values(), key=lambda run: run.changed)}
    notes += [
        f"Left out: {run.run_dir.path}, the same run as {same.run_dir.path}."
        for run in shown.values()
        if (same := newest[run.arm, run.seed]) is not run
    ]
    return [run for run in runs if newest.get((run.arm, run.seed)) is run], outdated, notes


def by_setting(runs: Iterable[Run]) -> list[list[Run]]:
    """Group the runs by setting; runs of different settings never share a table."""
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(sorted(run.setting.items())), []).append(run)
    return list(groups.values())


def by_text(runs: Sequence[Run], *, always: bool = False) -> list[Run]:
    """Return the runs, with their corpus text as part of the setting if an arm has several texts in one setting.

    An edited corpus makes other runs, and a table holds runs of one version. With `always`, the text becomes part of
    every setting.
    """
    named: dict[int, Run] = {}
    known: dict[str, str] = {}
    for group in by_setting(runs):
        met = [arm for arm, text in {(run.arm, run.text) for run in group} if text]
        if always or len(met) > len(set(met)):
            named |= {id(run): _name_text(run, group, known) for run in group if run.text}
    return [named.get(id(run), run) for run in runs]


def _name_text(run: Run, group: Sequence[Run], known: dict[str, str]) -> Run:
    """Add the text of a run to its setting: "today", or the first digits of its fingerprint.

    If runs of this arm were made on several files, and more than one is unchanged, none of these is named "today".
    """
    todays = {
        other.text for other in group if other.arm == run.arm and other.text == _fingerprint_now(other.config, known)
    }
    return replace(run, setting=run.setting | {"text": TODAY if todays == {run.text} else run.text[:_SHORT]})


def _fingerprint_now(config: Mapping[str, Any], known: dict[str, str]) -> str:
    """Compute the fingerprint of the text that a config gives now, cached in `known`; "" if there is no text."""
    from hydra.errors import HydraException  # imported here because most reports never get this far

    from etude.config.identity import fingerprints

    key = json.dumps(config.get("data"), sort_keys=True)
    if key not in known:
        known[key] = ""
        with suppress(UserError, HydraException, OSError, KeyError, AttributeError):
            known[key] = fingerprints(dict(config)).all
    return known[key]
