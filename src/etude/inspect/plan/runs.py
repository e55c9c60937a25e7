"""The plan of each run: what it will be, take and cost."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from etude.config.identity import run_dir
from etude.errors import UserError
from etude.inspect.plan.device import Device
from etude.inspect.plan.memory import estimate_peak_memory
from etude.runs.divergence import divergence
from etude.runs.material import identify_training
from etude.runs.siblings import hands_over, runs_of_training
from etude.tasks.size import Config, Size, is_ours, measure_size
from etude.tasks.text_size import TextSize, batch_size, measure_text, with_vocabulary
from etude.training.schedule import learning_rate

Proportions = dict[str, float | None]
"""What a run has no units for, by the keys of `PROPORTIONS`; None where a number that it needs is not known."""

PROPORTIONS = {
    "epochs": "epochs",
    "tokens_per_parameter": "trained tokens a parameter",
    "unique_tokens_per_parameter": "unique tokens a parameter",
    "warmup_share": "warmup's share of the steps",
    "peak_over_final_rate": "highest rate over the last",
    "d_k_over_length": "d_k over the mean target length",
}
"""Each as it is called where it is shown; `paper.yaml` may give the paper's own under the same keys."""

_LOOKS = 2000  # steps at which the learning rate is looked at


@dataclass(frozen=True)
class RunPlan:
    """What one run will be, take and cost.

    Attributes:
        config: resolved.
        text: what the figures rest on.
        parameters: weights of the model, shared ones counted once.
        flops_per_step: floating-point operations of one optimizer step.
        training_flops: of all steps.
        decoding_flops: of translating the test set; None where nobody knows how long it is.
        peak_memory_bytes: of training, of one GPU's own or on a processor; where several share each batch, of one.
        target_tokens: trained on.
        hours: of training, unless that is shared, on as many of the device as the run asks for; of translating on one.
        us_dollars: the price of the devices for these hours.
        state: "finished", "diverged", "begun", "to do", "shared" where another run has trained for it or one before it
            in the plan will, or "?" where the text is missing, so that nobody can say.
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

    @property
    def proportions(self) -> Proportions:
        """The training without units: worked out when it is asked for, for a run that ends asks for its FLOPs alone."""
        return compute_proportions(
            self.config, self.parameters, self.target_tokens, text_tokens=self.text.tokens, length=self.text.target
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
    plans: list[RunPlan] = []
    trained: set[str] = set()  # what identifies the trainings of the runs before
    for config in configs:
        about_text = _key({name: config.get(name) for name in ("data", "tokenizer", "cache_dir", "budget", "task")})
        if about_text not in texts:
            texts[about_text] = measure_text(config)
        text = texts[about_text]
        about_size = _key(
            config["model"] | {"text": about_text, "trainer": config["trainer"], "precision": config["precision"]}
        )
        if about_size not in sizes:
            sentences, source, target = batch_size(config, text)
            learned = with_vocabulary(config, text)
            try:
                of_model = measure_size(learned)
            except UserError as error:
                raise UserError(f"{config['study']}/{config['arm']}: {error}") from error
            at_once = ceil(sentences / (config["trainer"]["devices"] * config["trainer"]["micro_batches"]))
            memory = estimate_peak_memory(learned, of_model, at_once, source, target, gpu=device.is_gpu)
            sizes[about_size] = of_model, memory
        state = _state(config, text)
        training = identify_training(config, text.training) if text.training else ""
        if state in ("to do", "begun") and (training in trained or _is_trained_elsewhere(config, training)):
            state = "shared"
        if state not in ("finished", "diverged"):  # those that hand theirs over have been asked
            trained.add(training)
        plans.append(_plan(config, text, *sizes[about_size], device, state))
    return plans


def _plan(config: Config, text: TextSize, of_model: Size, memory: float, device: Device, state: str) -> RunPlan:
    sentences, source, target = batch_size(config, text)
    steps = config["budget"]["max_steps"]
    tokens = text.tokens / text.batches if text.tokens and text.batches else sentences * target
    step = float(sentences * of_model.training_flops(source, target))
    decoding = None if text.sentences is None else 0.0
    if text.sentences:
        decoding = float(text.sentences * of_model.decoding_flops(source, target, config["decoding"]["beam"]))
    devices = config["trainer"]["devices"]
    to_train = 0.0 if state == "shared" else step * steps / devices
    hours = (to_train + (decoding or 0.0)) / device.flops(config["precision"]) / 3600
    return RunPlan(
        config,
        text,
        parameters=of_model.parameters,
        flops_per_step=step,
        training_flops=step * steps,
        decoding_flops=decoding,
        peak_memory_bytes=memory,
        target_tokens=round(tokens * steps),
        hours=hours,
        us_dollars=hours * devices * device.price,
        state=state,
    )


def _state(config: Config, text: TextSize) -> str:
    if text.fingerprint is None:
        return "?"
    run = run_dir(config, text.fingerprint)
    if run.finished:
        return "diverged" if divergence(run.result()) else "finished"
    return "begun" if run.checkpoint.is_file() else "to do"


def _is_trained_elsewhere(config: Config, training: str) -> bool:
    """Whether a finished run hands its weights over, of another study or with another decoding."""
    runs_dir = Path(config["runs_dir"]).expanduser()
    return any(run.finished and hands_over(run) for run in runs_of_training(runs_dir, config["seed"], training))


def _key(node: Config) -> str:
    return json.dumps(node, sort_keys=True, default=repr)


def compute_proportions(
    config: Config, parameters: int, tokens: int, *, text_tokens: float | None, length: float
) -> Proportions:
    """The training of one run without units, so that it can be held against one of any other size.

    Args:
        config: resolved.
        parameters: weights of the model.
        tokens: target tokens trained on.
        text_tokens: target tokens of the training text; None where nobody has counted them.
        length: mean target tokens of a sentence, the end token counted.
    """
    steps, rate = config["budget"]["max_steps"], learning_rate(config)
    rates = [rate(1 + step * (steps - 1) // max(1, _LOOKS - 1)) for step in range(_LOOKS)]
    peak = max(rates)
    d_k = config["model"]["attention"].get("d_k") if is_ours(config) else None  # not every attention has one
    return {
        "epochs": tokens / text_tokens if text_tokens else None,
        "tokens_per_parameter": tokens / parameters,
        "unique_tokens_per_parameter": text_tokens / parameters if text_tokens else None,
        "warmup_share": (rates.index(peak) + 1) / _LOOKS,
        "peak_over_final_rate": peak / rates[-1] if rates[-1] > 0 else None,
        "d_k_over_length": d_k / length if d_k else None,
    }
