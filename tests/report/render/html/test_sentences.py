from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_bleu as sacrebleu

from etude.report.render.html import sentences
from etude.report.render.html.sentences import bucket_bleu, buckets, samples
from etude.report.scores import TestSet
from etude.report.statistics import count
from etude.store.records import Run
from etude.store.run_dir import RunDir
from etude.tasks.bleu_sums import corpus_bleu

WORDS = ["the", "old", "dog", "sees", "a", "cat", "."]
lines = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)

REFERENCES = ["a cat sees the old dog .", "the dog .", "the cat sees a dog .", "a dog sees a cat ."]
BASE = ["a cat sees the old dog .", "the cat .", "the cat sees a dog .", "the old cat sees ."]
OTHER = ["a cat sees the old cat .", "the dog .", "the cat sees a dog .", "the dog"]


def told(base: Sequence[str], other: Sequence[str]) -> dict:
    run = Run(RunDir(Path()), "heads", "base", 1, {}, {"test": {"sentences": len(REFERENCES)}})
    test_set = TestSet(run, [line.upper() for line in REFERENCES], REFERENCES)
    said = {"base": base, "A1": other}
    return samples(test_set, said, {arm: count(arm, [its], REFERENCES) for arm, its in said.items()}, "base")


@given(lines, lines)
def test_a_sentence_scores_as_sacrebleu_scores_it(hypothesis: str, reference: str) -> None:
    counts = count("base", [[hypothesis]], [reference]).counts[0]
    assert corpus_bleu(counts, effective_order=True)[0] == pytest.approx(sacrebleu(hypothesis, [reference]).score)


def test_samples_are_the_sentences_on_which_the_arms_differ() -> None:
    found = told(BASE, OTHER)
    assert found["of"] == 4
    assert {one["reference"] for one in found["sentences"]} == {REFERENCES[0], REFERENCES[1], REFERENCES[3]}


def test_a_sample_holds_what_every_arm_said_and_its_score() -> None:
    first = next(one for one in told(BASE, OTHER)["sentences"] if one["reference"] == REFERENCES[1])
    by_arm = {arm: first["said"][at] for arm, at in first["by"].items()}
    assert first["source"] == REFERENCES[1].upper()
    assert by_arm["A1"] == ["the dog .", 100.0]
    assert by_arm["base"] == ["the cat .", round(sacrebleu("the cat .", ["the dog ."]).score, 1)]


def test_arms_that_translate_alike_leave_nothing_to_show() -> None:
    assert told(BASE, BASE)["sentences"] == []


def test_samples_stay_within_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "ROOM", 250)
    kept = told(BASE, OTHER)["sentences"]
    assert 0 < len(kept) < 3
    assert len(str(kept).encode()) < 2 * 250


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_every_sentence_is_in_the_one_bucket_of_its_length(lengths: list[int]) -> None:
    found = buckets(["x " * length for length in lengths])
    assert sorted(index for _, some in found for index in some) == list(range(len(lengths)))
    assert 1 <= len(found) <= 5
    for label, some in found:
        low, *_, high = map(int, (label.split("–") * 2)[:2])
        assert all(low <= lengths[index] <= high for index in some)
        assert len(some)


def test_the_bleu_of_a_bucket_is_that_of_its_sentences_alone() -> None:
    counts = count("A1", [BASE, OTHER], REFERENCES)
    (found,) = bucket_bleu(counts, [np.array([0, 3])])
    parts = [count("A1", [[run[0], run[3]]], [REFERENCES[0], REFERENCES[3]]).bleu[0] for run in (BASE, OTHER)]
    assert found == pytest.approx(sum(parts) / 2, abs=0.01)
