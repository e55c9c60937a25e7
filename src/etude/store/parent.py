"""The parent of a run that begins with the weights of another, as `init_from` names it: a run, or a file of weights."""

from collections.abc import Mapping
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.files import typed_path
from etude.store.divergence import divergence
from etude.store.find_run import find_run
from etude.store.own_parts import hash_content
from etude.store.run_dir import RunDir
from etude.store.tested_weights import tested_weights

VOCABULARIES = ("same", "adapt")
_SUFFIX = ".safetensors"


def find_parent(named: str | Mapping[str, Any], runs_dir: str = "runs") -> dict[str, Any]:
    """Return what `init_from` names, complete: `run`, the path; `vocabulary`; and `parent`, by which it is identified.

    That is the training of a run and which of its weights are tested, or the SHA-256 of a file. A run is named as
    `etude.store.find_run.find_run` has it, by its hash or `study/arm/seed` too, and then looked for in `runs_dir`.

    Raises:
        UserError: there is no such run or file, the run is not finished or has diverged, or a key is unknown.
    """
    if not isinstance(named, str | Mapping):
        raise UserError(
            f"init_from={named!r} is no text: a hash that reads as a number needs quotes, as in \"init_from='12e4'\""
        )
    node = {"run": named} if isinstance(named, str) else dict(named)
    node.pop("parent", None)
    if unknown := node.keys() - {"run", "vocabulary"}:
        first = min(map(str, unknown))
        raise UserError(f"init_from.{first} is not a key; {did_you_mean(first, ('run', 'vocabulary'))}")
    path, vocabulary = node.get("run"), node.get("vocabulary", VOCABULARIES[0])
    if not isinstance(path, str) or not path:
        raise UserError(
            "init_from must name a finished run or a file of weights: init_from=RUN, init_from=FILE.safetensors, or "
            "'init_from={run:RUN,vocabulary:adapt}'"
        )
    if vocabulary not in VOCABULARIES:
        raise UserError(f"init_from.vocabulary={vocabulary}: say {' or '.join(VOCABULARIES)}")
    if is_file(path):
        return {"run": path, "vocabulary": vocabulary, "parent": _identify_file(path)}
    run = find_run(path, runs_dir)
    return {"run": str(run.path), "vocabulary": vocabulary, "parent": _identify_run(run)}


def is_file(path: str) -> bool:
    """Return whether `init_from` names a file of weights, and not a run."""
    return path.endswith(_SUFFIX)


def _identify_file(path: str) -> dict[str, str]:
    if not (file := typed_path(path)).is_file():
        raise UserError(f"init_from={path}: there is no such file")
    return {"sha256": hash_content(file)}


def _identify_run(run: RunDir) -> dict[str, str]:
    if not run.finished:
        raise UserError(f"init_from={run.path} is not finished: train it to its end first")
    if how := divergence(run.result()):
        raise UserError(f"init_from={run.path} diverged ({how}): begin from another run")
    return {"training": run.training, "weights": tested_weights(run.config())}
