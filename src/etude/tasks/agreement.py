"""Subject-verb agreement: which of the two forms of a verb a language model finds more probable.

Linzen et al. 2016, "Assessing the Ability of LSTMs to Learn Syntax-Sensitive Dependencies", and Marvin and Linzen 2018,
"Targeted Syntactic Evaluation of Language Models".
"""

import logging
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from etude.data.store import TokenStore
from etude.data.tokenizer import UNK
from etude.errors import UserError
from etude.tasks import build
from etude.tasks.language_modelling import LanguageModelling
from etude.tasks.task import Config

log = logging.getLogger(__name__)


class Agreement(LanguageModelling):
    """Language modelling of the sources; the targets are questions on them, which are evaluated after training.

    A question is "FORM POSITION DISTANCE": the wrong form of the word at that position of the line (counted from 0),
    and the number of words over which the agreement reaches. The answer is the form that is more probable after the
    words before it; if both are equally probable, the wrong one.
    """

    def __init__(self, *, side: str) -> None:
        super().__init__(side=side)
        if side != "source":
            raise ValueError(f"task.side={side}: the targets of task=agreement are questions: leave it out")

    def check_text(self, store: TokenStore) -> None:
        """Check that every question is well-formed and on words that are kept, and that both forms are single tokens.

        Questions on a form that is not in the vocabulary are counted in a warning.

        Raises:
            UserError: one is not.
        """
        encode, limit = store.tokenizer.encode, store.meta["limits"]["max_tokens"]
        for name in ("valid", "test"):
            unknown = 0
            for number, (line, question) in enumerate(zip(*store.text(name), strict=True), start=1):
                words, fields = line.split(), question.split()
                if len(fields) != 3 or not all(map(str.isdecimal, fields[1:])) or int(fields[1]) >= len(words):
                    raise UserError(
                        f"line {number} of the {name} text: {question!r} is not a question for task=agreement, "
                        "which is the wrong form, its position in the line from 0, and a distance, such as 'sleep 4 3'"
                    )
                if len(encode(" ".join(words[: int(fields[1]) + 1]))) > limit:
                    raise UserError(
                        f"line {number} of the {name} text asks about word {fields[1]}, and lines are cut to "
                        f"budget.max_tokens={limit}: raise it"
                    )
                forms = [encode(form) for form in (fields[0], words[int(fields[1])])]
                if any(len(form) != 1 for form in forms):
                    raise UserError("task=agreement asks for whole words: say tokenizer=word")
                unknown += [UNK] in forms
            if unknown:
                log.warning(
                    "%d of %d questions of the %s text ask for a form that the vocabulary does not hold: no model "
                    "prefers it, whatever it has learned; raise tokenizer.vocab_size, or train on text with both forms",
                    *(unknown, number, name),
                )

    @torch.no_grad()
    def answer(self, config: Config, model: nn.Module, store: TokenStore, split: str) -> dict[str, list[str]]:
        """Return the forms that the model prefers and the right ones, each with its distance, such as "sleeps 3"."""
        lines, questions = store.text(split)
        answers, right, encode = [""] * len(lines), [""] * len(lines), store.tokenizer.encode
        device, training = next(model.parameters()).device, model.training
        model.eval()
        for batch in build.evaluation_batches(config, store.split(split)):
            batch = batch.to(device)
            with torch.autocast(device.type, enabled=False):  # in half precision many logits are equal
                logits = model(batch.source, batch.source_mask, batch.target_in)  # (B, T, V)
            for row, row_logits in zip(batch.rows.tolist(), logits, strict=True):
                wrong, position, distance = questions[row].split()
                words = lines[row].split()
                forms = [wrong, words[int(position)]]
                # Tokens before the verb: fewer than words where neighbouring unknown words are one token.
                index = len(encode(" ".join(words[: int(position)])))
                wrong_logit, right_logit = row_logits[index, [encode(form)[0] for form in forms]].tolist()
                preferred = forms[right_logit > wrong_logit]
                answers[row], right[row] = (f"{form} {distance}" for form in (preferred, forms[1]))
        model.train(training)
        return {"sources": lines, "references": right, "hypotheses": answers}


def accuracy(hypotheses: Sequence[str], references: Sequence[str], *, least: int, most: int | None) -> dict[str, Any]:
    """Compute the accuracy, in per cent, on questions with a distance of `least` to `most` words (None: no limit).

    Raises:
        UserError: there are no such questions.
    """
    pairs, limit = zip(hypotheses, references, strict=True), math.inf if most is None else most
    correct = [answer == right for answer, right in pairs if least <= int(right.split()[1]) <= limit]
    if not correct:
        raise UserError(f"no agreement reaches over {least} to {'more' if most is None else most} words")
    signature = f"words:{least}-{'' if most is None else most}|questions:{len(correct)}"
    return {"score": 100 * sum(correct) / len(correct), "signature": signature}
