"""Derive the identity of a run from its config, and with it the directory; freeze the config there."""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from etude.config.compose_cache import ConfigCache, ValidConfig, naming
from etude.config.explain import explain_own_data
from etude.config.parts import make
from etude.config.resolve import as_written, resolve_valid, typed_overrides
from etude.errors import UserError
from etude.files import typed_path, write_json, write_text
from etude.store.identity import identify, identify_training, training_identity
from etude.store.lock import hold
from etude.store.run_dir import RunDir
from etude.store.stale import put_aside
from etude.store.training_dir import FOLDER, TrainingDir


def freeze(config: DictConfig) -> RunDir:
    """Check a composed config and write it, resolved, to the directory of its run.

    With `stale=rerun`, an existing run computed by other code is put aside first.

    Args:
        config: the composed config with Hydra's own node.

    Raises:
        UserError: the config is not valid.
    """
    written, typed = as_written(config), typed_overrides(config)
    plain = resolve_valid(config)
    return _freeze(ValidConfig(plain, written, typed), fingerprints(plain))


def freeze_all(
    jobs: Iterable[Sequence[str]],
    configs: ConfigCache,
    finished: Callable[[RunDir, dict[str, Any]], object] = lambda run, config: None,
) -> list[RunDir]:
    """Do `freeze(compose(overrides))` for every job of a sweep, in much less time.

    Args:
        jobs: the overrides of each job.
        configs: composes them, and remembers what they share for those that follow.
        finished: called with the directory and the config of each run that is already finished.

    Raises:
        UserError: a config is not valid; nothing has been written.
    """
    found = []
    for job, text in _identify_jobs(jobs, configs):
        run = _freeze(job, text)
        if run.finished:
            finished(run, job.config)
        found.append(run)
    return found


def places(jobs: Iterable[Sequence[str]], configs: ConfigCache) -> list[RunDir]:
    """Return the directory of every job's run without writing anything; arguments and errors as in `freeze_all`."""
    return [run_dir(job.config, text.all) for job, text in _identify_jobs(jobs, configs)]


class Fingerprints(NamedTuple):
    """The fingerprints of a text: of all of it, and of what is trained on."""

    all: str
    training: str


def _identify_jobs(jobs: Iterable[Sequence[str]], configs: ConfigCache) -> list[tuple[ValidConfig, Fingerprints]]:
    """Return the config and the text fingerprints of every job; each text is read only once."""
    texts: dict[str, Fingerprints] = {}
    runs, jobs = [], [*jobs]
    for overrides, job in zip(jobs, configs.resolve_all(jobs), strict=True):
        data = json.dumps(job.config["data"], sort_keys=True)
        if data not in texts:
            with naming(overrides, jobs):
                texts[data] = fingerprints(job.config)
        runs.append((job, texts[data]))
    return runs


def run_dir(config: dict[str, Any], text: str) -> RunDir:
    """Return the directory of the run of a resolved config, given the fingerprint of its text."""
    name = f"seed{config['seed']}-{identify(config, text)}"
    study = "debug" if config["trainer"]["fast_dev_run"] else config["study"]
    return RunDir(typed_path(config["runs_dir"]) / study / config["arm"] / name)


def fingerprints(config: dict[str, Any]) -> Fingerprints:
    """Return the fingerprints of the text of a config.

    Raises:
        UserError: the text is not available, or a dataset of the user's fails.
    """
    try:
        return _fingerprints(config)
    except Exception as error:
        if mistake := explain_own_data(error, config):
            raise mistake from error
        raise


def _fingerprints(config: dict[str, Any]) -> Fingerprints:
    made = make(config["data"])
    of_all = [callable(getattr(made, name, None)) for name in ("fingerprint", "training_fingerprint")]
    if not (all(of_all) and any(callable(getattr(made, name, None)) for name in ("pairs", "texts"))):
        raise UserError(f"data: {config['data']['_target_']} is not a dataset: derive it from etude.data.corpus.Corpus")
    return Fingerprints(made.fingerprint(), made.training_fingerprint())


def remove(directory: RunDir | TrainingDir) -> None:
    """Delete the directory of a run or of a training, if there is one.

    Raises:
        Busy: another process works on it.
    """
    if directory.path.exists():
        with hold(directory.lock_file, directory.busy):
            shutil.rmtree(directory.path, ignore_errors=True)


def _freeze(job: ValidConfig, text: Fingerprints) -> RunDir:
    """Return the run's directory; unless it is finished, write config, overrides, fingerprints and training to it."""
    config = job.config
    directory = run_dir(config, text.all)
    training = TrainingDir(directory.runs_dir / FOLDER / identify_training(config, text.training))
    identity = training_identity(config, text.training)
    if config["trainer"]["fast_dev_run"]:  # a debug run starts from scratch
        remove(directory)
        remove(training)
    if config["stale"] == "rerun":
        put_aside(directory)
    if not directory.finished:  # immaterial keys may have changed since, such as the path of the data or the logger
        directory.link_training(training.path.name)
        lines = (line if line.splitlines() == [line] else json.dumps(line) for line in job.typed)  # one a line
        write_text(directory.overrides_file, "".join(f"{line}\n" for line in lines))
        write_text(directory.text_file, f"{text.all}\n")
        if not training.identity_file.is_file():
            write_json(training.identity_file, identity)
        write_text(directory.written_file, OmegaConf.to_yaml(OmegaConf.create(job.written)))
        write_text(directory.config_file, OmegaConf.to_yaml(OmegaConf.create(config)))
    return directory
