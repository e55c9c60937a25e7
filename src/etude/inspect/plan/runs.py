"""The plan of each run: its size, compute, memory, time and price."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from etude.config.freeze import run_dir
from etude.errors import UserError
from etude.inspect.plan.device import Device
from etude.inspect.plan.memory import estimate_peak_memory
from etude.store.divergence import divergence
from etude.store.identity import identify_training
from etude.store.provenance import Code, code_of_run
from etude.store.training_dir import FOLDER, TrainingDir
from etude.tasks.build import task
from etude.tasks.size import Config, Size, is_ours, measure_size
from etude.tasks.text_size import TextSize, batch_size, measure_text, with_vocabulary
from etude.training.schedule import learning_rate

Proportions = dict[str, float | None]
"""Dimensionless ratios of a run, by the keys of `PROPORTIONS`; None if a number that one needs is not known."""

PROPORTIONS = {
    "epochs": "epochs",
    "tokens_per_parameter": "trained tokens a parameter",
    "unique_tokens_per_parameter": "unique tokens a parameter",
    "warmup_share": "warmup's share of the steps",
    "peak_over_final_rate": "highest rate over the last",
    "d_k_over_length": "d_k over the mean target length",
}
"""Key -> displayed name; `paper.yaml` may give the paper's values under the same keys."""

_RATE_SAMPLES = 2000  # steps at which the learning rate is evaluated


@dataclass(frozen=True)
class RunPlan:
    """The estimated size and cost of one run.

    Attributes:
        config: the resolved config.
        text: the sizes of the text that the estimates are based on.
        parameters: weights of the model, shared ones counted once.
        flops_per_step: floating-point operations of one optimizer step.
        training_flops: floating-point operations of all steps.
        decoding_flops: floating-point operations of translating the test set, and validation lines where
            `budget.val_metrics` asks for it; None if its size is not known.
        peak_memory_bytes: of training, on one GPU or on a CPU; if several devices share each batch, on one of them.
        target_tokens: target tokens trained on.
        hours: of training on `trainer.devices` devices, or none if it is shared, and of translating on one device.
        training: identifies the training, with its seed; empty if the text is not available.
        training_hours: of training, also if it is shared.
        us_dollars: the price of `trainer.devices` devices for these hours.
        state: "finished"; "diverged"; "begun"; "to do"; "shared" if another run has done the same training, or an
            earlier one in the plan will; "?" if the text is not available, so that the run cannot be identified.
    """

    config: Config
    text: TextSize
    parameters: int
    flops_per_step: float
    training_flops: float
    decoding_flops: float | None
    peak_memory_bytes: float
    target_tokens: int
    hours: float
    us_dollars: float
    state: str
    training: str = ""
    training_hours: float = 0.0

    @property
    def proportions(self) -> Proportions:
        """The dimensionless ratios of the training, computed only when needed."""
        return compute_proportions(
            self.config, self.parameters, self.target_tokens, text_tokens=self.text.tokens, length=self.text.target
        )

    @property
    def done(self) -> bool:
        """Whether the run has a result, so that it costs nothing more."""
        return self.state in ("finished", "diverged")

    @property
    def name(self) -> str:
        """`<study>/<arm>`."""
        return f"{self.config['study']}/{self.config['arm']}"


def plan_runs(configs: Iterable[Config], device: Device) -> list[RunPlan]:
    """Plan each resolved config for a device. Nothing is trained, prepared or written.

    Raises:
        UserError: a model cannot be built.
    """
    texts: dict[str, TextSize] = {}
    sizes: dict[str, tuple[Size, float]] = {}
    plans: list[RunPlan] = []
    trained: set[str] = set()  # the trainings of earlier runs in the plan
    for config in configs:
        text_key = _key({name: config.get(name) for name in ("data", "tokenizer", "cache_dir", "budget", "task")})
        if text_key not in texts:
            texts[text_key] = measure_text(config)
        text = texts[text_key]
        size_key = _key(
            config["model"] | {"text": text_key, "trainer": config["trainer"], "precision": config["precision"]}
        )
        if size_key not in sizes:
            sentences, source, target = batch_size(config, text)
            learned = with_vocabulary(config, text)
            try:
                of_model = measure_size(learned)
            except UserError as error:
                raise UserError(f"{config['study']}/{config['arm']}: {error}") from error
            at_once = ceil(sentences / (_devices(config) * config["trainer"]["micro_batches"]))
            memory = estimate_peak_memory(learned, of_model, at_once, source, target, gpu=device.is_gpu)
            sizes[size_key] = of_model, memory
        training = identify_training(config, text.training) if text.training else ""
        state = _state(config, text, training)
        if state in ("to do", "begun") and training in trained:
            state = "shared"
        if state not in ("finished", "diverged"):  # which need not have the weights any more
            trained.add(training)
        plans.append(_plan(config, text, *sizes[size_key], device, state, training))
    return plans


def _plan(
    config: Config, text: TextSize, of_model: Size, memory: float, device: Device, state: str, training: str
) -> RunPlan:
    sentences, source, target = batch_size(config, text)
    steps = config["budget"]["max_steps"]
    tokens = text.tokens / text.batches if text.tokens and text.batches else sentences * task(config).counted(target)
    step = float(sentences * of_model.training_flops(source, target))
    decoding = validating = None if None in (text.sentences, text.validated) else 0.0
    if text.sentences and text.validated is not None:
        each = float(of_model.decoding_flops(source, target, config["decoding"].get("beam", 1)))
        decoding = each * (text.sentences + text.validated)  # the second with the final weights
        validating = each * text.validated * (steps // config["budget"]["val_every"])
    devices = _devices(config)
    an_hour = 3600 * device.flops(config["precision"])
    training_hours = (step * steps / devices + (validating or 0.0)) / an_hour
    hours = (0.0 if state == "shared" else training_hours) + (decoding or 0.0) / an_hour
    return RunPlan(
        config,
        text,
        parameters=of_model.parameters,
        flops_per_step=step,
        training_flops=step * steps,
        decoding_flops=None if decoding is None else decoding + (validating or 0.0),
        peak_memory_bytes=memory,
        target_tokens=round(tokens * steps),
        hours=hours,
        training=training,
        training_hours=training_hours,
        us_dollars=hours * devices * device.price,
        state=state,
    )


def _devices(config: Config) -> int:
    """Return the number of devices that train a run, on all its machines."""
    return int(config["trainer"]["devices"] * (config["trainer"].get("num_nodes") or 1))


def _state(config: Config, text: TextSize, training: str) -> str:
    if text.fingerprint is None:
        return "?"
    run = run_dir(config, text.fingerprint)
    if config["stale"] == "rerun" and code_of_run(run) not in (None, Code.SAME):
        return "to do"
    if run.finished:
        return "diverged" if divergence(run.result()) else "finished"
    shared = TrainingDir(run.runs_dir / FOLDER / training)
    return "shared" if shared.trained else "begun" if shared.checkpoint.is_file() else "to do"


def _key(node: Config) -> str:
    return json.dumps(node, sort_keys=True, default=repr)


def compute_proportions(
    config: Config, parameters: int, tokens: int, *, text_tokens: float | None, length: float
) -> Proportions:
    """Compute dimensionless ratios of a training, which can be compared with those of a run of any other size.

    Args:
        config: the resolved config.
        parameters: weights of the model.
        tokens: target tokens trained on.
        text_tokens: target tokens of the training text; None if they have not been counted.
        length: mean target tokens of a sentence, including the end token.
    """
    steps, rate = config["budget"]["max_steps"], learning_rate(config)
    sampled = [1 + sample * (steps - 1) // max(1, _RATE_SAMPLES - 1) for sample in range(_RATE_SAMPLES)]
    rates = [rate(step) for step in sampled]
    peak = max(rates)
    d_k = config["model"]["attention"].get("d_k") if is_ours(config) else None  # not every attention has one
    return {
        "epochs": tokens / text_tokens if text_tokens else None,
        "tokens_per_parameter": tokens / parameters,
        "unique_tokens_per_parameter": text_tokens / parameters if text_tokens else None,
        "warmup_share": sampled[rates.index(peak)] / steps,
        "peak_over_final_rate": peak / rates[-1] if rates[-1] > 0 else None,
        "d_k_over_length": d_k / length if d_k else None,
    }
