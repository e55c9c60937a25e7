from pathlib import Path

import pytest

from etude.errors import UserError
from etude.store.run_dir import RunDir


@pytest.mark.parametrize("torn", ["study: table3\narm: A1\nseed: 1\n", "seed: 1\nchoices:\n", "choices:\n  data: gram"])
def test_a_config_that_is_cut_short_is_torn_though_it_can_be_read(torn: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.config_file.write_text(torn)
    with pytest.raises(UserError, match=rf"{run.config_file} is incomplete"):
        run.config()


def test_a_study_s_folder_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine").symlink_to(tmp_path / "disk")
    run = RunDir(tmp_path / "runs" / "mine" / "base" / "seed1-0123456789")
    run.path.mkdir(parents=True)
    run.link_training("T")
    run.own_training.path.mkdir(parents=True)
    assert run.own_training.path == tmp_path / "runs" / ".trainings" / "T"
    assert run.training_link.resolve() == run.own_training.path
    run.own_training.trained_file.write_text('{"weights": "other"}')
    assert run.is_replaced({"training": "T", "weights": "those"})


@pytest.mark.parametrize("torn", ["", "{", "[1]", "a: [", "\x00"])
def test_a_torn_file_is_named_with_the_way_out(torn: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.config_file.write_text(torn)
    run.result_file.write_text(torn)
    with pytest.raises(UserError, match=rf"{run.config_file} is incomplete: delete the directory and train again"):
        run.config()
    with pytest.raises(UserError, match=rf"{run.result_file} is incomplete: delete it, and the same command evaluates"):
        run.result()


def test_bytes_that_are_no_text_are_torn_as_well(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.config_file.write_bytes(b"\xff\xfe")
    run.result_file.write_bytes(b"\xff\xfe")
    for read in (run.config, run.result):
        with pytest.raises(UserError, match="is incomplete"):
            read()


def test_a_checkpoint_names_its_run_from_within_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "runs/s/a/seed1-0123456789"
    (place / "training/checkpoints").mkdir(parents=True)
    (place / "config.yaml").write_text("seed: 1\n")
    assert RunDir.at(str(place / "training/checkpoints/last.ckpt")).path == place
    for inside, named in (("training", "checkpoints/last.ckpt"), ("training/checkpoints", "last.ckpt")):
        monkeypatch.chdir(place / inside)
        assert RunDir.at(named).path == place
    monkeypatch.chdir("/")
    assert RunDir.at("last.ckpt").path == Path("last.ckpt")


@pytest.mark.parametrize("named", ["runs/table3/A1", "runs/table3"])
def test_above_a_run_the_run_is_named(named: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "runs/table3/A1/seed1-0123456789")
    run.path.mkdir(parents=True)
    run.config_file.write_text("seed: 1\n")
    assert str(RunDir(tmp_path / named).not_a_run).endswith(f"it has no config.yaml; did you mean {run.path}?")
    assert str(RunDir(tmp_path / "nowhere").not_a_run).endswith("it has no config.yaml; name one under runs/")
