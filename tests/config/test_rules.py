"""Ranges, names, and parts that must fit each other."""

import re

import numpy as np
import pytest
import torch

from etude.config.compose import compose
from etude.config.resolve import resolve, resolve_plain, resolve_valid, without_hydra
from etude.config.rules import check_rules
from etude.data.batch import make_batch
from etude.errors import UserError
from etude.model.position.absolute import Learned
from etude.tasks import build

KEEPING = [
    "+callbacks.mine._target_=lightning.pytorch.callbacks.ModelCheckpoint",
    "+callbacks.mine.monitor=val_loss",
]


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["seed=-1"], "seed must be at least 0, not -1"),
        (["+trainer.limit_val_batches=0"], "trainer.limit_val_batches would validate the shortest sentences alone"),
        *(
            ([*KEEPING, f"{plus}callbacks.mine.{key}={value}"], f"callbacks.mine.{key}: tested is the checkpoint of")
            for plus, key, value in (
                ("+", "save_top_k", 0),
                ("+", "every_n_train_steps", 100),
                ("+", "save_on_train_epoch_end", "true"),
                ("+", "save_last", "true"),
                ("+", "dirpath", "elsewhere"),
                ("++", "filename", "last"),
            )
        ),
        (
            ["callbacks=best_checkpoint", "callbacks.best_checkpoint.monitor=null"],
            "callbacks.best_checkpoint.monitor: tested is the checkpoint of",
        ),
        (
            [*KEEPING, "callbacks=best_checkpoint"],
            "callbacks.best_checkpoint and callbacks.mine both keep checkpoints by val_loss",
        ),
        ([*KEEPING, "budget.val_every=500", "budget.max_steps=10"], "callbacks.mine would see no validation"),
        (
            [*KEEPING, "+callbacks.two._target_=${callbacks.mine._target_}", "+callbacks.two.monitor=val_perplexity"],
            "callbacks.mine and callbacks.two each keep a best checkpoint, and one can be tested",
        ),
        (
            [*KEEPING, "averaging.checkpoints=2"],
            "averaging.checkpoints and callbacks.mine both decide .* say weights=best or weights=average",
        ),
        (["budget.val_metrics=[blue]"], "budget.val_metrics: blue is no metric of this run, which has bleu, paper"),
        (
            ["task=language_modelling", "model/encoder=none", "~decoding", "metrics=none", "budget.val_metrics=[bleu]"],
            "LanguageModelling writes no text that could be compared: leave it out",
        ),
        (
            ["callbacks=early_stopping", "callbacks.early_stopping.monitor=val_bleu"],
            r"monitor=val_bleu: no such metric is logged; say budget.val_metrics=\[bleu\]",
        ),
        (
            ["callbacks=early_stopping", "callbacks.early_stopping.monitor=val_bleu", "budget.val_metrics=[bleu]"],
            "val_bleu is better the higher: say callbacks.early_stopping.mode=max, too",
        ),
        (["weights=best"], "weights=best: no callback keeps the best checkpoint, as callbacks=best_checkpoint does"),
        (["weights=average"], "weights=average: none are kept to be averaged, as averaging.checkpoints=5 does"),
        (["~decoding"], "Translation is scored by what a search finds, and there is none: say decoding=greedy"),
        (
            ["+metrics.tokens._target_=sacrebleu.corpus_chrf"],
            "metrics.tokens: a result has another number of this name",
        ),
        (["model.n_layers=0"], "model.n_layers must be at least 1, not 0"),
        (
            ["model/attention=lightweight_convolution", "model.attention.convolution.kernels=-1"],
            "model.attention.convolution.kernels must be at least 1, not -1",
        ),
        (["budget.val_every=0"], "budget.val_every must be at least 1, not 0"),
        (["model.dropout=1.0"], r"model.dropout must lie in \[0, 1\), not 1.0"),
        (["data=treebank", "data.silver=-1"], "data.silver must be at least 0, not -1"),
        (["data=treebank", "data.silver_errors=5"], r"data.silver_errors must lie in \[0, 1\), not 5"),
        (["loss.smoothing=-0.1"], r"loss.smoothing must lie in \[0, 1\), not -0.1"),
        (["model.attention.window=-1", "model/attention=local"], "model.attention.window must be at least 0, not -1"),
        (["budget.lr_factor=nan"], "budget.lr_factor must be above 0 and finite, not nan"),
        (["budget.lr_factor=-1"], "budget.lr_factor must be above 0 and finite, not -1"),
        (["optimizer.eps=0"], "optimizer.eps must be above 0 and finite, not 0"),
        (["scale.head_count=-1"], "scale.head_count must be above 0 and finite, not -1"),
        (["scale.depth=-1"], "scale.depth must be above 0 and finite, not -1"),
        (["optimizer.beta1=2"], r"optimizer.beta1 must lie in \[0, 1\), not 2"),
        (["model/position=rope", "model.position.base=nan"], "model.position.base must be at least 1, not nan"),
        (["data.vocab_size=3"], "tokenizer.vocab_size must be at least 5, not 3"),
        (["seed=4294967296"], "seed must be at most 4294967295, not 4294967296"),
        (["budget.steps=0"], "budget.steps must be above 0 and finite, not 0"),
        (["model/init=normal", "model.init.std=0"], "model.init.std must be above 0 and finite, not 0"),
        (
            ["model/decoder=recurrent", "model.decoder.alignment=null"],
            "model.decoder.alignment is None, no alignment: say model/decoder/alignment=none",
        ),
        (
            ["+callbacks.g._target_=lightning.pytorch.callbacks.GradientAccumulationScheduler"],
            r"callbacks\.g would change after how many batches the weights do.*\(trainer\.micro_batches accumulates",
        ),
        (
            ["callbacks=[ema,best_checkpoint]", "+callbacks.best_checkpoint.save_weights_only=true"],
            r"save_weights_only=true would keep the weights without their average",
        ),
        *(
            (
                ["averaging.checkpoints=2", f"+callbacks.mine._target_=lightning.pytorch.callbacks.{name}"],
                "averaging.checkpoints and callbacks.mine both decide with which weights the run ends: say averaging",
            )
            for name in ("EarlyStopping", "Timer")
        ),
        (["decoding.beam=0"], "decoding.beam must be at least 1, not 0"),
        (["decoding.alpha=-0.1"], "decoding.alpha must be at least 0, not -0.1"),
        (["decoding.max_len_offset=-1"], "decoding.max_len_offset must be at least 0, not -1"),
        (["decoding.alpha=inf"], "decoding.alpha must be finite, not inf"),
        (["decoding.beam=1000000"], "decoding.beam must be at most 10,000, not 1000000"),
        (["runs_dir="], "runs_dir is empty"),
        (["cache_dir="], "cache_dir is empty: name a folder, such as cache_dir=cache"),
        (
            ["objective=nothing"],
            r"objective=nothing is not a number in the result of a run; choose one of .*test.*valid\.perplexity",
        ),
        (["tokenizer.character_coverage=0.5"], r"tokenizer\.character_coverage must lie in \[0\.98, 1\]"),
        (
            ["model=encoder_only", "task=masked_language_modelling", "model/encoder=funnel"],
            "model=encoder_only answers at each token: say model/encoder=transformer",
        ),
        (
            ["task=masked_language_modelling", "model/encoder=convolution", "model/position=t5"],
            "acts on the scores of self-attention, which this model does not have",
        ),
        (
            ["model/encoder=universal", "model/position=rope_in_some_layers"],
            "model.position.pattern tells layers apart, and the encoder has one, .* say model/encoder=transformer",
        ),
        (
            ["model/decoder=shared", "model/attention=modular", "model/attention/span=pattern"],
            "model.attention.span.pattern tells layers apart, and the decoder has one",
        ),
        (
            ["model/encoder=shared", "model/feedforward=switch"],
            "model.feedforward.every tells layers apart, and the encoder has one, .* say model.feedforward.every=1",
        ),
        (
            ["model/decoder=evolved", "model/init=fixup", "model/residual=fixup", "model/norm=none"],
            "model/init=fixup starts with branches that add nothing, and does not know those of model.decoder",
        ),
        (
            ["model/feedforward=switch", "trainer.compile=reduce-overhead"],
            "trainer.compile=reduce-overhead repeats sentences .* say trainer.compile=true",
        ),
        (
            ["model/encoder=funnel", "model/attention=modular", "model/attention/values=residual"],
            "more positions than the last of model/encoder=funnel: say model/attention/values=own",
        ),
        (["model.decoder=null"], r"model\.decoder=null leaves no decoder: model=encoder_only"),
        (
            ["data=files", "data.tsv=a.tsv", "data.valid=b.tsv"],
            r"data\.valid must hold names of files, not 'b\.tsv': say data\.valid\.tsv=",
        ),
        (["data=files", "data.tsv=a.tsv", "data.test.tsv=2016"], r"data\.test must hold names of files"),
        (["data=files", "data.tsv=a.tsv", "data.test=null"], r"data\.test must hold names of files, not None"),
        (
            ["+callbacks.finder._target_=lightning.pytorch.callbacks.LearningRateFinder"],
            "callbacks.finder would set the learning rate, which the schedule gives",
        ),
        (["logger.wandb.project=team/etude"], "logger.wandb.project=team/etude: no project of W&B has '/' in its name"),
        (["averaging.checkpoints=-1"], "averaging.checkpoints must be at least 0, not -1"),
        (
            ["+optimizer.lr=0.001"],
            "optimizer.lr is 0.001 in .*, which would multiply the learning rate .*optimizer.lr=1",
        ),
        (["optimizer._target_=torch.optim.AdamW"], "optimizer.lr is 0.001 in torch.optim.AdamW, which would multiply"),
        (["arm=a/b"], "arm=a/b cannot name a folder"),
        *(
            (
                ["trainer.compile=reduce-overhead", f"{plus}trainer.{key}=2"],
                rf"trainer\.compile=reduce-overhead records .*: say trainer\.{key}=1, or trainer\.compile=true",
            )
            for plus, key in (("", "devices"), ("", "micro_batches"), ("+", "num_nodes"))
        ),
        (["study=.."], r"study=\.\. cannot name a folder"),
        (
            ["model/feedforward=product_key_memory", "model.feedforward.stacks=[encoder]", "model/encoder=none"],
            r"model.feedforward.stacks names no stack of this model: say model.feedforward.stacks=\[decoder\]",
        ),
        (
            ["model/position=learned", "budget.max_tokens=600"],
            "model.position.max_length=512 is shorter than a text may become.*say model.position.max_length=651",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name_with_the_way_out(overrides, sentence):
    config = compose(overrides)
    with pytest.raises(UserError, match=sentence):
        check_rules(resolve_plain(without_hydra(config), config.hydra.runtime.choices))


@pytest.mark.parametrize(
    "overrides",
    [[], ["seed=0"], ["model/position=learned"], ["scale=full"], ["budget.length_noise=0"], ["+optimizer.lr=1.0"]],
)
def test_sound_configs_pass(overrides):
    check_rules(compose(overrides))


IMPOSSIBLE = {
    "rope turns pairs of dimensions": ["model/position=rope", "model.d_k=7"],
    "pairs of sine and cosine": ["model.d_model=65", "model.d_k=8", "model.d_v=8"],
    "pairs of sine and cosine, in t2t's order": [
        "model/position=sinusoidal_t2t",
        "model.d_model=65",
        "model.d_k=8",
        "model.d_v=8",
    ],
    "more key heads than heads": ["model/attention=grouped_query", "model.heads=4", "model.attention.kv_heads=8"],
    "key heads that do not divide the heads": ["model/attention=grouped_query", "model.attention.kv_heads=3"],
    "a norm that nothing uses": ["model/residual=rezero"],
    "a norm that fixup does not use": ["model/residual=fixup"],
    "a loss of the size of log Z where that is always 0": ["loss=z_loss", "model/tying=adaptive_softmax"],
    "fewer rows than pieces": ["model.vocabulary=100"],
    "an average that reaches back before the first step": [
        "averaging.checkpoints=11",
        "averaging.every=1",
        "budget.max_steps=10",
    ],
    "buckets that cannot be halved twice": ["model/position=t5", "model.position.buckets=30"],
    "an alignment with no encoder": ["model/encoder=none", "model/decoder=recurrent"],
    "a neighbourhood without a middle": ["model/encoder=convolution", "model.encoder.kernel=4"],
    "half of an odd width": [
        "model/encoder=recurrent",
        "model/position=none",
        "model.d_model=65",
        "model.d_k=8",
        "model.d_v=8",
    ],
    "positions that add to scores where there is no softmax": ["model/attention=linear", "model/position=t5"],
    "positions on products that synthetic scores do without": [
        "model/attention=synthesizer",
        "model/attention/mix=alone",
        "model/position=rope",
    ],
    "scores that end before the data": ["model/attention=synthesizer", "model.attention.scores.max_length=100"],
    "positions that end before the data": ["model/position=learned", "model.position.max_length=100"],
    "positions that end before the lines of a language model": [
        "task=language_modelling",
        "model/position=learned",
        "model.position.max_length=100",
    ],
    "positions for scores that nothing has": [
        "model/encoder=convolution",
        "model/decoder=convolution",
        "model/position=rope",
    ],
    "positions on scores where a convolution has none": [
        "model/attention=lightweight_convolution",
        "model/position=t5",
    ],
    "a dropout of weights that linear attention does not have": [
        "model/attention=linear",
        "model.attention_dropout=0.1",
    ],
}


@pytest.mark.parametrize("overrides", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_combination_is_refused_and_the_way_out_is_one(overrides):
    def refuse(words):
        """Before the first step: by a rule, or by the constructor of a part."""
        config = compose(words)
        check_rules(config)
        build.shapes(resolve(config))

    with pytest.raises(UserError) as refusal:
        refuse(overrides)
    (way_out,) = re.findall(r"say ([\w/.]+=\w+)", str(refusal.value))
    refuse([*overrides, way_out])


@pytest.mark.parametrize(
    ("part", "own", "overrides"),
    [
        ("encoder", {"bidirectional": True, "width": 8}, []),
        ("encoder", {"bidirectional": True, "d_model": 5}, []),  # its directions need not be halves
        ("attention", {"kv_heads": 2, "n_heads": 3}, []),
        ("attention", {"head_size": 16}, ["model/position=rope", "model.position.d_k=16"]),
    ],
)
def test_a_part_of_ones_own_may_have_other_parameters_than_etudes(part, own, overrides):
    config = resolve_valid(compose(overrides))
    config["model"][part] = {"_target_": "mine.Part", "_partial_": True, **own}
    check_rules(config)


@pytest.mark.parametrize("tokens", [95, 96, 100, 103])
@pytest.mark.parametrize(
    "overrides",
    [
        ["model/encoder=none", "task=language_modelling"],
        ["decoding.max_len_offset=0"],
        ["model=encoder_only", "task=masked_language_modelling"],
    ],
)
def test_a_table_that_just_suffices_holds_the_longest_batch_as_a_gpu_gets_it(tokens, overrides):
    learned = [*overrides, "model/position=learned", f"budget.max_tokens={tokens}"]
    with pytest.raises(UserError) as refusal:
        check_rules(compose([*learned, "model.position.max_length=50"]))
    (way_out,) = re.findall(r"say model.position.max_length=(\d+)", str(refusal.value))
    full = np.full((1, tokens + 1), 4)  # the start, or the end
    width = make_batch(full, full, np.arange(1)).pad_columns(8).source.size(1)
    embedded = torch.zeros(1, width, 2)
    assert Learned(False, d_model=2, max_length=int(way_out)).add_to_embedding(embedded, 0).shape == embedded.shape
    with pytest.raises(UserError):
        check_rules(compose([*learned, f"model.position.max_length={width - 1}"]))


def test_a_class_of_ones_own_is_not_held_to_the_rules_of_its_namesake() -> None:
    config = resolve(compose(["model/attention=linear", "model.attention_dropout=0.1"]))
    with pytest.raises(UserError, match="model/attention=linear has no dropout of its weights"):
        check_rules(config)
    config["model"]["attention"]["_target_"] = "mine.LinearAttention"
    check_rules(config)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("tags=pilot", r"logger\.wandb\.tags must be a list, such as \[pilot\], not 'pilot'"),
        ("tags=[1]", r"logger\.wandb\.tags: 1 is not a tag of W&B, which is a text of 1 to 64 characters"),
        ("tags=['']", r"logger\.wandb\.tags: '' is not a tag"),
        (f"tags=[{'x' * 65}]", r"logger\.wandb\.tags: 'x+' is not a tag"),
        ("project=", r"logger\.wandb\.project=: the name of a project has 1 to 128 characters"),
        (f"project={'x' * 129}", r"the name of a project has 1 to 128 characters"),
        ("project=team/etude", r"no project of W&B has '/' in its name; .*logger\.wandb\.entity=TEAM"),
        ("entity=team/etude", r"logger\.wandb\.entity=team/etude: no entity of W&B has '/' in its name"),
        ("artifacts=checkpoint", r"logger\.wandb\.artifacts must be a list, such as \[checkpoint\]"),
        ("artifacts=[chekpoint]", r"logger\.wandb\.artifacts: no 'chekpoint'; did you mean checkpoint"),
    ],
)
def test_what_wandb_would_refuse_is_one_sentence(override: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_rules(compose([f"logger.wandb.{override}"]))


@pytest.mark.parametrize(
    "override", [f"tags=[pilot,{'x' * 64}]", f"project={'x' * 128}", "entity=team", "artifacts=[checkpoint]"]
)
def test_what_wandb_takes_is_taken(override: str) -> None:
    check_rules(compose([f"logger.wandb.{override}"]))
