"""The plan of each run: what it will be, take and cost."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from etude import build
from etude.config.identity import fingerprint, run_dir
from etude.divergence import divergence
from etude.errors import UserError
from etude.plan.device import Device
from etude.plan.flops import decoding_flops, training_flops
from etude.plan.memory import peak_memory
from etude.plan.proportions import Proportions, proportions
from etude.plan.size import Config, Size, size

ASSUMED = 25.0  # pieces of a sentence, the end token counted, where no prepared text says better


@dataclass(frozen=True)
class Text:
    """What a plan knows of the text before any run.

    Attributes:
        fingerprint: None where the text is not there.
        source: mean pieces of a source, the end token counted.
        target: mean pieces of a target, the end token counted.
        sentences: to translate at the end; None where they have not been counted.
        vocabulary: V, the word pieces that there are; None where they have not been learned.
        tokens: of all targets to train on, their end tokens counted; None where nobody knows.
        prepared: whether the figures were counted; else they are assumed.
    """

    fingerprint: str | None
    source: float
    target: float
    sentences: int | None
    vocabulary: int | None
    tokens: float | None
    prepared: bool


@dataclass(frozen=True)
class RunPlan:
    """What one run will be, take and cost.

    Attributes:
        config: resolved.
        parameters: weights of the model, shared ones counted once.
        step_flops: floating-point operations of one optimizer step.
        training_flops: of all steps.
        decoding_flops: of translating the test set; None where nobody knows how long it is.
        memory: bytes at the peak of training, on a processor; of one process, where several share each batch.
        tokens: target tokens trained on.
        hours: of training on as many of the device as the run asks for, and of translating on one.
        price: of the devices for these hours, in US dollars.
        state: "finished", "diverged", "begun", "to do", or "?" where the text is missing, so that nobody can say.
        text: what the figures rest on.
    """

    config: Config
    parameters: int
    step_flops: float
    training_flops: float
    decoding_flops: float | None
    memory: float
    tokens: int
    hours: float
    price: float
    state: str
    text: Text

    @property
    def proportions(self) -> Proportions:
        """The training without units: worked out when it is asked for, for a run that ends asks for its FLOPs alone."""
        return proportions(
            self.config,
            parameters=self.parameters,
            tokens=self.tokens,
            text_tokens=self.text.tokens,
            length=self.text.target,
        )

    @property
    def done(self) -> bool:
        """Whether there is a result, so that nothing will be spent."""
        return self.state in ("finished", "diverged")

    @property
    def name(self) -> str:
        """`<study>/<arm>`."""
        return f"{self.config['study']}/{self.config['arm']}"


def plan(configs: Iterable[Config], device: Device) -> list[RunPlan]:
    """The plan of each resolved config on a device. Nothing is trained, prepared or written."""
    texts: dict[str, Text] = {}
    sizes: dict[str, tuple[Size, float]] = {}
    plans = []
    for config in configs:
        about_text = _key({name: config[name] for name in ("data", "tokenizer", "cache_dir", "budget")})
        if about_text not in texts:
            texts[about_text] = _text(config)
        text = texts[about_text]
        about_size = _key(config["model"] | {"text": about_text, "trainer": config["trainer"]})
        if about_size not in sizes:
            sentences, source, target = _batch(config, text)
            learned = _with_vocabulary(config, text)
            of_model = size(learned)
            at_once = ceil(sentences / (config["trainer"]["devices"] * config["trainer"]["micro_batches"]))
            sizes[about_size] = of_model, peak_memory(learned, of_model, at_once, source, target)
        plans.append(_plan(config, text, *sizes[about_size], device))
    return plans


def flops_to_train(config: Config) -> float:
    """Floating-point operations of all training steps of a run, by formula."""
    [planned] = plan([config], Device("any", full=1.0, half=1.0, price=0.0))
    return planned.training_flops


def _plan(config: Config, text: Text, of_model: Size, memory: float, device: Device) -> RunPlan:
    sentences, source, target = _batch(config, text)
    steps, beam = config["budget"]["max_steps"], config["decoding"]["beam"]
    step = float(sentences * training_flops(of_model, source, target))
    decoding = None
    if text.sentences is not None:
        decoding = float(text.sentences * decoding_flops(of_model, source, target, beam))
    devices = config["trainer"]["devices"]
    hours = (step * steps / devices + (decoding or 0.0)) / device.flops(config["precision"]) / 3600
    return RunPlan(
        config,
        of_model.parameters,
        step,
        step * steps,
        decoding,
        memory,
        sentences * target * steps,
        hours,
        hours * devices * device.price,
        _state(config, text),
        text,
    )


def _with_vocabulary(config: Config, text: Text) -> Config:
    """The config with as many word pieces as the text turned out to have."""
    if text.vocabulary is None:
        return config
    return config | {"tokenizer": config["tokenizer"] | {"vocab_size": text.vocabulary}}


def _batch(config: Config, text: Text) -> tuple[int, int, int]:
    """Sentences of a batch, pieces of each source, pieces of each target: as many as the budget of tokens holds."""
    budget = config["budget"]
    sentences = min(budget["source_tokens"] / text.source, budget["target_tokens"] / text.target)
    return max(1, round(sentences)), round(text.source), round(text.target)


def _text(config: Config) -> Text:
    try:
        store, known = build.prepared_store(config), fingerprint(config)
    except UserError:
        return Text(None, ASSUMED, ASSUMED, None, None, None, prepared=False)
    if store is None:
        pairs, sentences = (config["data"].get(f"{split}_pairs") for split in ("train", "test"))
        tokens = pairs and ASSUMED * pairs
        return Text(known, ASSUMED, ASSUMED, _translated(sentences, config), None, tokens, prepared=False)
    train, pairs = store.meta["splits"]["train"], store.meta["splits"]["train"]["pairs"]
    source, target = (train[f"{side}_tokens"] / pairs for side in ("source", "target"))
    sentences = _translated(store.meta["splits"]["test"]["pairs"], config)
    return Text(known, source, target, sentences, store.vocab_size, target * pairs, prepared=True)


def _translated(sentences: int | None, config: Config) -> int | None:
    """How many sentences of a test set BLEU is computed on."""
    first = config["budget"]["bleu_sentences"]
    return sentences if sentences is None or first is None else min(sentences, first)


def _state(config: Config, text: Text) -> str:
    if text.fingerprint is None:
        return "?"
    run = run_dir(config, text.fingerprint)
    if run.finished:
        return "diverged" if divergence(run.result()) else "finished"
    return "begun" if run.checkpoint.is_file() else "to do"


def _key(node: Config) -> str:
    return json.dumps(node, sort_keys=True, default=repr)
