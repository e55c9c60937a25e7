"""What is analysed: which sentences, and of which runs."""

from dataclasses import replace

import pytest
import torch

from etude.errors import UserError
from etude.files import write_json
from etude.inspect.analyze.analysis import analyze_run
from etude.inspect.analyze.subject import Subject, longest_training_sentence, sample_text
from etude.store.run_dir import RunDir


def leave_text(subject, pairs):
    """As a finished run does."""
    for file, side in ((subject.run.sources_file, 0), (subject.run.references_file, 1)):
        file.write_text("".join(f"{pair[side]}\n" for pair in pairs))


def test_a_sample_is_pairs_of_the_test_set_in_their_order(subject, pairs):
    one = subject()
    leave_text(one, pairs)
    text = sample_text(one, 10, seed=1)
    rows = [pairs.index(pair) for pair in zip(text.sources, text.references, strict=True)]
    assert len(rows) == 10
    assert rows == sorted(set(rows))


def test_all_models_get_the_same_sample_of_one_text(subject, pairs):
    one, other = subject(), subject("model/position=none", "model.n_layers=1")
    leave_text(one, pairs)
    assert sample_text(one, 10, seed=1).sources == sample_text(other, 10, seed=1).sources
    assert sample_text(one, 10, seed=1).sources != sample_text(one, 10, seed=2).sources


def test_a_text_smaller_than_the_sample_is_taken_whole(subject, pairs):
    one = subject()
    leave_text(one, pairs)
    assert sample_text(one, 1000, seed=1).sources == [source for source, _ in pairs]


def test_a_run_without_its_text_turns_to_the_data_and_refuses_other_word_pieces(subject, tmp_path):
    one = subject(
        "data=grammar",
        "data.train_pairs=300",
        "data.valid_pairs=10",
        "data.test_pairs=20",
        "tokenizer.vocab_size=200",
        f"cache_dir={tmp_path}",
    )
    assert longest_training_sentence(one) is None, "nothing is prepared yet"
    with pytest.raises(UserError, match="the text has changed"):
        sample_text(one, 5, seed=1)
    assert longest_training_sentence(one) > 5


def test_trees_are_scored_by_their_brackets_and_other_text_by_bleu(subject):
    assert [subject(f"task={task}").metric for task in ("parsing", "translation")] == ["bracket_f1", "bleu"]
    found = subject("task=parsing", "decoding=greedy")
    trees = found.text([("it rains .", "(TOP (S (NP XX )NP (VP XX )VP . )S )TOP")])
    assert found.translations(trees).rows.shape == (1, 3)


@pytest.mark.parametrize("key", ["signature", "bleu_lowercased_signature"])
def test_bleu_is_of_lower_case_where_the_runs_own_is(analysed, key):
    one, text = analysed()
    loud = replace(text, references=[line.upper() for line in text.references])
    assert not one.translations(loud, beam=1).score
    write_json(one.run.result_file, {"test": {key: "nrefs:1|case:lc|eff:no|tok:13a"}})
    assert one.translations(loud, beam=1).score == one.translations(text, beam=1).score > 0


def test_a_model_gone_astray_is_refused(subject, pairs):
    one = subject()
    leave_text(one, pairs)
    one.model.encoder.layers[0].attention.q_proj.weight.data.fill_(torch.nan)
    with pytest.raises(UserError, match="its training diverged"):
        analyze_run(one, {"sentences": 5, "seed": 1})


def test_a_folder_that_is_no_run_and_a_run_that_is_not_finished_are_refused(tmp_path):
    with pytest.raises(UserError, match="not the directory of a run"):
        Subject.of(RunDir(tmp_path), "cpu")
    (tmp_path / "config.yaml").write_text("seed: 1\n")
    with pytest.raises(UserError, match="is not finished"):
        Subject.of(RunDir(tmp_path), "cpu")
