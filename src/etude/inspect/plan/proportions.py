"""What a run has no units for, and can so be held against a training of any other size."""

from dataclasses import dataclass

from etude.tasks.size import Config
from etude.training.build import learning_rate

NAMES = {
    "epochs": "epochs",
    "tokens_per_parameter": "trained tokens a parameter",
    "unique_tokens_per_parameter": "unique tokens a parameter",
    "warmup_share": "warmup's share of the steps",
    "peak_over_final_rate": "highest rate over the last",
    "d_k_over_length": "d_k over the mean target length",
}
"""Each number as it is called where it is shown; `paper.yaml` may give the paper's own under the same keys."""


_LOOKS = 2000  # steps at which the learning rate is looked at


@dataclass(frozen=True)
class Proportions:
    """The training of one run without units.

    Attributes:
        epochs: how often the training text is seen; None, as the other one that needs its size, where it is not known.
        tokens_per_parameter: target tokens trained on, over weights.
        unique_tokens_per_parameter: target tokens of the training text, over weights.
        warmup_share: the step of the highest learning rate, over all steps.
        peak_over_final_rate: the highest learning rate over that of the last step; None where that is zero.
        d_k_over_length: K over the mean number of target tokens, the end token counted; None where attention has no K.
    """

    epochs: float | None
    tokens_per_parameter: float
    unique_tokens_per_parameter: float | None
    warmup_share: float
    peak_over_final_rate: float | None
    d_k_over_length: float | None

    def items(self) -> list[tuple[str, float | None]]:
        """Each with its key in `NAMES`."""
        return [(name, getattr(self, name)) for name in NAMES]


def compute_proportions(
    config: Config, *, parameters: int, tokens: int, text_tokens: float | None, length: float
) -> Proportions:
    """Of one run.

    Args:
        config: resolved.
        parameters: weights of the model.
        tokens: target tokens trained on.
        text_tokens: target tokens of the training text; None where nobody has counted them.
        length: mean target tokens of a sentence.
    """
    steps = config["budget"]["max_steps"]
    rate = learning_rate(config)
    rates = [rate(1 + step * (steps - 1) // max(1, _LOOKS - 1)) for step in range(_LOOKS)]
    peak = max(rates)
    return Proportions(
        epochs=tokens / text_tokens if text_tokens else None,
        tokens_per_parameter=tokens / parameters,
        unique_tokens_per_parameter=text_tokens / parameters if text_tokens else None,
        warmup_share=(rates.index(peak) + 1) / _LOOKS,
        peak_over_final_rate=peak / rates[-1] if rates[-1] > 0 else None,
        d_k_over_length=d_k / length if (d_k := config["model"]["attention"].get("d_k")) else None,
    )
