"""The metrics of a study: which scores of its runs are shown and compared, and how."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean

_NAME = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Metric:
    """One metric, as declared under `metrics` in a study.yaml."""

    name: str  # its key in paper.yaml
    key: str  # the dotted key of its score in a result; steps/seconds: one number of it divided by another
    label: str  # the header of its column
    better: str = "higher"  # or "lower"
    scale: str = "linear"  # "log": logarithms are compared and tested (perplexity in nats)
    digits: int = 1  # decimal places
    over: str = "text"  # "text": comparable on the same references; "tokens": only with the same subwords
    sentences: str = ""  # "bleu": tests of cased BLEU resample its sentences; "": only seeds are compared
    signature: str = ""  # the dotted key of its signature in a result; only scores with the same one are comparable

    @property
    def is_log(self) -> bool:
        """Whether logarithms are compared."""
        return self.scale == "log"

    @property
    def compared_label(self) -> str:
        """The label of what is compared: ln PPL, BLEU."""
        return f"ln {self.label}" if self.is_log else self.label

    @property
    def compared_digits(self) -> int:
        """The decimal places of a difference in a table."""
        return 3 if self.is_log else self.digits

    @property
    def parts(self) -> list[str]:
        """The dotted keys of the numbers in a result that it is made of."""
        return self.key.split("/")

    @property
    def scorer(self) -> str:
        """The program that computes the metric, or its label."""
        return "sacreBLEU" if self.sentences else self.label

    @property
    def column(self) -> str:
        """The last part of the key, such as perplexity."""
        return self.key.rpartition(".")[2]


DEFAULT = {
    "ppl": Metric("ppl", "test.perplexity", "PPL", better="lower", scale="log", digits=2, over="tokens"),
    "bleu": Metric("bleu", "test.bleu", "BLEU", sentences="bleu", signature="test.signature"),
}
"""The metrics of a translation study that declares none."""

_ACCURACY = Metric("accuracy", "test.accuracy", "accuracy", signature="test.accuracy_signature")
_BITS_KEY = "test.bits_per_byte"
_BITS = Metric("bits_per_byte", _BITS_KEY, "bits/byte", better="lower", digits=3, signature=f"{_BITS_KEY}_signature")
_OF_TASKS = {
    "translation": DEFAULT,
    "language_modelling": {"ppl": DEFAULT["ppl"], "bits_per_byte": _BITS},
    "masked_language_modelling": {"ppl": DEFAULT["ppl"], "accuracy": _ACCURACY},
    "span_corruption": {"ppl": DEFAULT["ppl"]},
    "parsing": {"f1": Metric("f1", "test.bracket_f1", "F1"), "ppl": DEFAULT["ppl"]},
}
_KNOWN = {name: metric for metrics in _OF_TASKS.values() for name, metric in metrics.items()}


def default_metrics(task: str | None) -> dict[str, Metric]:
    """Return the metrics of a study that declares none.

    Args:
        task: the name of its file in `conf/task`. A user's own task has perplexity only; None gives the metrics of all
            built-in tasks.
    """
    return _KNOWN if task is None else _OF_TASKS.get(task, {"ppl": DEFAULT["ppl"]})


def rises(name: str) -> bool:
    """Return whether a metric is known to be better the higher, by its key in a result or its name at W&B."""
    word = re.split(r"[./]|^(?:test|valid)_", name)[-1]
    return any(metric.column == word and metric.better == "higher" for metric in _KNOWN.values())


def typed_metric(word: str, option: str = "--metric ") -> Metric:
    """Read a metric as it is typed: `test_loss:lower:log`; `option` is where.

    Raises:
        UserError: it is no metric.
    """
    name, better, scale = [*word.split(":"), "", ""][:3]
    if not name or better not in ("lower", "higher") or scale not in ("", "log") or word.count(":") > 2:
        raise UserError(f"{option}{word}: say the column and what is better: {name or 'loss'}:lower, or :lower:log")
    return Metric(name, name, name, better, scale or "linear", digits=3)


_CHOICES = {
    "better": ("lower", "higher"),
    "scale": ("linear", "log"),
    "over": ("text", "tokens"),
    "sentences": ("", "bleu"),
}


def read_metrics(file: Path, given: Any, task: str = "translation") -> dict[str, Metric]:
    """Read the metrics that a study declares, in its order; the default metrics of its task if it declares none.

    If a built-in metric has the same name and key, fields that are not given are taken from it.

    Raises:
        UserError: a metric is not valid; the message names the file and the key.
    """
    if given is None:
        return default_metrics(task)
    if not isinstance(given, dict) or not given:
        raise UserError(f"{file}: metrics must map names to what they are, such as chrf: {{label: chrF}}")
    return {name: _read_metric(f"{file}: metrics.{name}", name, settings or {}) for name, settings in given.items()}


def _read_metric(place: str, name: Any, settings: Any) -> Metric:
    names = [field.name for field in fields(Metric) if field.name != "name"]
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(settings, dict):
        raise UserError(f"{place} must be a word and say what it is, such as {{key: test.chrf, better: higher}}")
    for key, value in settings.items():
        if key not in names:
            raise UserError(f"{place}: unknown key {key!r}: {did_you_mean(str(key), names)}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise UserError(f"{place}.{key}: {value!r}: {did_you_mean(str(value), filter(None, _CHOICES[key]))}")
        if not ((type(value) is int and value >= 0) if key == "digits" else isinstance(value, str)):
            raise UserError(
                f"{place}.{key} must be a {'whole number, 0 or more' if key == 'digits' else 'word'}, not {value!r}"
            )
    known = _KNOWN.get(name)
    base = known if known and settings.get("key", known.key) == known.key else None
    key = settings.get("key", f"test.{name}")
    plain = base or Metric(name, key, name, signature="" if "/" in key else f"{key}_signature")
    made = Metric(**{**plain.__dict__, **settings})
    if made.sentences and (made.is_log or made.key != DEFAULT["bleu"].key):
        raise UserError(
            f"{place}.sentences: bleu resamples sentences for {DEFAULT['bleu'].key}, on a linear scale, and for no "
            "other metric; with sentences: '' its seeds are compared"
        )
    return made
