"""A run is a function of its config: what changes its identity, and what must not."""

import pytest
import yaml
from omegaconf import OmegaConf

from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache
from etude.config.freeze import fingerprints, freeze, freeze_all, run_dir
from etude.config.quoting import quote
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.store.identity import identify, identify_training, run_identity

BASE = ["data=files", "data.holdout=2", "budget=smoke"]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"line {k}\tzeile {k}\n" for k in range(9)))
    return [f"data.tsv={tmp_path / 'a.tsv'}", f"runs_dir={tmp_path / 'runs'}", *BASE]


def identity(overrides: list[str]) -> str:
    config = resolve(compose(overrides))
    return identify(config, fingerprints(config).all)


@pytest.mark.parametrize(
    "change",
    [
        "seed=2",
        "model.heads=2",
        "model/position=learned",
        "precision=bf16-mixed",
        "budget.max_steps=11",
        "decoding.beam=2",
        "loss.smoothing=0.2",
        "tokenizer.vocab_size=77",
        "tokenizer.input_sentence_size=4",
        "schedule.factor=2.0",
        "data.languages=[en,fr]",
        "averaging.checkpoints=2",
        "callbacks=best_checkpoint",
    ],
)
def test_what_may_change_the_result_changes_the_identity(corpus, change):
    assert identity([*corpus, change]) != identity(corpus)


@pytest.mark.parametrize(
    "change",
    [
        "study=other",
        "arm=other",
        "trainer=cpu",
        "logger=none",
        "logger.wandb.project=x",
        "cache_dir=/elsewhere",
        "runs_dir=r",
        "stale=rerun",
        "logger=[wandb,csv]",
        "trainer.micro_batches=2",
        "decoding.batch_tokens=100",
        "model/backend=eager",
        "model/backend=sdpa",
        "+trainer.benchmark=true",
        "+trainer.profiler=simple",
        "callbacks=gradient_norms",
        "tokenizer.input_sentence_size=null",
        "debug=none",
        "model.dropout=0.10",
        "averaging.every=7",
    ],
)
def test_names_places_devices_and_loggers_do_not(corpus, change):
    assert identity([*corpus, change]) == identity(corpus)


KEEPING = [
    f"+callbacks.mine.{one}" for one in ("_target_=lightning.pytorch.callbacks.ModelCheckpoint", "monitor=val_loss")
]


@pytest.mark.parametrize("setting", [[], ["callbacks=best_checkpoint"], ["averaging.checkpoints=2"]])
def test_runs_from_before_weights_could_be_chosen_are_the_same_runs(corpus, setting):
    config = resolve(compose([*corpus, *setting]))
    now = identify(config, "text")
    del config["weights"]
    assert identify(config, "text") == now


def test_which_weights_are_tested_is_part_of_a_run_and_not_of_its_training(corpus):
    last, best, before = (resolve(compose([*corpus, *KEEPING, *typed])) for typed in (["weights=last"], [], []))
    del before["weights"]  # when only the name of a callback counted, the last weights of this one were tested
    assert identify(before, "text") == identify(last, "text") != identify(best, "text")
    assert identify_training(before, "text") == identify_training(last, "text") == identify_training(best, "text")


def test_with_a_profiler_a_run_has_a_training_of_its_own_to_report_on(corpus):
    plain, profiled = (resolve(compose([*corpus, *typed])) for typed in ([], ["+trainer.profiler=simple"]))
    assert identify(plain, "text") == identify(profiled, "text")
    assert identify_training(plain, "text") != identify_training(profiled, "text")


def test_runs_from_before_a_search_had_batches_of_its_own_are_the_same_runs(corpus):
    config = resolve(compose(corpus))
    text = fingerprints(config).all
    now = identify(config, text)
    del config["decoding"]["batch_tokens"]
    assert identify(config, text) == now


def test_the_text_counts_and_not_where_it_lies(corpus, tmp_path):
    before = identity(corpus)
    (tmp_path / "b.tsv").write_bytes((tmp_path / "a.tsv").read_bytes())
    assert identity([*corpus, f"data.tsv={tmp_path / 'b.tsv'}"]) == before
    (tmp_path / "a.tsv").write_text((tmp_path / "a.tsv").read_text() + "one more\tnoch eine\n")
    assert identity(corpus) != before


def test_the_content_of_a_tokenizer_counts_and_not_where_it_lies(corpus, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text('{"kind": "bytes"}')
    second.write_text(first.read_text())
    before, same = (identity([*corpus, "tokenizer=existing", f"tokenizer.file={file}"]) for file in (first, second))
    assert before == same
    second.write_text('{"kind": "bytes" }')
    assert identity([*corpus, "tokenizer=existing", f"tokenizer.file={second}"]) != before
    typed = [*corpus, "tokenizer=existing", f"tokenizer.file={second}", "+tokenizer.sum=abc"]
    assert resolve(compose(typed))["tokenizer"]["sum"] == "abc", "which the file is to have"


def test_null_may_be_no_default_of_a_tokenizer_of_ones_own():
    own, ours = (
        [run_identity({"tokenizer": {"_target_": target} | more}) for more in ({}, {"longest": None})]
        for target in ("mine.Tokenizer", "etude.data.tokenizer.SentencePiece")
    )
    assert own[0] != own[1]
    assert ours[0] == ours[1]


def test_a_dataset_of_ones_own_that_fails_is_named_with_its_line_in_a_sweep_too(tmp_path, monkeypatch):
    lines = [
        "class Broken:",
        "    pairs = training_fingerprint = None.__eq__",
        "    def fingerprint(self):",
        "        return {}[3]",
    ]
    (tmp_path / "broken_text.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"fails in broken_text\.Broken \(.*broken_text\.py, line 4\): KeyError: 3"):
        fingerprints({"data": {"_target_": "broken_text.Broken"}})


def test_the_same_sizes_reached_by_another_way_are_the_same_run(corpus):
    assert identity([*corpus, "scale=pocket", "model.d_model=64"]) == identity([*corpus, "scale=pocket"])


def test_a_run_is_filed_by_study_arm_and_seed_with_its_frozen_config(corpus, tmp_path):
    run = freeze(compose([*corpus, "experiment=table3/A1", "seed=5"]))
    identifier = run.path.name.removeprefix("seed5-")
    assert run.path == tmp_path / "runs" / "table3" / "A1" / f"seed5-{identifier}"
    frozen = yaml.safe_load(run.config_file.read_text())
    assert identify(frozen, fingerprints(frozen).all) == identifier
    assert frozen["model"]["heads"] == 1
    assert frozen["model"]["attention"]["d_k"] == 64
    assert frozen["choices"]["model/position"] == "sinusoidal"
    assert "hydra" not in frozen
    written = run.written()
    assert written["model"]["heads"] == "${heads:1}"
    assert "${" in str(written["model"]["attention"]["d_k"])
    assert OmegaConf.to_container(OmegaConf.create(written), resolve=True)["model"] == frozen["model"]
    assert "experiment=table3/A1" in run.overrides_file.read_text().splitlines()


@pytest.mark.parametrize("note", ["two\nlines", "one\n", "a\fb", "\r\n", 'a "quoted" word'])
def test_what_was_typed_is_read_back_whole_with_its_line_breaks(corpus, note):
    words = [*corpus, f"logger.wandb.notes={quote(note)}", "model.heads=2"]
    assert freeze(compose(words)).overrides() == words


def test_a_home_directory_that_no_shell_has_replaced_is_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    config = compose(["runs_dir=~/runs"])
    assert config.hydra.sweep.dir == str(tmp_path / "runs" / ".multirun")
    assert run_dir(resolve(config), "text").path.is_relative_to(tmp_path / "runs")


def test_a_run_that_is_not_finished_takes_what_is_immaterial_from_the_newest_command(corpus):
    first = freeze(compose(corpus))
    assert [*first.config()["logger"]] == ["wandb"]
    assert freeze(compose([*corpus, "logger=none"])).path == first.path
    assert first.config()["logger"] == {}


def test_freezing_a_finished_run_changes_nothing(corpus):
    run = freeze(compose(corpus))
    run.write_result({})
    before = run.config_file.stat().st_mtime_ns
    assert freeze(compose([*corpus, "logger=none"])).path == run.path
    assert run.config_file.stat().st_mtime_ns == before


def test_of_experts_alone_the_number_of_shares_of_a_batch_makes_another_training(corpus):
    def trainings(*typed):
        shared = (resolve(compose([*corpus, *typed, f"trainer.micro_batches={number}"])) for number in (1, 2))
        return {identify_training(config, "text") for config in shared}

    assert len(trainings()) == 1
    assert len(trainings("model/feedforward=experts")) == 2
    assert len(trainings("model/feedforward=switch")) == 2


def files(run):
    return run.path, run.config_file.read_bytes(), run.written(), run.overrides_file.read_bytes()


def test_freezing_many_writes_what_freezing_each_writes(corpus, tmp_path):
    jobs = [[*corpus, f"experiment=table3/{arm}", f"seed={seed}"] for arm in ("A1", "E1") for seed in (1, 2)]
    jobs += [[*corpus, "model.d_k=${width:64}"], [*corpus, "model.d_k=null", "data.languages=[x,y]"]]
    together = [files(run) for run in freeze_all(jobs, ConfigCache())]
    for overrides, (path, *kept) in zip(jobs, together, strict=True):
        (path / "config.yaml").unlink()
        assert files(freeze(compose(overrides))) == (path, *kept)


def test_freezing_many_writes_nothing_where_one_of_them_is_refused(corpus, tmp_path):
    with pytest.raises(UserError, match=r"model\.heads=7"):
        freeze_all([corpus, [*corpus, "model.heads=7"]], ConfigCache())
    assert not (tmp_path / "runs").exists()


def test_of_many_the_one_that_is_refused_is_told_by_what_the_others_do_not_say(corpus):
    arms = [[*corpus, f"experiment=table3/{arm}", "seed=1"] for arm in ("A1", "A2")]
    with pytest.raises(UserError, match=r"^experiment=table3/A1 model.colour=3: model.colour is not a key of model"):
        freeze_all([[*arms[0], "model.colour=3"], arms[1]], ConfigCache())
    with pytest.raises(UserError, match=r"^model.colour is not a key of model"):
        freeze_all([[*arms[0], "model.colour=3"]], ConfigCache())
    with pytest.raises(UserError, match=r"^data\.tsv=nowhere\.tsv: there is no file nowhere\.tsv"):
        freeze_all([arms[1], ["data=files", "data.tsv=nowhere.tsv"]], ConfigCache())
    with pytest.raises(UserError, match=r"^experiment=table3/Q: there is no 'table3/Q'"):
        freeze_all([["experiment=table3/Q"], ["experiment=table3/A1"]], ConfigCache())


def test_freezing_many_leaves_finished_runs_untouched_and_needs_the_text_once(corpus, monkeypatch):
    jobs = [[*corpus, f"seed={seed}"] for seed in range(4)]
    for run in freeze_all(jobs, ConfigCache()):
        run.write_result({})
        run.config_file.write_text("as it was")
    asked = []
    monkeypatch.setattr("etude.config.freeze.fingerprints", lambda c: asked.append(c) or fingerprints(c))
    assert all(run.config_file.read_text() == "as it was" for run in freeze_all(jobs, ConfigCache()))
    assert len(asked) == 1
