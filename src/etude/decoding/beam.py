"""Beam search (section 6.1).

All sentences of a batch are decoded together, in tensor operations. The batch shrinks during decoding: a hypothesis
that can no longer win is removed, and a sentence is removed with its last hypothesis.

Letters: A unfinished sentences, W hypotheses each, L the longest translation allowed, R rows of the decoder state.
"""

from dataclasses import dataclass
from math import inf
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from etude.data.tokenizer import BOS, EOS, PAD
from etude.errors import UserError


class DecoderState(Protocol):
    """State of decoding R rows, each a source sentence with the target tokens decoded so far."""

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated or left out."""


State = TypeVar("State", bound=DecoderState)


class StepwiseModel(Protocol[State]):
    """The interface of a model that a search calls."""

    def start(self, source: Tensor, source_mask: Tensor) -> State:
        """Encode source tokens (B, S) with their mask (B, S), True at real tokens, and begin decoding."""

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Decode one more token (R,) per row, add it to `state`, and return logits (R, V) of the one after it."""


class NoNumbers(UserError):  # noqa: N818
    """Raised when a logit is NaN or +inf, so that no token has a probability."""

    def __init__(self) -> None:
        super().__init__("the model's logits are NaN or infinite: its `step` should give what `forward` gives")


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation."""

    tokens: tuple[int, ...]  # without the end token
    log_probability: float  # log P(tokens, end token | source), in nats
    score: float  # log_probability divided by the length penalty


class BeamSearch:
    """Keeps the `beam` most probable partial translations, and returns the finished ones with the best scores.

    The score is log P / lp(n), lp(n) = ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14); n counts the end token.

    - In each step, finished hypotheses among the best `beam` extensions of a sentence go to its pool. The best `beam`
      unfinished ones are continued. `beam: 1` is greedy search: it takes the most probable token, and stops when that
      is the end token.
    - An unfinished hypothesis is pruned when it cannot beat the best of the pool, or the n-th best if n are asked for.
      Its log P is negative and can only decrease, and alpha >= 0, so its final score is at most log P / lp(longest
      length allowed). All its extensions would rank behind every hypothesis that is kept, so that pruning never changes
      what is asked for.
    - A translation has at most `max_len_offset` tokens more than the source, both counted with or both without the end
      token. A hypothesis of that length must end: the probability of its end token counts, as for all others.
    - Padding and the start token are never generated. Their probability is not redistributed.

    Args:
        beam: number of hypotheses that are kept, at least 1.
        alpha: strength of the length penalty, at least 0; 0 compares plain log-probabilities.
        max_len_offset: how many subwords more than its source a translation may have, at least 0.
        batch_tokens: source tokens of a batch to decode, padding counted and each `beam` times. The search does not
            use it, but whoever makes the batches (`etude.tasks.build`). None, as in older runs: as many as a training
            batch holds, each counted once.

    Raises:
        UserError: an argument is out of its range.
    """

    def __init__(self, *, beam: int, alpha: float, max_len_offset: int, batch_tokens: int | None = None) -> None:
        for name, value, least in (("beam", beam, 1), ("alpha", alpha, 0), ("max_len_offset", max_len_offset, 0)):
            if not least <= value < inf:
                raise UserError(f"decoding.{name} is {value}; it must be at least {least}, and finite")
        self.beam, self.alpha, self.max_len_offset, self.batch_tokens = beam, alpha, max_len_offset, batch_tokens

    def length_penalty(self, length: Tensor) -> Tensor:
        """Compute ((5 + length) / 6)^alpha elementwise; `length` counts the end token."""
        return ((5.0 + length) / 6.0) ** self.alpha

    @torch.inference_mode()
    def __call__(
        self, model: StepwiseModel[State], source: Tensor, source_mask: Tensor, n_best: int = 1
    ) -> list[list[Hypothesis]]:
        """Translate a batch.

        Args:
            model: in evaluation mode.
            source: (B, S) subwords, the end token included.
            source_mask: (B, S), True at real tokens.
            n_best: how many of the hypotheses are wanted, at most `beam`.

        Returns:
            For each sentence one to `beam` finished hypotheses, best first: the first `n_best` are the best that the
            search can find, and as many if that many have a probability above zero; those after them finished before
            it ended, and need not be the next best. If the model gives no translation a probability above zero, the
            only one is empty, with log-probability -inf.

        Raises:
            NoNumbers: a logit is NaN or +inf.
        """
        limits = (source_mask.sum(dim=1) + self.max_len_offset).clamp(min=1)  # (B,), end token counted
        longest = int(limits.max())
        pool = _Pool(len(source), self.beam, longest, source.device)
        sentence = torch.arange(len(source), device=source.device)  # (A,)
        alive = torch.zeros(len(source), 1, device=source.device)  # (A, W) log P; -inf: no hypothesis
        history = source.new_full((len(source), 1, longest), PAD)  # (A, W, L)
        tokens = source.new_full((len(source),), BOS)  # (R,): the last token of every live hypothesis
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
            hopeless = total / self.length_penalty(limits[sentence]).unsqueeze(1) <= pool.bar(
                sentence, n_best
            ).unsqueeze(1)
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
        """Find the 2 * beam best extensions of every sentence, best first.

        At most `beam` of them end, one for each hypothesis, so that at least `beam` can be continued.

        Args:
            logits: (R, V).
            alive: (A, W), log P of the hypotheses; R of them are not -inf.
            must_end: (A,), True where only the end token is allowed.

        Returns:
            log P of the extended hypothesis (-inf: there is none), the token that extends it, and the index of the
            hypothesis (of W) that is extended; all (A, C) with C at most 2 * beam.
        """
        live = alive.isfinite()
        row_values, row_words = self._extensions(logits, must_end.unsqueeze(1).expand_as(live)[live])
        values = alive.new_full((*alive.shape, row_values.size(1)), -torch.inf)
        words = row_words.new_full(values.shape, PAD)
        values[live], words[live] = row_values + alive[live].unsqueeze(1), row_words
        total, index = values.flatten(1).topk(min(2 * self.beam, values[0].numel()))
        return total, words.flatten(1).gather(1, index), index // values.size(2)

    def _extensions(self, logits: Tensor, must_end: Tensor) -> tuple[Tensor, Tensor]:
        """Find the extensions of each row that can be candidates: the end token, and the `beam` best other tokens.

        Args:
            logits: (R, V).
            must_end: (R,), True where only the end token is allowed.

        Returns:
            Log-probabilities and tokens, both (R, 1 + beam), the end token first.
        """
        log_probabilities = logits.float().log_softmax(dim=-1)
        if log_probabilities[:, EOS].isnan().any():  # then the whole row is NaN
            raise NoNumbers
        end = log_probabilities[:, EOS, None].clone()
        log_probabilities[:, [PAD, BOS, EOS]] = -torch.inf
        values, words = log_probabilities.topk(min(self.beam, logits.size(1)))
        values = torch.cat([end, values.masked_fill(must_end.unsqueeze(1), -torch.inf)], dim=1)
        words = torch.cat([torch.full_like(words[:, :1], EOS), words], dim=1)
        return values, words


class _Pool:
    """The best finished hypotheses of B sentences, best first; log P is -inf in empty slots."""

    def __init__(self, sentences: int, beam: int, longest: int, device: torch.device) -> None:
        self._scores = torch.full((sentences, beam), -torch.inf, device=device)
        self._log_probabilities = self._scores.clone()
        self._tokens = torch.full((sentences, beam, longest), PAD, device=device)

    def bar(self, sentence: Tensor, n_best: int) -> Tensor:
        """Return the score of the `n_best`-th hypothesis of each of the sentences (A,); -inf if it has fewer."""
        return self._scores[sentence, n_best - 1]

    def add(self, sentence: Tensor, log_probabilities: Tensor, scores: Tensor, tokens: Tensor) -> None:
        """Add hypotheses (A, W), -inf where there is none, with their padded tokens (A, W, L), to sentences (A,)."""
        scores = torch.cat([self._scores[sentence], scores], dim=1)
        log_probabilities = torch.cat([self._log_probabilities[sentence], log_probabilities], dim=1)
        tokens = torch.cat([self._tokens[sentence], tokens], dim=1)
        self._scores[sentence], best = scores.topk(self._scores.size(1))
        self._log_probabilities[sentence] = log_probabilities.gather(1, best)
        self._tokens[sentence] = _choose(tokens, best)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, best first, at least one per sentence."""
        found = self._scores.isfinite().sum(dim=1).clamp(min=1).tolist()
        self._tokens[self._scores.isinf()] = PAD  # of what was added beside others, where there is none
        scores, log_probabilities = self._scores.tolist(), self._log_probabilities.tolist()
        return [
            [
                Hypothesis(tuple(token for token in tokens[i] if token != PAD), log_probabilities[b][i], scores[b][i])
                for i in range(found[b])
            ]
            for b, tokens in enumerate(self._tokens.tolist())
        ]


def _choose(tokens: Tensor, index: Tensor) -> Tensor:
    """Select the hypotheses `index` (A, W') of `tokens` (A, W, L); returns (A, W', L)."""
    return tokens.gather(1, index.unsqueeze(2).expand(-1, -1, tokens.size(2)))


def _rows(alive: Tensor) -> Tensor:
    """Compute the row of the decoder state (A, W) of each live hypothesis; the state holds these in order."""
    return (alive.isfinite().flatten().cumsum(0) - 1).view_as(alive)
