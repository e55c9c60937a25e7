"""The plan of each run: what it will be, take and cost."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from etude.config.identity import run_dir
from etude.inspect.plan.device import Device
from etude.inspect.plan.memory import estimate_peak_memory
from etude.inspect.plan.proportions import Proportions, compute_proportions
from etude.runs.divergence import divergence
from etude.tasks.flops import decoding_flops, training_flops
from etude.tasks.size import Config, Size, measure_size
from etude.tasks.text_size import TextSize, batch_size, measure_text, with_vocabulary


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
    text: TextSize

    @property
    def proportions(self) -> Proportions:
        """The training without units: worked out when it is asked for, for a run that ends asks for its FLOPs alone."""
        return compute_proportions(
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


def plan_runs(configs: Iterable[Config], device: Device) -> list[RunPlan]:
    """The plan of each resolved config on a device. Nothing is trained, prepared or written."""
    texts: dict[str, TextSize] = {}
    sizes: dict[str, tuple[Size, float]] = {}
    plans = []
    for config in configs:
        about_text = _key({name: config[name] for name in ("data", "tokenizer", "cache_dir", "budget")})
        if about_text not in texts:
            texts[about_text] = measure_text(config)
        text = texts[about_text]
        about_size = _key(config["model"] | {"text": about_text, "trainer": config["trainer"]})
        if about_size not in sizes:
            sentences, source, target = batch_size(config, text)
            learned = with_vocabulary(config, text)
            of_model = measure_size(learned)
            at_once = ceil(sentences / (config["trainer"]["devices"] * config["trainer"]["micro_batches"]))
            sizes[about_size] = of_model, estimate_peak_memory(learned, of_model, at_once, source, target)
        plans.append(_plan(config, text, *sizes[about_size], device))
    return plans


def _plan(config: Config, text: TextSize, of_model: Size, memory: float, device: Device) -> RunPlan:
    sentences, source, target = batch_size(config, text)
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


def _state(config: Config, text: TextSize) -> str:
    if text.fingerprint is None:
        return "?"
    run = run_dir(config, text.fingerprint)
    if run.finished:
        return "diverged" if divergence(run.result()) else "finished"
    return "begun" if run.checkpoint.is_file() else "to do"


def _key(node: Config) -> str:
    return json.dumps(node, sort_keys=True, default=repr)
