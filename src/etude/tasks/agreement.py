"""Agreement of a verb with its subject: which of its two forms does a language model find more probable?

Linzen et al. 2016, "Assessing the Ability of LSTMs to Learn Syntax-Sensitive Dependencies", and Marvin and Linzen 2018,
"Targeted Syntactic Evaluation of Language Models".
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from etude.data.store import TokenStore
from etude.errors import UserError
from etude.tasks import build
from etude.tasks.language_modelling import LanguageModelling
from etude.tasks.task import Config


class Agreement(LanguageModelling):
    """A language model of the sources; the targets are questions, which are asked of it in the end.

    A question is "FORM POSITION DISTANCE": the form that would be wrong at that word of the line, words counted from 0,
    and over how many words the agreement reaches. The answer is the more probable of the two forms after the words
    before them; where both are as probable, the wrong one.
    """

    def check_text(self, store: TokenStore) -> None:
        """See to it that a question is one, and that its forms are single tokens.

        Raises:
            UserError: it is not.
        """
        for name in ("valid", "test"):
            for number, (line, question) in enumerate(zip(*store.text(name), strict=True), start=1):
                words, asked = line.split(), question.split()
                if len(asked) != 3 or not all(map(str.isdecimal, asked[1:])) or int(asked[1]) >= len(words):
                    raise UserError(
                        f"line {number} of the {name} text: {question!r} is no question for task=agreement, which is "
                        "the wrong form, its position in the line from 0, and a distance, such as 'sleep 4 3'"
                    )
                if any(len(store.tokenizer.encode(form)) != 1 for form in (asked[0], words[int(asked[1])])):
                    raise UserError("task=agreement asks for whole words: say tokenizer=word")

    @torch.no_grad()
    def answer(self, config: Config, model: nn.Module, store: TokenStore, split: str) -> dict[str, list[str]]:
        """What the model says, and what is right, each with its distance: "sleeps 3"."""
        lines, questions = store.text(split)
        answers, right, encode = [""] * len(lines), [""] * len(lines), store.tokenizer.encode
        device, training = next(model.parameters()).device, model.training
        model.eval()
        for batch in build.evaluation_batches(config, store.split(split)):
            batch = batch.to(device)
            logits = model(batch.source, batch.source_mask, batch.target_in)  # (B, T, V)
            for row, of_line in zip(batch.rows.tolist(), logits, strict=True):
                wrong, position, distance = questions[row].split()
                words = lines[row].split()
                forms = [wrong, words[int(position)]]
                place = len(encode(" ".join(words[: int(position)])))  # neighbours that are unknown are one token
                for_wrong, for_right = of_line[place, [encode(form)[0] for form in forms]].tolist()
                answers[row], right[row] = (f"{form} {distance}" for form in (forms[for_right > for_wrong], forms[1]))
        model.train(training)
        return {"sources": lines, "references": right, "hypotheses": answers}


def accuracy(hypotheses: Sequence[str], references: Sequence[str], *, least: int, most: int | None) -> dict[str, Any]:
    """How many answers in a hundred are right, of those over `least` to `most` words, or more where that is None.

    Raises:
        UserError: there are none.
    """
    pairs = zip(hypotheses, references, strict=True)
    far = [answer == right for answer, right in pairs if least <= int(right.split()[1]) <= (most or math.inf)]
    if not far:
        raise UserError(f"no agreement reaches over {least} to {most or 'more'} words")
    return {"score": 100 * sum(far) / len(far), "signature": f"words:{least}-{most or ''}|questions:{len(far)}"}
