"""The words behind `etude report` and `etude results`: a study, which of its runs, and files to write."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from etude.errors import UserError, did_you_mean
from etude.paths import find
from etude.yaml_file import read_yaml

WANDB, BASELINE = "--wandb", "--baseline"
LATEX_NOTES, LATEX_COLUMNS = "--latex-notes", "--latex-columns"
_NEEDED = {
    WANDB: "a project, such as me/etude",
    BASELINE: "an arm of the study",
    LATEX_NOTES: "none, short or full",
    LATEX_COLUMNS: "1 or 2",
}


@dataclass(frozen=True)
class Arguments:
    """What was asked for.

    Attributes:
        study: its name.
        runs_dir: where the runs lie.
        where: which runs, as `key=value`.
        files: the options that were given, each with its file.
        wandb: the project of Weights & Biases that was named, if any.
        baseline: the arm that the others are to be held against; empty for the study's own.
    """

    study: str
    runs_dir: str
    where: dict[str, str]
    files: dict[str, str]
    wandb: str = ""
    baseline: str = ""


def parse_arguments(verb: str, words: Sequence[str], options: Collection[str]) -> Arguments:
    """Parse the words behind a verb.

    Args:
        verb: whose words they are.
        words: the study first.
        options: what takes the name of a file, such as "--markdown", "--wandb", which takes a project, or "--baseline",
            which takes an arm.

    Raises:
        UserError: a word is not understood.
    """
    files: dict[str, str] = {}
    where: dict[str, str] = {}
    rest = iter(words[1:])
    for word in rest:
        key, equals, value = word.partition("=")
        if key in options:
            files[key] = value or next(rest, "")
            if not files[key]:
                raise UserError(f"{key} needs {_NEEDED.get(key, 'the name of a file to write to')}")
        elif equals and not key.startswith("-"):
            where[key] = value
        else:
            raise UserError(f"{verb}: {word!r} is not key=value; {did_you_mean(word, [*options, '--help'])}")
    runs_dir = where.pop("runs_dir", None) or read_yaml(find("conf", "train.yaml"))["runs_dir"]
    return Arguments(words[0], runs_dir, where, files, wandb=files.pop(WANDB, ""), baseline=files.pop(BASELINE, ""))
