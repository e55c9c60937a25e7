"""A trained run, in Python and for every verb that works on one: `etude.load`.

    import etude

    run = etude.load("runs/single/base/seed1-9b2e41d0c3")    # or its hash, or "single/base/1"
    run.metrics.plot("step", "valid_perplexity")
    run.translate(["the old woman sees the dog ."])

What is asked for is read or computed then, and kept: `config`, `result` and `metrics` need no PyTorch.
"""

import logging
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from etude.errors import UserError
from etude.files import typed_path
from etude.paths import find_file
from etude.store.divergence import divergence
from etude.store.find_run import Which, find_run
from etude.store.metrics_file import read_metrics
from etude.store.run_dir import RunDir
from etude.yaml_file import read_yaml

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame
    from torch import Tensor

    from etude.data.tokenizer import Tokenizer
    from etude.decoding.translator import Translator
    from etude.model.encoder_decoder import EncoderDecoder
    from etude.trained.attention import Attention
    from etude.trained.translate import Translation

log = logging.getLogger(__name__)

_TOGETHER = 64  # prompts that are continued at the same time


def load(
    which: Which,
    *,
    runs_dir: str | Path | None = None,
    device: "str | torch.device" = "cpu",
    weights: str | None = None,
) -> "TrainedRun":
    """Open a trained run.

    Args:
        which: the path of its directory; its hash, or the beginning of it; `study/arm/seed`, such as `table3/A1/1`; or
            a row of `etude.results`.
        runs_dir: the folder of runs in which a hash or `study/arm/seed` is looked for; None: that of the config.
        device: where its model computes: "cpu", "cuda", or "auto" for a GPU if there is one.
        weights: which weights its model has, "last", "best" or "average"; None: those that the run tests.

    Raises:
        UserError: there is no such run, or there are several.
    """
    return TrainedRun(find_run(which, runs_dir), device, weights)


def texts_of(given: str | Iterable[str]) -> list[str]:
    """Return lines that may be given as one.

    Raises:
        UserError: something else than a text is among them.
    """
    lines = [given] if isinstance(given, str) else [*given] if isinstance(given, Iterable) else [given]
    for line in lines:
        if not isinstance(line, str):
            raise UserError(f"{line!r} is no text: give a line, or a list of lines")
    return lines


class TrainedRun:
    """A trained run: its config, its scores and curves, and its model, which translates, generates and scores text.

    A run that is not finished can be opened, too: its model is then that of its newest checkpoint, and a line of the
    log says so; so does one for a run that diverged, or that was made by other code.

    Args:
        run_dir: the directory of the run.
        device: where the model computes: "cpu", "cuda", or "auto" for a GPU if there is one.
        weights: which weights the model has, as the key `weights` of the config; None: those that the run tests.
    """

    def __init__(self, run_dir: RunDir, device: "str | torch.device" = "cpu", weights: str | None = None) -> None:
        self.run_dir, self.device, self.weights = run_dir, device, weights

    def __repr__(self) -> str:
        return f"etude.load({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The directory of the run."""
        return self.run_dir.path

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config of the run, every value resolved, as nested dictionaries."""
        return self.run_dir.config() | ({"weights": self.weights} if self.weights else {})

    @property
    def result(self) -> dict[str, Any]:
        """What `result.json` holds: the scores on the test set under `test`, parameters, steps, seconds, and more.

        Raises:
            UserError: the run is not finished.
        """
        if not self.run_dir.finished:
            raise UserError(
                f"{self.path} is not finished{self._how_far}, so it has no result: `etude train` with the same words "
                "goes on with it; .metrics are its curves so far"
            )
        return self.run_dir.result()

    @property
    def metrics(self) -> "DataFrame":
        """The curves: a row for each logged step, with the columns of `metrics.csv`; a number is NaN where none is.

        Losses are in nats per target token, `seconds` are those of training. Of a run that goes on, as far as it is.
        """
        import pandas as pd

        rows = pd.DataFrame(read_metrics(self.run_dir.metrics_file))
        return rows.apply(pd.to_numeric, errors="coerce")

    @cached_property
    def _loaded(self) -> "tuple[EncoderDecoder, Tokenizer]":
        from etude.tasks import build
        from etude.trained.load import load_trained

        device = build.device(self.device)
        _, model, tokenizer = load_trained(self.run_dir, self.weights)
        if not self.run_dir.finished:
            log.warning("%s is not finished: this is what it has learned%s", self.path, self._how_far)
        elif why := divergence(self.run_dir.result()):
            log.warning("%s diverged, for %s: this is what its last checkpoint holds", self.path, why)
        return model.to(device), tokenizer

    @property
    def _how_far(self) -> str:
        """Where an unfinished run is: " by step 120 of 400"; empty if it has no checkpoint."""
        from etude.trained.checkpoint import newest_checkpoint

        step, _, file = newest_checkpoint(self.run_dir.checkpoint)
        return f" by step {step} of {self.config['budget']['max_steps']}" if file else ""

    @property
    def model(self) -> "EncoderDecoder":
        """The model with its trained weights, in evaluation mode, on the device.

        Raises:
            UserError: its weights are missing, damaged or were deleted, do not fit the model as it is built today, or
                the device is not there.
        """
        return self._loaded[0]

    @property
    def tokenizer(self) -> "Tokenizer":
        """What turns text into tokens and back; errors as for `model`."""
        return self._loaded[1]

    @overload
    def translate(self, lines: str, *, n_best: None = None, beam: int | None = None, **decoding: Any) -> str: ...
    @overload
    def translate(
        self, lines: Iterable[str], *, n_best: None = None, beam: int | None = None, **decoding: Any
    ) -> list[str]: ...
    @overload
    def translate(
        self,
        lines: str,
        *,
        n_best: int,
        beam: int | None = None,
        alignments: bool = False,
        layer: int | None = None,
        head: int | None = None,
        **decoding: Any,
    ) -> "list[Translation]": ...
    @overload
    def translate(
        self,
        lines: Iterable[str],
        *,
        n_best: int,
        beam: int | None = None,
        alignments: bool = False,
        layer: int | None = None,
        head: int | None = None,
        **decoding: Any,
    ) -> "list[list[Translation]]": ...
    def translate(
        self,
        lines: str | Iterable[str],
        *,
        n_best: int | None = None,
        beam: int | None = None,
        alignments: bool = False,
        layer: int | None = None,
        head: int | None = None,
        **decoding: Any,
    ) -> Any:
        """Translate lines, as `etude translate` does.

        Args:
            lines: the lines; or one, whose translation then is returned by itself.
            n_best: how many translations of each line are returned, with their scores; at most `beam`.
            beam: how many hypotheses the search keeps; None: as many as the run's own.
            alignments: whether to align their words with those of the line; it goes with `n_best`.
            layer, head: whose cross-attention aligns them, counted from 1; by default the mean over the heads of the
                layer whose heads agree best with one another.
            decoding: further options of the search that are not to be the run's own: `alpha`, `max_len_offset`,
                `batch_tokens` (`etude.decoding.beam.BeamSearch`).

        Returns:
            The translation of each line, blank for a blank line. With `n_best`, a list of `Translation` for each line,
            best first, empty for a blank line.

        Raises:
            UserError: the task of the run does not translate; an option of the search is unknown or out of its range;
                `n_best` is more than `beam`; there is no such layer or head; and errors as for `model`.
        """
        from etude.tasks import build
        from etude.trained.align import align
        from etude.trained.translate import Translation

        self._require("translate")
        if alignments and n_best is None:
            raise UserError("alignments come with n_best: n_best=1 gives the best translation with its alignment")
        config, model, tokenizer = self.config, self.model, self.tokenizer
        if not alignments and (layer, head) != (None, None):
            raise UserError("layer and head say by which heads words are aligned: say alignments=true, too")
        asked = decoding if beam is None else {**decoding, "beam": beam}
        translator = self._translator(asked)
        texts = texts_of(lines)
        with build.autocast(config, model):
            found = translator.decode(texts, 1 if n_best is None else n_best)
            pairs = [(decoded.source, one.tokens) for decoded in found for one in decoded.hypotheses]
            read = [text for text, decoded in zip(texts, found, strict=True) for _ in decoded.hypotheses]
            size = translator.batch_tokens
            aligned = iter(
                align(model, tokenizer, pairs, batch_tokens=size, layer=layer, head=head, lines=read)
                if alignments
                else [None] * len(pairs)
            )
        best = [
            [
                Translation(translator.text(one), one.score, one.log_probability, next(aligned))
                for one in each.hypotheses
            ]
            for each in found
        ]
        answers = best if n_best is not None else [one[0].text if one else "" for one in best]
        return answers[0] if isinstance(lines, str) else answers

    @overload
    def generate(self, prompts: str = "", *, first: int = 0, **sampling: Any) -> str: ...
    @overload
    def generate(self, prompts: Iterable[str], *, first: int = 0, **sampling: Any) -> list[str]: ...
    def generate(self, prompts: str | Iterable[str] = "", *, first: int = 0, **sampling: Any) -> Any:
        """Write texts with a language model, as `etude generate` does.

        Args:
            prompts: how the texts begin; or how one does, which then is returned by itself.
            first: the number of the first prompt, from 0: what is drawn depends on the seed and this number.
            sampling: options of the sampling: `temperature`, `top_k`, `top_p`, `max_length` in subwords, the prompt
                counted, and `seed` (`etude.decoding.sampling.Sampling`).

        Returns:
            Each text, with its prompt.

        Raises:
            UserError: the task of the run is not language modelling; an option is unknown or out of its range; and
                errors as for `model`.
        """
        from etude.config.parts import make, override
        from etude.decoding.sliding import Sliding
        from etude.tasks import build

        self._require("generate")
        config, model, tokenizer = self.config, self.model, self.tokenizer
        usual: dict[str, Any] = read_yaml(find_file("conf", "generate.yaml"))["sampling"]
        sample = make(override(usual, sampling, "sampling"))
        most = getattr(sample, "max_length", None)  # a sampling of the user's own need not have it
        is_running = build.is_running(config)
        read = Sliding(model, build.context(config)) if is_running else model
        if not is_running and most is not None:
            build.check_positions(config, most, f"sampling.max_length={most}")
        tokens = [tokenizer.encode(prompt) for prompt in texts_of(prompts)]
        for number, prompt in enumerate(tokens, start=first + 1):
            if most is not None and len(prompt) >= most:
                log.warning("line %d has %d subwords, and sampling.max_length=%d: it stays", number, len(prompt), most)
        if not tokens:
            return []
        with build.autocast(config, model):
            texts = [
                tokenizer.decode(text)
                for start in range(0, len(tokens), _TOGETHER)
                for text in sample(read, tokens[start : start + _TOGETHER], first + start)
            ]
        return texts[0] if isinstance(prompts, str) else texts

    @overload
    def score(self, sources: str, targets: str | None = None) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, sources: Iterable[str], targets: Iterable[str] | None = None) -> list[float]: ...
    def score(self, sources: str | Iterable[str], targets: str | Iterable[str] | None = None) -> Any:
        """Compute the log-probability that the model gives to texts.

        Args:
            sources: lines, or one; for a language model, the texts themselves.
            targets: as many translations, or one; None for a language model.

        Returns:
            log P(target | source) of each pair in nats, the end of the target counted; or that of one pair. For a
            language model log P(text); of running text, whose texts may go on, no end is counted.

        Raises:
            UserError: the task of the run neither translates nor generates; there are not as many targets as sources; a
                line needs more positions than the run has learned; and errors as for `model`.
        """
        import numpy as np
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from etude.data.batch import make_batch
        from etude.data.tokenizer import EOS, PAD
        from etude.decoding.translator import batches_by_length
        from etude.tasks import build
        from etude.tasks.perplexity import row_nats

        if self._translates != (targets is not None):
            way_out = "score(sources, targets)" if self._translates else "score(texts), without targets"
            raise UserError(f"{self.path}: its task needs {way_out}")
        is_alone = isinstance(sources, str)
        first, second = texts_of(sources), texts_of(() if targets is None else targets)
        if targets is None:
            first, second = [""] * len(first), first
        elif isinstance(targets, str) != is_alone:
            raise UserError("one of sources and targets is a line, and the other several: give two lines, or two lists")
        elif len(first) != len(second):
            raise UserError(f"{len(first)} sources and {len(second)} targets: give a target for each source")
        config, model, tokenizer = self.config, self.model, self.tokenizer
        is_running = build.is_running(config)
        read = [[*tokens, EOS] for tokens in tokenizer.source.encode_all(first)]
        written = [tokens if is_running else [*tokens, EOS] for tokens in tokenizer.target.encode_all(second)]
        lengths = [max(map(len, pair)) if pair[1] else 0 for pair in zip(read, written, strict=True)]
        longest = max(lengths, default=0)
        build.check_positions(config, longest, "the longest line")
        if is_running and longest > (most := build.context(config)):
            log.warning(
                "the longest text has %d tokens, and the model was trained on contexts of %d: what comes behind them "
                "is scored as it was never trained; give texts of at most that length",
                *(longest, most),
            )
        found, device = [0.0] * len(lengths), next(model.parameters()).device
        with torch.no_grad(), build.autocast(config, model):
            for rows in batches_by_length(lengths, min(build.batch_sizes(config).values())):
                source, target = (
                    pad_sequence([torch.tensor(side[row]) for row in rows], batch_first=True, padding_value=PAD).numpy()
                    for side in (read, written)
                )
                batch = make_batch(source, target, np.array(rows))
                for row, nats in zip(rows, row_nats(model, batch.to(device)).tolist(), strict=True):
                    found[row] = -nats
        return found[0] if is_alone else found

    def attention(self, text: str, target: str | None = None) -> "Attention":
        """Read where the model looks in a text: its attention weights as arrays, and drawn by `.plot()`.

        Args:
            text: a line to translate; for a language model, the text itself.
            target: its translation, which the decoder reads; None: the model's own, in the subwords that it wrote.

        Raises:
            UserError: the task of the run neither translates nor generates; the text needs more positions than the run
                has learned; and errors as for `model`.
        """
        from etude.tasks import build
        from etude.trained.attention import read_attention

        for line in (text, target):
            if line is not None and not isinstance(line, str):
                raise UserError(f"{line!r} is no line: attention reads one")
        translates, tokenizer = self._translates, self.tokenizer
        both: tuple[Sequence[int], Sequence[int]]
        if translates and target is None:
            with build.autocast(self.config, self.model):
                [found] = self._translator({}).decode(texts_of(text))
            both = found.source[:-1], next((one.tokens for one in found.hypotheses), [])
        else:
            read, written = (text, target or "") if translates else ("", text)
            both = tokenizer.source.encode(read), tokenizer.target.encode(written)
        build.check_positions(self.config, max(map(len, both)) + 1, "the text")
        with build.autocast(self.config, self.model):
            return read_attention(self.model, tokenizer, *both)

    def _translator(self, asked: dict[str, Any]) -> "Translator":
        """Build what translates, with the search of the run and what is asked otherwise."""
        from etude.config.parts import make, override
        from etude.tasks import build

        search = make(build.check_decoding(self.config, override(self.config["decoding"], asked, "search")))
        return build.translator(self.config, self.model, self.tokenizer, search)

    @property
    def _translates(self) -> bool:
        """Whether the task of the run translates.

        Raises:
            UserError: it neither translates nor generates.
        """
        from etude.tasks import build

        if not (verbs := {"translate", "generate"} & {*build.task(self.config).verbs}):
            raise UserError(f"{self.path} neither translates nor writes text: its model is .model, its scores .result")
        return "translate" in verbs

    def state_dict(self) -> "dict[str, Tensor]":
        """Return the weights of the model by their names; errors as for `model`."""
        return self.model.state_dict()

    def export(self, place: str | os.PathLike[str]) -> None:
        """Write the model for other programs: the weights alone to a new file, or a new folder with all it takes.

        Args:
            place: a file `....safetensors`; or a folder for `model.safetensors`, `config.json` and
                `sentencepiece.model`, which turns text into tokens and back.

        Raises:
            UserError: it exists or cannot be written; and errors as for `model`.
        """
        from etude.trained.export import export

        export(typed_path(os.fspath(place)), self.config, self.model, self.tokenizer)

    def _require(self, verb: str) -> None:
        """Raise unless the task of the run knows a verb, such as "translate"."""
        from etude.tasks import build

        build.task(self.config, verb)
