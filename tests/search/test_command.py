"""The command of a sweep file means here what it means to W&B's agents."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.search.command import Command, read_command
from etude.search.sweep_file import planned_runs

FILE = Path("s.yaml")
ARGS = "${args_no_hyphens}"


def typed_by_agent(command: list[str], values: dict[str, Any]) -> list[str]:
    """The words after `etude train` that W&B's own code makes of a command and the values of one run."""
    macros = create_sweep_command_args({"args": {key: {"value": value} for key, value in values.items()}})
    words = [macros.get(word[2:-1], []) if word.startswith("${") else [word] for word in create_sweep_command(command)]
    return [word for group in words for word in group][2:]


@pytest.mark.parametrize(
    ("command", "values"),
    [
        (["etude", "train", "model.dropout=0.3", ARGS], {"model.dropout": 0.2}),
        (["etude", "train", ARGS, "model.dropout=0.3"], {"model.dropout": 0.2}),
        (["etude", "train", "model/norm=rms", "++model.dropout=0.3", ARGS], {"model/norm": "layer"}),
        (["etude", "train", ARGS, "model/norm=rms"], {"model/norm": "layer", "seed": 3}),
        (["etude", "train", "seed=4", "seed=5", ARGS, "model.heads=1", "model.heads=2"], {"model.dropout": 0.2}),
        (["etude", "train", ARGS], {"model.d_k": None, "callbacks": None, "logger": None, "data.vocab_size": 300}),
        (["etude", "train", "${args_override_hydra}"], {"model": {"heads": 1, "d_k": None}, "budget": {"steps": 0.1}}),
    ],
)
def test_a_run_of_the_sweep_is_the_run_of_an_agent(command: list[str], values: dict[str, Any], tmp_path: Path) -> None:
    def described(value: Any) -> Any:
        nested = isinstance(value, dict)
        return {"parameters": {k: described(v) for k, v in value.items()}} if nested else {"values": [value]}

    parameters = {key: described(value) for key, value in values.items()}
    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump({"method": "grid", "command": ["${env}", *command], "parameters": parameters}))
    [ours] = planned_runs(str(file))
    assert resolve(compose(ours)) == resolve(compose(typed_by_agent(command, values)))


@pytest.mark.parametrize(
    ("command", "environment", "defaults", "fixed"),
    [
        (["${env}", "CUDA_DEVICES=0", "A=b c", "etude", "train", ARGS], {"CUDA_DEVICES": "0", "A": "b c"}, [], []),
        (["/usr/bin/env", "N=1", "python", "${program}", "train", "seed=3", ARGS], {"N": "1"}, ["seed=3"], []),
        (["${interpreter}", "-u", "train.py", "seed=3", "${args}", "~logger"], {}, ["seed=3"], ["~logger"]),
        (["srun", "--gres=gpu:1", "etude", "train", ARGS, "+a.b=--c"], {}, [], ["+a.b=--c"]),
        ("N=1 etude train 'data.root=/my text' ${args_no_hyphens}", {"N": "1"}, ["data.root=/my text"], []),
        ("${env} N='1 2' \\\n  etude train \\\n  ${args_no_hyphens} seed=3\n", {"N": "1 2"}, [], ["seed=3"]),
        (["etude", "train", "seed=${envvar:THERE}", "arm=${envvar:NOT}", ARGS], {}, ["seed=7", "arm=NOT"], []),
    ],
)
def test_a_command_is_taken_apart(
    command: Any, environment: dict[str, str], defaults: list[str], fixed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THERE", "7")
    assert read_command(FILE, command) == Command(environment, defaults, fixed)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["etude", "train", "--flag=x", ARGS],
            r"'--flag=x' is not an override of a run: leave it out, or write flag=x$",
        ),
        (["etude", "train", ARGS, "-m"], "'-m' is not an override of a run: leave it out, or write key=value"),
        (["etude", "train", "=3", ARGS], "'=3' is not an override of a run: leave it out, or write key=value"),
        ("etude train smoke ${args}", "'smoke' is not an override of a run"),
        (["python", "train.py", "--config", "a.yaml", ARGS], "'--config' is not an override"),
        (
            ["etude", "train", "${args_no_hyphen}"],
            r"W&B has no \$\{args_no_hyphen\}; did you mean \$\{args_no_hyphens\}",
        ),
        (["${env}", "A=1", ARGS], "command names no program before the parameters"),
        ("etude train 'seed=1", "command cannot be split into words: No closing quotation"),
        ({"etude": "train"}, "command must be a list of words"),
        (["etude", ["train"], ARGS], "command must be a list of words"),
    ],
)
def test_what_is_no_override_is_refused_with_the_word(command: Any, told: str) -> None:
    with pytest.raises(UserError, match=rf"^s\.yaml: command.*{told}|^s\.yaml: {told}"):
        read_command(FILE, command)
