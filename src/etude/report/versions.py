"""Runs that met several versions of a text: edited files make other runs, and a table holds those of one version."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from etude.errors import UserError
from etude.runs.records import Run

TODAY = "today"  # the version of runs whose text is the one that their config gives now
_SHORT = 8  # digits of a fingerprint that tell texts apart


def by_text(runs: Sequence[Run], *, always: bool = False) -> list[Run]:
    """The same runs, `text` being a setting where an arm has met several texts in one setting.

    Args:
        runs: of a study.
        always: make it one in any case, for somebody chooses by it.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(sorted(run.setting.items())), []).append(run)
    named: dict[int, Run] = {}
    known: dict[str, str] = {}
    for group in groups.values():
        if always or _several({(run.arm, run.text) for run in group}):
            named |= {id(run): _named(run, group, known) for run in group if run.text}
    return [named.get(id(run), run) for run in runs]


def _several(met: set[tuple[str, str]]) -> bool:
    """Whether an arm stands there with two texts."""
    of_arms = [arm for arm, text in met if text]
    return len(of_arms) > len(set(of_arms))


def _named(run: Run, group: Sequence[Run], known: dict[str, str]) -> Run:
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
