"""Read a W&B sweep file, and check that it can run without W&B."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.search.command import Command, read_command
from etude.search.distributions import Distribution, listed, read_distribution
from etude.search.hyperband import Hyperband, read_hyperband
from etude.search.options import Options, read_options
from etude.study.arms import override_key
from etude.study.metrics import rises
from etude.yaml_file import read_yaml

_KEY = re.compile(r"(\+\+?|~)?[\w@./-]+")
_OPTIONS = ("run_cap", "search_seed")
_REFUSED = {  # keys of W&B's that étude does not carry out, and what to do instead
    "metrics": "several metrics stand in  search: {directions: {valid.perplexity: minimize, test.bleu: maximize}}",
    "controller": "étude is the controller: leave it out",
    "scheduler": "étude asks for trials itself: leave it out, or write  search: {sampler: tpe}",
    "job": "it needs W&B Launch, and étude trains the runs: leave it out",
    "image_uri": "it needs W&B Launch, and étude trains the runs: leave it out",
}
_WITHOUT_EFFECT = ("apiVersion", "kind", "description", "entity", "name", "program", "project")
_KNOWN = ["method", "parameters", "command", "metric", "early_terminate", "search", *_OPTIONS, *_WITHOUT_EFFECT]
_METHODS = ("grid", "random", "bayes")
_METRIC = ("name", "goal", "target", "impute", "impute_while_running")
_IMPUTE = ("best", "worst", "latest")
_OF_LISTED = {"values": ("categorical", "categorical_w_probabilities"), "value": ("constant",)}

Parameters = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class WandbSweep:
    """The content of a sweep file.

    Attributes:
        file: its path.
        method: grid, random or bayes.
        parameters: what each key, written with dots, is set to or drawn from; those of a grid are listed.
        command: what its `command` adds.
        run_options: its `run_cap` and `search_seed`, if it has them.
        metric: what to optimise, `name` and perhaps more; empty if it does not say.
        early_terminate: which runs are stopped.
        search: its block `search`, None if it has none.
    """

    file: Path
    method: str
    parameters: Parameters
    command: Command
    run_options: dict[str, Any]
    metric: dict[str, Any]
    early_terminate: Hyperband | None
    search: Options | None

    @property
    def is_search(self) -> bool:
        """Whether its trials are asked for one after the other; else its runs are a fixed list."""
        return self.method == "bayes" or self.early_terminate is not None or self.search is not None

    @property
    def fixed(self) -> Parameters:
        """The parameters that are not drawn: all of a grid, else the constant ones."""
        return {key: node for key, node in self.parameters.items() if self.method == "grid" or "value" in node}

    @property
    def distributions(self) -> dict[str, Distribution]:
        """What the parameters that are not fixed are drawn from."""
        return {
            key: read_distribution(node, f"{self.file}: parameters.{key}")
            for key, node in self.parameters.items()
            if key not in self.fixed
        }

    @property
    def cautions(self) -> list[str]:
        """A sentence on each key that may not do what was meant."""
        notes = []
        if self.metric and "goal" not in self.metric and rises(name := self.metric["name"]):
            notes.append(f"metric.goal is minimize if nothing is said, and {name} is better the higher: say maximize")
        if "target" in self.metric and not self.is_search:
            notes.append("metric.target ends a search alone, and these runs are a fixed list: add  search: {}")
        return notes


def read_sweep(file: Path) -> WandbSweep:
    """Read a sweep file.

    Raises:
        UserError: it is not a sweep file, it has a key that W&B does not know, or one that étude does not carry out.
    """
    content = read_yaml(file)
    if isinstance(content, dict) and (refused := next((key for key in content if key in _REFUSED), None)):
        raise UserError(f"{file}: {refused}: {_REFUSED[refused]}")
    if not isinstance(content, dict) or not isinstance(content.get("parameters"), dict) or not content["parameters"]:
        raise UserError(f"{file}: a sweep file needs parameters, such as  parameters: {{seed: {{values: [1, 2, 3]}}}}")
    for key in content:
        if key not in _KNOWN:
            raise UserError(f"{file}: {key} is not a key of a sweep file; {did_you_mean(str(key), _KNOWN)}")
    method = content.get("method")
    if method not in _METHODS:
        why = "needs a scheduler of W&B's: here it is" if method == "custom" else "is none of W&B's: write"
        raise UserError(f"{file}: method: {method} {why} grid, random or bayes")
    parameters: Parameters = {}
    for key, node in _flatten(file, content["parameters"]):
        if twice := [other for other in parameters if override_key(other) == override_key(key)]:
            raise UserError(f"{file}: parameters: {key} is there twice, as {twice[0]} too: leave one out")
        check_parameter(where := f"{file}: parameters.{key}", key, node)
        parameters[key] = {"values": listed(node, where)} if method == "grid" and "value" not in node else node
    return WandbSweep(
        file,
        method,
        parameters,
        read_command(file, content["command"]) if content.get("command") else Command(),
        {key: content[key] for key in _OPTIONS if key in content},
        _metric(file, content.get("metric")),
        read_hyperband(content["early_terminate"], f"{file}: early_terminate")
        if "early_terminate" in content
        else None,
        read_options(content["search"] or {}, f"{file}: search") if "search" in content else None,
    )


def _flatten(file: Path, parameters: dict[Any, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every parameter with its dotted key: W&B nests them as {model: {parameters: {heads: ...}}}."""
    for name, node in parameters.items():
        if not isinstance(name, str) or not _KEY.fullmatch(name):
            raise UserError(f"{file}: parameters: {name!r} is not a config key")
        nested = node.get("parameters") if isinstance(node, dict) and len(node) == 1 else None
        if nested and isinstance(nested, dict):
            yield from _flatten(file, nested, f"{path}{name}.")
        else:
            yield path + name, node


def check_parameter(where: str, key: str, parameter: Any) -> None:
    """Check how a parameter is described.

    Raises:
        UserError: it is not valid; the message begins with `where`.
    """
    if not isinstance(parameter, dict) or {"value", "values"} <= set(parameter):
        raise UserError(f"{where} needs values: [...], value: ... or a distribution")
    values = parameter["values"] if "values" in parameter else [parameter.get("value")]
    if not isinstance(values, list) or not values:
        raise UserError(f"{where}.values must be a list of at least one value")
    if any(isinstance(value, dict) for value in (*values, *parameter.values())):
        raise UserError(f"{where} holds a mapping; write each of its keys as {key}.name")
    name = parameter.get("distribution")
    for kind, names in _OF_LISTED.items():
        if kind in parameter and name not in (None, *names):
            raise UserError(f"{where}: {name} takes no {kind}: leave one of them out")
        if kind not in parameter and name in names:
            raise UserError(f"{where}: {name} needs {kind}: ...")
        known = [kind, "distribution", *(["probabilities"] if kind == "values" else [])]
        if kind in parameter and (other := [name for name in parameter if name not in known]):
            raise UserError(f"{where}: {other[0]} does not go with {kind}; {did_you_mean(str(other[0]), known)}")
    if "value" not in parameter:
        read_distribution(parameter, where)


def _metric(file: Path, metric: Any) -> dict[str, Any]:
    if metric is None:
        return {}
    if not isinstance(metric, dict) or not isinstance(metric.get("name"), str):
        raise UserError(f"{file}: metric needs a name, such as  metric: {{name: valid_perplexity, goal: minimize}}")
    for key in metric:
        if key not in _METRIC:
            raise UserError(f"{file}: metric.{key} is not a key of a metric; {did_you_mean(str(key), _METRIC)}")
    if metric.get("goal", "minimize") not in ("minimize", "maximize"):
        raise UserError(f"{file}: metric.goal is {metric['goal']!r}: write minimize or maximize")
    if not isinstance(metric.get("target", 0), int | float):
        raise UserError(f"{file}: metric.target must be a number, not {metric['target']!r}")
    for key, others in (("impute", ()), ("impute_while_running", (False, "false"))):
        if key in metric and metric[key] not in (*_IMPUTE, *others):
            raise UserError(f"{file}: metric.{key} is {metric[key]!r}: write best, worst or latest")
    return metric
