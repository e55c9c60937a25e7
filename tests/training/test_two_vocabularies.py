"""Source and target may have a vocabulary each, from the text to the translation."""

import numpy as np
import pytest
import torch
from tests.letters import TINY

from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.config.resolve import resolve_valid
from etude.data.batch import make_batch
from etude.data.vocabularies import open_tokenizer
from etude.errors import UserError
from etude.tasks import build
from etude.tasks.perplexity import row_nats
from etude.trained.align import align
from etude.trained.load import load_trained
from etude.trained.run import TrainedRun
from etude.training.initial import take_weights
from etude.training.run import train

from .conftest import Freeze

TWO = ["tokenizer.shared=false", "model/tying=decoder"]


def test_a_run_of_two_vocabularies_trains_translates_and_is_exported(runs: Freeze) -> None:
    short = ["budget.max_steps=2", "budget.warmup_steps=1"]
    run = runs("two", *short, *TWO)
    train(run)
    config, model, tokenizer = load_trained(run)
    store = build.token_store(config)
    split, (sources, references) = store.split("test"), store.text("test")
    for side, tokens, lines in (("source", split.sources, sources), ("target", split.targets, references)):
        assert tokens[0].tolist()[:-1] == getattr(tokenizer, side).encode(lines[0])
    assert model.embedding.source_table.weight.shape == model.embedding.target_table.weight.shape == (30, 8)
    TrainedRun(run).export(run.path / "exported")
    for side in ("source", "target"):
        written = open_tokenizer(run.path / "exported" / f"sentencepiece.{side}.model")
        assert written.encode(sources[0]) == getattr(tokenizer, side).encode(sources[0])
    rows = np.arange(4)
    batch = make_batch(split.sources.pad_rows(rows), split.targets.pad_rows(rows), rows)
    trained, pairs = TrainedRun(run), (sources[:4], references[:4])
    assert trained.score(*pairs) == pytest.approx((-row_nats(model, batch)).tolist(), abs=1e-4)
    read = trained.attention(sources[0], references[0])
    assert read.source[:-1] == tokenizer.source.subwords(split.sources[0][:-1])
    assert read.target[1:] == tokenizer.target.subwords(split.targets[0][:-1])
    tokens = [(split.sources[row].tolist(), split.targets[row].tolist()[:-1]) for row in rows]
    for line, links in zip(sources, align(model, tokenizer, tokens, batch_tokens=200), strict=False):
        assert {word for word, _ in links} <= {*range(len(line.split()))}
    file = run.path / "exported" / "model.safetensors"
    child = runs(
        "adapted", *short, *TWO, "tokenizer.vocab_size=28", f"init_from={{run:'{file}',vocabulary:adapt}}"
    ).config()
    begun, own = build.model(child, 28), build.token_store(child).tokenizer
    take_weights(begun, child["init_from"], own, None)
    for side in ("source", "target"):  # a subword that both know has the row that it had
        theirs = getattr(tokenizer, side).subwords(range(30))
        rows = [
            (row, theirs.index(known))
            for row, known in enumerate(getattr(own, side).subwords(range(28)))
            if known in theirs
        ]
        assert len(rows) > 10
        table, before = (getattr(one.embedding, f"{side}_table").weight for one in (begun, model))
        assert all(torch.equal(table[row], before[its]) for row, its in rows)
    one = runs("two", *short, "model/tying=decoder")
    assert one.training != run.training
    assert "shared" not in one.config()["tokenizer"]


@pytest.mark.parametrize(
    ("tying", "fits"),
    [("all", False), ("all_t2t", False), ("soft_cap", False), ("decoder", True), ("none", True), ("none_normed", True)],
)
def test_what_cannot_be_tied_is_said(tying: str, fits: bool) -> None:
    config = resolve_valid(compose([*TINY, "tokenizer.shared=false", f"model/tying={tying}"]))
    if fits:
        build.model(config, 40)
    else:
        with pytest.raises(UserError, match="cannot be tied to one matrix: say model/tying=decoder"):
            build.model(config, 40)


def test_other_tasks_have_one_vocabulary() -> None:
    words = ["task=language_modelling", "model/encoder=none", "~decoding", "metrics=none", "tokenizer.shared=false"]
    with pytest.raises(UserError, match=r"tokenizer\.shared=false: two vocabularies are for task=translation alone"):
        freeze(compose([*TINY, *words]))
