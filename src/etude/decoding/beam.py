"""Beam search (section 6.1): from source subwords to the best translations a model can be found to hold.

Everything runs on tensors, for all sentences of a batch at once. A batch shrinks while it is decoded: a hypothesis that
can no longer win leaves it, and with its last hypothesis a sentence does.

Letters: A sentences still running, W hypotheses each, L the longest translation, R rows of the decoder state.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from etude.data.tokenizer import BOS, EOS, PAD
from etude.errors import UserError


class DecoderState(Protocol):
    """Where decoding stands: R rows, each a source with the target tokens fed so far."""

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated or left out."""


State = TypeVar("State", bound=DecoderState)


class StepwiseModel(Protocol[State]):
    """What a search asks of a model."""

    def start(self, source: Tensor, source_mask: Tensor) -> State:
        """Encode (B, S) and its mask (True at real tokens); nothing is decoded yet."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Feed one more token (R,) per row, which `state` remembers; logits (R, V) of the one after."""


class NoNumbers(UserError):  # noqa: N818
    """A model has come to logits that are no numbers."""


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation."""

    tokens: tuple[int, ...]  # without the end token
    log_probability: float  # log P(tokens, end token | source), in nats
    score: float  # log_probability divided by the length penalty


class BeamSearch:
    """Keeps the `beam` most probable beginnings of a translation, and answers with the best-scored finished ones.

    The score is log P / lp(n), lp(n) = ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14), n counting the end token.

    - In each step the best `beam` extensions of a sentence form its beam. Those that end go to its pool, and the next
      best take their places, so that `beam` hypotheses go on. `beam: 1` is greedy search: it takes the most probable
      token, and when that is the end token, it is done.
    - An unfinished hypothesis is given up when it cannot beat the best of the pool. Its log P is negative and only
      falls, and alpha >= 0, so however it ends its score is at most log P / lp(longest length allowed). Whatever
      grows out of a hypothesis given up ranks behind every one that is kept: giving up never changes the best answer.
    - A translation has at most as many tokens as the source and `max_len_offset` more, both counted with or both
      without the end token. Hypotheses that get there must end: they pay for their end token and compete with the rest.
    - Padding and the start token are never generated. Their share of the probability is lost, not redistributed.

    Args:
        beam: hypotheses kept, at least 1.
        alpha: strength of the length penalty, at least 0; 0 compares plain log-probabilities.
        max_len_offset: subwords a translation may have more than its source, at least 0.
        batch_tokens: source tokens that whoever makes the batches puts into one, padding counted and each `beam` times;
            None, as in runs of before: as many as a training batch holds, each once.

    Raises:
        UserError: an argument is out of its range.
    """

    def __init__(self, *, beam: int, alpha: float, max_len_offset: int, batch_tokens: int | None = None) -> None:
        for name, value, least in (("beam", beam, 1), ("alpha", alpha, 0), ("max_len_offset", max_len_offset, 0)):
            if not value >= least:
                raise UserError(f"decoding.{name} is {value}; it must be at least {least}")
        self.beam, self.alpha, self.max_len_offset, self.batch_tokens = beam, alpha, max_len_offset, batch_tokens

    def length_penalty(self, length: Tensor) -> Tensor:
        """((5 + length) / 6)^alpha, element by element; `length` counts the end token."""
        return ((5.0 + length) / 6.0) ** self.alpha

    @torch.inference_mode()
    def __call__(self, model: StepwiseModel[State], source: Tensor, source_mask: Tensor) -> list[list[Hypothesis]]:
        """Translate a batch.

        Args:
            model: in evaluation mode.
            source: (B, S) subwords, the end token included.
            source_mask: (B, S), True at real tokens.

        Returns:
            For each sentence one to `beam` finished hypotheses, best first. The first is what the search is for; the
            others are those that finished on the way. A model that gives no translation a probability yields the
            empty hypothesis with log-probability -inf.

        Raises:
            NoNumbers: a logit is NaN, or infinite.
        """
        limits = source_mask.sum(dim=1) + self.max_len_offset  # (B,), the end token counted
        longest = int(limits.max())
        pool = _Pool(len(source), self.beam, longest, source.device)
        sentence = torch.arange(len(source), device=source.device)  # (A,)
        alive = torch.zeros(len(source), 1, device=source.device)  # (A, W) log P; -inf where there is no hypothesis
        history = source.new_full((len(source), 1, longest), PAD)  # (A, W, L)
        tokens = source.new_full((len(source),), BOS)  # (R,): the last one of every hypothesis that is alive
        state = model.start(source, source_mask)

        for length in range(1, longest + 1):
            logits = model.step(tokens, state)
            total, word, parent = self._candidates(logits, alive, must_end=limits[sentence] == length)

            ended = total.masked_fill(word != EOS, -torch.inf)[:, : self.beam]
            if ended.isfinite().any():
                scores = ended / self.length_penalty(torch.tensor(length))
                pool.add(sentence, ended, scores, _choose(history, parent[:, : self.beam]))

            total, kept = total.masked_fill(word == EOS, -torch.inf).topk(min(self.beam, total.size(1)))
            word, parent = word.gather(1, kept), parent.gather(1, kept)
            hopeless = total / self.length_penalty(limits[sentence]).unsqueeze(1) <= pool.best(sentence).unsqueeze(1)
            if self.beam == 1:
                hopeless |= ended.isfinite()
            total = total.masked_fill(hopeless, -torch.inf)

            going = total.isfinite()
            running = going.any(dim=1)
            if not running.any():
                break
            state.reorder(_rows(alive).gather(1, parent)[going])
            tokens = word[going]
            history = _choose(history, parent)
            history[:, :, length - 1] = word
            sentence, alive, history = sentence[running], total[running], history[running]
        return pool.hypotheses()

    def _candidates(self, logits: Tensor, alive: Tensor, must_end: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The 2 * beam best extensions of every sentence: a hypothesis ends in one way only, so `beam` others are left.

        Args:
            logits: (R, V).
            alive: (A, W), log P of the hypotheses; R of them are not -inf.
            must_end: (A,), True where nothing is allowed but the end token.

        Returns:
            log P of the extended hypothesis, -inf where there is none, best first; the token it is extended with; and
            which of the W it extends; all (A, C) with C at most 2 * beam.
        """
        live = alive.isfinite()
        row_values, row_words = self._extensions(logits, must_end.unsqueeze(1).expand_as(live)[live])
        values = alive.new_full((*alive.shape, row_values.size(1)), -torch.inf)
        words = row_words.new_full(values.shape, PAD)
        values[live], words[live] = row_values + alive[live].unsqueeze(1), row_words
        total, index = values.flatten(1).topk(min(2 * self.beam, values[0].numel()))
        return total, words.flatten(1).gather(1, index), index // values.size(2)

    def _extensions(self, logits: Tensor, must_end: Tensor) -> tuple[Tensor, Tensor]:
        """To end, and the `beam` best other tokens: no more than that can be among the candidates.

        From logits (R, V) and `must_end` (R,) to log-probabilities and tokens, both (R, 1 + beam), the end token first.
        """
        log_probabilities = logits.float().log_softmax(dim=-1)
        if log_probabilities[:, EOS].isnan().any():  # as all of its row
            raise NoNumbers(
                "a translation comes to logits that are no numbers: the model's `step` should give what `forward` gives"
            )
        end = log_probabilities[:, EOS, None].clone()
        log_probabilities[:, [PAD, BOS, EOS]] = -torch.inf
        values, words = log_probabilities.topk(min(self.beam, logits.size(1)))
        values = torch.cat([end, values.masked_fill(must_end.unsqueeze(1), -torch.inf)], dim=1)
        words = torch.cat([torch.full_like(words[:, :1], EOS), words], dim=1)
        return values, words


class _Pool:
    """The best finished hypotheses of B sentences, best first; log P is -inf where there is none yet."""

    def __init__(self, sentences: int, beam: int, longest: int, device: torch.device) -> None:
        self._scores = torch.full((sentences, beam), -torch.inf, device=device)
        self._log_probabilities = self._scores.clone()
        self._tokens = torch.full((sentences, beam, longest), PAD, device=device)

    def best(self, sentence: Tensor) -> Tensor:
        """(A,) to the best scores (A,)."""
        return self._scores[sentence, 0]

    def add(self, sentence: Tensor, log_probabilities: Tensor, scores: Tensor, tokens: Tensor) -> None:
        """Hypotheses (A, W) and their tokens (A, W, L), padded; -inf where there is none."""
        scores = torch.cat([self._scores[sentence], scores], dim=1)
        log_probabilities = torch.cat([self._log_probabilities[sentence], log_probabilities], dim=1)
        tokens = torch.cat([self._tokens[sentence], tokens], dim=1)
        self._scores[sentence], best = scores.topk(self._scores.size(1))
        self._log_probabilities[sentence] = log_probabilities.gather(1, best)
        self._tokens[sentence] = _choose(tokens, best)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Best first, at least one a sentence."""
        found = self._scores.isfinite().sum(dim=1).clamp(min=1).tolist()
        scores, log_probabilities = self._scores.tolist(), self._log_probabilities.tolist()
        return [
            [
                Hypothesis(tuple(token for token in tokens[i] if token != PAD), log_probabilities[b][i], scores[b][i])
                for i in range(found[b])
            ]
            for b, tokens in enumerate(self._tokens.tolist())
        ]


def _choose(tokens: Tensor, index: Tensor) -> Tensor:
    """The hypotheses `index` (A, W') of `tokens` (A, W, L): (A, W', L)."""
    return tokens.gather(1, index.unsqueeze(2).expand(-1, -1, tokens.size(2)))


def _rows(alive: Tensor) -> Tensor:
    """(A, W): where in the decoder state each hypothesis stands that is alive; they stand there in this order."""
    return (alive.isfinite().flatten().cumsum(0) - 1).view_as(alive)
