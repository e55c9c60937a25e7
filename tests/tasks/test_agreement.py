"""Agreement: the answers of models whose preferences are known, and how they are counted."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from etude.data.store import TokenStore
from etude.errors import UserError
from etude.tasks.agreement import Agreement, accuracy

from . import conftest

TASK = Agreement(side="source")
CONFIG = {
    "task": {"_target_": "etude.tasks.agreement.Agreement", "side": "source"},
    "budget": {"source_tokens": 60, "target_tokens": 60},
}
FORMS = {"dog": "sleeps", "dogs": "sleep"}
OTHER = {"sleeps": "sleep", "sleep": "sleeps"}
LINES = [
    (f"the {noun} {'so ' * more}{verb} .", f"{OTHER[verb]} {more + 2} {more + 1}")
    for more in range(9)
    for noun, verb in FORMS.items()
]


make_store = partial(conftest.make_store, vocab_size=40, model_type="word")


def test_the_questions_are_no_text_to_be_modelled() -> None:
    with pytest.raises(ValueError, match=r"task\.side=target: the targets of task=agreement are questions"):
        Agreement(side="target")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    return make_store(tmp_path_factory.mktemp("text"), LINES)


class Looking(nn.Module):
    """Prefers the verb of the noun that it sees among the last words, and without one "sleeps" by so much."""

    def __init__(self, store: TokenStore, reach: int, otherwise: float) -> None:
        super().__init__()
        self.token = {word: store.tokenizer.encode(word)[0] for word in (*FORMS, *OTHER)}
        self.reach, self.otherwise = reach, otherwise
        self.size = nn.Parameter(torch.zeros(store.vocab_size))

    def forward(self, source: torch.Tensor, source_mask: torch.Tensor, target_in: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*target_in.shape, len(self.size))
        for row, line in enumerate(target_in.tolist()):
            for place in range(len(line)):
                seen = line[max(0, place + 1 - self.reach) : place + 1]
                nouns = [noun for noun in FORMS if self.token[noun] in seen]
                logits[row, place, self.token[FORMS[nouns[0]] if nouns else "sleeps"]] = 1 if nouns else self.otherwise
        return logits


class Near(Looking):
    """Prefers by so little that both logits are one number in bfloat16."""

    def forward(self, *batch: torch.Tensor) -> torch.Tensor:
        return (8 + super().forward(*batch) / 100) @ torch.eye(len(self.size))


def scores(store: TokenStore, model: nn.Module, least: int, most: int | None) -> float:
    found = TASK.answer(CONFIG, model, store, "test")
    assert found["sources"] == [line for line, _ in LINES]
    score: float = accuracy(found["hypotheses"], found["references"], least=least, most=most)["score"]
    return score


@pytest.mark.parametrize("reach", [1, 4, 9])
def test_a_model_that_sees_the_last_words_is_right_as_far_as_it_sees_and_then_half_of_the_time(store, reach):
    model = Looking(store, reach, otherwise=0.5).train()
    for distance in range(1, 10):
        assert scores(store, model, distance, distance) == (100 if distance <= reach else 50)
    assert model.training


def test_a_small_preference_counts_in_half_precision_too(store):
    with torch.autocast("cpu", torch.bfloat16):
        assert scores(store, Near(store, 9, otherwise=0.5), 1, 9) == 100


def test_a_verb_behind_words_that_are_unknown_is_found_in_its_place(tmp_path):
    strange = [("the zig zag dog sleeps .", "sleep 4 1"), ("the zig zag dogs sleep .", "sleeps 4 1")]
    store = make_store(tmp_path, LINES, test=strange)
    assert len(store.tokenizer.encode(strange[0][0])) < 6, "two unknown words should be one token"
    found = TASK.answer(CONFIG, Looking(store, 1, otherwise=0), store, "test")
    assert found["hypotheses"] == found["references"] == ["sleeps 1", "sleep 1"]


def test_no_preference_is_no_right_answer(store):
    assert scores(store, Looking(store, 0, otherwise=0), 1, None) == 0


def test_an_answer_is_a_form_with_its_distance(store):
    found = TASK.answer(CONFIG, Looking(store, 0, otherwise=1), store, "test")
    assert found["references"][:4] == ["sleeps 1", "sleep 1", "sleeps 2", "sleep 2"]
    assert found["hypotheses"][:4] == ["sleeps 1", "sleeps 1", "sleeps 2", "sleeps 2"]


answers = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("ab"), st.integers(1, 9)), min_size=1)


@given(answers, st.integers(1, 9), st.none() | st.integers(0, 9))
def test_accuracy_is_that_of_a_loop(rows, least, most):
    right = total = 0
    for said, wanted, distance in rows:
        if distance >= least and (most is None or distance <= most):
            total += 1
            right += said == wanted
    lines = [[f"{row[side]} {row[2]}" for row in rows] for side in (0, 1)]
    if total:
        assert accuracy(*lines, least=least, most=most)["score"] == pytest.approx(100 * right / total)
    else:
        with pytest.raises(UserError, match=f"no agreement reaches over {least} to"):
            accuracy(*lines, least=least, most=most)


@pytest.mark.parametrize("question", ["sleep 2", "sleep two 1", "sleep 9 1", "2 1 sleep", "sleep 2 1 more"])
def test_what_is_no_question_is_refused_with_its_line(question, tmp_path):
    store = make_store(tmp_path, [*LINES, ("the dog sleeps .", question)])
    with pytest.raises(UserError, match=f"line {len(LINES) + 1} of the valid text: '{question}' is not a question"):
        TASK.check_text(store)


def test_subwords_are_refused(tmp_path, store):
    TASK.check_text(store)
    with pytest.raises(UserError, match="say tokenizer=word"):
        TASK.check_text(make_store(tmp_path, LINES, model_type="char"))


def test_questions_on_a_form_that_no_model_can_prefer_are_counted(tmp_path, caplog):
    strange = [
        ("the dog sleeps .", "zigzag 2 1"),
        ("the dog zigzags .", "sleep 2 1"),
        ("the dog sleeps .", "sleep 2 1"),
    ]
    TASK.check_text(make_store(tmp_path, LINES, test=strange))
    [told] = [record.getMessage() for record in caplog.records if record.name == "etude.tasks.agreement"]
    assert told.startswith("2 of 3 questions of the test text ask for a form that the vocabulary does not hold")


def test_a_question_on_a_word_that_is_cut_off_is_refused_before_training(tmp_path):
    far = [(f"the dog {'so ' * 40}sleeps .", "sleep 42 41")]
    with pytest.raises(UserError, match=r"line 1 of the test text asks about word 42, .* budget.max_tokens=40: raise"):
        TASK.check_text(make_store(tmp_path, LINES, test=far))
