"""Runs of today's study.yaml and text, and runs of those as they were before somebody edited them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from etude.errors import UserError
from etude.runs.records import Run
from etude.runs.typed import distinguishing_overrides
from etude.studies.study import Study

TODAY = "today"  # the version of runs whose text is the one that their config gives now
_SHORT = 8  # digits of a fingerprint that tell texts apart


def may_be_todays(study: Study, run: Run) -> bool:
    """Whether a run has, letter by letter, the values that study.yaml gives its arm; this asks no Hydra."""
    pairs = (override.lstrip("+~").partition("=") for override in study.arms[run.arm])
    return all(run.chosen(key) == value for key, _, value in pairs)


def is_todays(run: Run) -> bool:
    """Whether what was typed for a run would make its config again, with study.yaml and `conf/` as they are now."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from etude.config.compose import compose
    from etude.config.resolve import resolve

    with suppress(UserError, HydraException, OmegaConfBaseException):
        config = resolve(compose([f"experiment={run.study}/{run.arm}", *distinguishing_overrides(run.overrides)]))
        return run.differs_only_in_seed(replace(run, config=config))
    return False


def by_setting(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs that may share a table, apart from others."""
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(sorted(run.setting.items())), []).append(run)
    return list(groups.values())


def by_text(runs: Sequence[Run], *, always: bool = False) -> list[Run]:
    """The same runs, `text` being a setting where an arm has met several texts in one setting, or `always`.

    Edited files make other runs, and a table holds those of one version.
    """
    named: dict[int, Run] = {}
    known: dict[str, str] = {}
    for group in by_setting(runs):
        met = [arm for arm, text in {(run.arm, run.text) for run in group} if text]
        if always or len(met) > len(set(met)):
            named |= {id(run): _name_text(run, group, known) for run in group if run.text}
    return [named.get(id(run), run) for run in runs]


def _name_text(run: Run, group: Sequence[Run], known: dict[str, str]) -> Run:
    """The run with its text in its setting: "today", or the first digits of its fingerprint.

    Two files under two names may both be as they were: then neither is today's more than the other.
    """
    todays = {other.text for other in group if other.arm == run.arm and other.text == _on_disk(other.config, known)}
    return replace(run, setting=run.setting | {"text": TODAY if todays == {run.text} else run.text[:_SHORT]})


def _on_disk(config: Mapping[str, Any], known: dict[str, str]) -> str:
    """The fingerprint of the text that a config gives now, asked once a text; nothing where there is none."""
    from hydra.errors import HydraException  # a report of runs that all met one text does without

    from etude.config.identity import fingerprint

    key = json.dumps(config.get("data"), sort_keys=True)
    if key not in known:
        known[key] = ""
        with suppress(UserError, HydraException, OSError, KeyError, AttributeError):
            known[key] = fingerprint(dict(config))
    return known[key]
