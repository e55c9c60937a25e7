"""A run begins with the weights of another run, or of a file: those of the same name and shape."""

import json
from pathlib import Path

import pytest
import torch

from etude.data.vocabularies import open_tokenizer
from etude.errors import UserError
from etude.files import write_json
from etude.store.identity import identify
from etude.store.parent import find_parent
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.trained.run import TrainedRun
from etude.trained.weights import final_weights
from etude.training.initial import take_weights
from etude.training.run import train

from .conftest import Freeze, same

SHORT = ["budget.max_steps=3", "budget.warmup_steps=2"]
BYTES = ["tokenizer=byte", "tokenizer.vocab_size=260"]
TABLES = {f"embedding.{side}_table.weight" for side in ("source", "target", "output")}


@pytest.fixture(scope="module")
def parent(runs: Freeze) -> RunDir:
    torch.set_num_threads(1)
    train(run := runs("parent", *SHORT))
    return run


@pytest.fixture(scope="module")
def file(parent: RunDir) -> Path:
    TrainedRun(parent).export(folder := parent.path / "exported")
    return folder / "model.safetensors"


def begun(child: RunDir) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict]:
    """The initial weights of a run's model, those that it begins with, and the list of what was taken."""
    config, store = child.config(), build.token_store(child.config())
    model = build.model(config, store.vocab_size)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    take_weights(model, config["init_from"], store.tokenizer, child.init_from_file)
    return before, model.state_dict(), json.loads(child.init_from_file.read_text())


def test_rows_are_not_taken_into_clusters(parent: RunDir, runs: Freeze) -> None:
    named = f"init_from={{run:'{parent.path}',vocabulary:adapt}}"
    with pytest.raises(UserError, match=r"adapt takes rows of whole tables.*: say model/tying=all"):
        begun(runs("clustered", *SHORT, named, "model/tying=adaptive_input"))


@pytest.mark.parametrize("of_a_file", [False, True])
def test_weights_of_the_same_name_and_shape_are_taken_and_all_others_listed(
    of_a_file: bool, parent: RunDir, file: Path, runs: Freeze
) -> None:
    named = file if of_a_file else parent.path
    before, after, told = begun(runs(f"wider-{of_a_file}", *SHORT, f"init_from={named}", "model.d_ff=24"))
    theirs = final_weights(parent, parent.config())
    for name, value in after.items():
        expected = before if "feedforward.inner" in name or name.endswith("outer.weight") else theirs
        assert torch.equal(value, expected[name]), name
        assert (name in told["taken"]) == (expected is theirs)
        assert (name in told["not_taken"]) == (expected is before)
    assert told["not_taken"]["encoder.layers.0.feedforward.inner.weight"] == "is 24 x 8 here, 16 x 8 there"


def test_a_run_trains_from_the_weights_that_its_parent_tested(parent: RunDir, runs: Freeze) -> None:
    child = runs("child", "schedule=constant", "budget.lr_factor=1e-9", *SHORT, f"init_from={parent.path}")
    train(child)
    weights, theirs = final_weights(child, child.config()), final_weights(parent, parent.config())
    assert all(torch.allclose(weights[name], theirs[name], atol=1e-6) for name in theirs)
    assert json.loads(child.init_from_file.read_text())["parent"] == {"training": parent.training, "weights": "last"}


def test_a_run_whose_checkpoint_is_torn_begins_with_the_weights_of_its_parent_again(
    parent: RunDir, runs: Freeze
) -> None:
    train(child := runs("torn", *SHORT, f"init_from={parent.path}"))
    weights, training = final_weights(child, child.config()), child.own_training
    child.result_file.unlink()
    training.checkpoint.write_bytes(training.checkpoint.read_bytes()[:-100])
    environment = json.loads(training.environment_file.read_text())
    write_json(training.environment_file, environment | {"libraries": environment["libraries"] | {"torch": "1.0"}})
    train(child)
    assert same(final_weights(child, child.config()), weights)
    assert child.result()["libraries"]["torch"] == torch.__version__  # nothing is left of what was begun


def test_the_parent_is_in_the_identity_and_its_path_is_not(parent: RunDir, file: Path, runs: Freeze) -> None:
    config = runs("identity", *SHORT).config()
    assert "init_from" not in config
    elsewhere = find_parent(str(parent.path)) | {"run": "elsewhere"}
    ids = [
        identify(config | given, "text")
        for given in ({}, *({"init_from": one} for one in (find_parent(str(parent.path)), find_parent(str(file)))))
    ]
    assert len({*ids}) == 3
    assert identify(config | {"init_from": elsewhere}, "text") == ids[1]


@pytest.mark.parametrize("of_a_file", [False, True])
def test_rows_of_the_subwords_that_both_vocabularies_have_are_copied(
    of_a_file: bool, parent: RunDir, file: Path, runs: Freeze
) -> None:
    named = file if of_a_file else parent.path
    child = runs(
        f"adapted-{of_a_file}", *SHORT, "tokenizer.vocab_size=26", f"init_from={{run:'{named}',vocabulary:adapt}}"
    )
    before, after, told = begun(child)
    theirs, own = open_tokenizer(parent.tokenizer_file), build.token_store(child.config()).tokenizer
    there = theirs.subwords(range(len(theirs)))
    weights = final_weights(parent, parent.config())
    assert told["in_part"].keys() == TABLES
    for name in TABLES:
        for row, subword in enumerate(own.subwords(range(len(own)))):
            expected = weights[name][there.index(subword)] if subword in there else before[name][row]
            assert torch.equal(after[name][row], expected)
    assert same({k: v for k, v in after.items() if k not in TABLES}, {k: weights[k] for k in after if k not in TABLES})


def test_rows_of_positions_are_none_of_subwords(runs: Freeze) -> None:
    train(parent := runs("learned", *SHORT, "model/position=learned"))
    named = f"init_from={{run:'{parent.path}',vocabulary:adapt}}"
    child = runs("adapted-learned", *SHORT, "model/position=learned", "tokenizer.vocab_size=26", named)
    _, after, told = begun(child)
    weights = final_weights(parent, parent.config())
    assert told["in_part"].keys() == TABLES
    positions = [name for name in weights if "position" in name]
    assert len(positions) == 2
    assert all(torch.equal(after[name], weights[name]) for name in positions)


def test_rows_of_subwords_that_look_alike_are_not_taken_from_each_other(runs: Freeze) -> None:
    train(parent := runs("bytes", *SHORT, *BYTES))
    before, after, _ = begun(runs("more-bytes", *SHORT, *BYTES, f"init_from={{run:'{parent.path}',vocabulary:adapt}}"))
    weights, name = final_weights(parent, parent.config()), "embedding.source_table.weight"
    assert torch.equal(after[name][:132], weights[name][:132])  # of étude's own, and of ASCII
    assert torch.equal(after[name][132:], before[name][132:])  # bytes that are no text by themselves


def test_other_subwords_are_refused_with_two_ways_out(parent: RunDir, runs: Freeze) -> None:
    child = runs("other-subwords", *SHORT, "tokenizer.vocab_size=26", f"init_from={parent.path}")
    with pytest.raises(UserError, match=r"vocabulary:adapt.*tokenizer=existing tokenizer\.file="):
        begun(child)


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        ("unfinished", "is not finished: train it to its end first"),
        ("diverged", "diverged .the loss is nan.: begin from another run"),
        ("no run", "is not the directory of a run"),
        ("no file", "there is no such file"),
        ("key", "init_from.vocabularies is not a key; .*did you mean vocabulary"),
        ("value", "init_from.vocabulary=mine: say same or adapt"),
        ("number", r"init_from=1234567890 is no text: a hash that reads as a number needs quotes"),
    ],
)
def test_what_cannot_be_begun_from_is_refused_in_one_sentence(
    spoilt: str, words: str, parent: RunDir, tmp_path: Path
) -> None:
    run = RunDir(tmp_path / "runs" / "s" / "a" / "seed1-0123456789")
    run.path.mkdir(parents=True)
    run.config_file.write_text(parent.config_file.read_text())
    if spoilt == "diverged":
        write_json(run.result_file, {"diverged": "the loss is nan"})
    named = {
        "no run": str(tmp_path),
        "no file": "no.safetensors",
        "number": 1234567890,
        "key": {"run": str(parent.path), "vocabularies": "adapt"},
        "value": {"run": str(parent.path), "vocabulary": "mine"},
    }
    with pytest.raises(UserError, match=words):
        find_parent(named.get(spoilt, str(run.path)))  # type: ignore[arg-type]


def test_a_parent_is_found_by_its_hash_and_by_study_arm_and_seed(parent: RunDir) -> None:
    study, arm, name = parent.path.parts[-3:]
    seed, _, digits = name.removeprefix("seed").partition("-")
    for named in (digits, f"{study}/{arm}/{seed}"):
        assert find_parent(named, str(parent.path.parents[2])) == find_parent(str(parent.path))


def test_where_nothing_says_of_which_subwords_a_file_is_that_is_told(
    file: Path, tmp_path: Path, runs: Freeze, caplog: pytest.LogCaptureFixture
) -> None:
    (alone := tmp_path / "model.safetensors").write_bytes(file.read_bytes())
    for place, is_told in ((alone, True), (file, False)):
        caplog.clear()
        train(runs(f"subwords-{is_told}", *SHORT, f"init_from={place}"))
        assert (f"no sentencepiece.model lies beside {alone}" in caplog.text) is is_told


def test_weights_none_of_which_fits_or_torn_ones_are_refused(file: Path, tmp_path: Path, runs: Freeze) -> None:
    (torn := tmp_path / "torn.safetensors").write_bytes(file.read_bytes()[:-100])
    wider = ["model.d_model=16", "model.d_ff=24"]
    for name, words in ((torn, "is not a whole file of safetensors"), (file, "none of its .* has the name and shape")):
        with pytest.raises(UserError, match=words):
            begun(runs(f"refused-{name.stem}", *SHORT, *wider, f"init_from={name}"))


def test_a_parent_that_other_code_made_is_taken_and_told(
    parent: RunDir, runs: Freeze, caplog: pytest.LogCaptureFixture
) -> None:
    child, made = runs("other-code", *SHORT, f"init_from={parent.path}"), parent.result()
    parent.write_result(made | {"results_version": 0})
    begun(child)
    parent.write_result(made)
    assert "made by other code than today's" in caplog.text
