"""The metrics of translations: the parts under `metrics` of a config, each called with hypotheses and references.

A metric returns a number, or a score with a signature that says how it was computed: {"score": 31.5, "signature":
"..."}. The result of a run holds its score as `test.NAME`. Metrics do not affect training: a finished run can be scored
by further metrics from the translations in its directory.
"""

import logging
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from hydra.utils import instantiate

from etude.config import parts
from etude.config.signature import signature as config_signature
from etude.data.corpus import digest
from etude.data.lines import read_lines
from etude.errors import UserError
from etude.store.divergence import divergence
from etude.store.run_dir import RunDir
from etude.tasks.bleu import make_bleu, tokenizer_of

Config = dict[str, Any]

log = logging.getLogger(__name__)

BLEU = "etude.tasks.bleu.bleu"

_SIGNATURES = {"bleu": "signature", "paper_bleu": "paper_signature"}  # the key of any other is NAME_signature
_NOT_METRICS = {"perplexity", "tokens", "sentences", "pairs"}  # the other keys under `test`
_LABELS = {"bleu": "BLEU", "paper_bleu": "BLEU by the paper's recipe", "bits_per_byte": "bits per byte"}
_DIGITS = {"bits_per_byte": 3}


def score_translations(
    metrics: Mapping[str, Config],
    data: Config,
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Score translations by every metric; one that fails or returns no finite number is left out, with a warning.

    Args:
        metrics: name -> config of the metric.
        data: the `data` config; a metric whose `language` is "auto" gets its target language, BLEU its tokenizer.
        hypotheses, references: line by line; several references of a line have tabs between them.
        sources: line by line, for a metric with a parameter of this name; None if they are not known.

    Returns:
        Scores by name, and their signatures, with the keys that they have in a result.
    """
    found: dict[str, Any] = {}
    for name, node in metrics.items():
        try:
            node = for_text(node, data)
            if node.get("language") == "auto":
                node = node | {"language": parts.make(data).languages[1]}
            metric = instantiate(node | {"_partial_": True}, _convert_="all")
            texts = {"hypotheses": hypotheses, "references": references, "sources": sources}
            takes = config_signature(node["_target_"]).keywords
            given = {key: [*lines] for key, lines in texts.items() if lines is not None and key in takes}
            by_name = {"hypotheses", "references"} <= given.keys()
            result = metric(**given) if by_name else metric([*hypotheses], [*references])
            score, signature = _parse_result(result)
        except Exception as error:  # it may be the user's own code: whatever it raises, the run is not lost
            why = next(filter(str.strip, str(error).splitlines()), "it says no more")
            log.warning("metrics.%s failed, so that the run has no such score: %s: %s", name, type(error).__name__, why)
            continue
        if not isfinite(score):
            log.warning("metrics.%s gave %s, which is not a score: the run is kept without it", name, score)
            continue
        found[name] = score
        if signature:
            found[_signature_key(name)] = signature
    return found


def for_text(metric: Config, data: Config) -> Config:
    """Return the config of a metric for a text: BLEU without `tokenize` gets the tokenizer of the target language.

    13a, the default of sacreBLEU, is left out, so that results keep the fingerprints of their metrics.
    """
    if metric.get("_target_") != BLEU or "tokenize" in metric or not data:
        return metric
    tokenize = tokenizer_of(getattr(parts.make(data), "languages", ("", ""))[1])  # a user's own corpus may have none
    return metric if tokenize == "13a" else metric | {"tokenize": tokenize}


def check_tokenizers(config: Config) -> None:
    """Check that sacreBLEU can split lines here as the BLEU of a config asks for.

    Raises:
        UserError: it lacks a package, or a model that it cannot download.
    """
    for name, node in config["metrics"].items():
        if node["_target_"] == BLEU and (tokenize := for_text(node, config["data"]).get("tokenize")):
            try:
                make_bleu(tokenize)
            except UserError as error:
                raise UserError(f"metrics.{name}: {error}; or say +metrics.{name}.tokenize=char") from error


def scored_by(config: Config) -> dict[str, str]:
    """Return the fingerprint of each metric's class and options, by which a result says how it was scored."""
    data = config.get("data") or {}
    return {name: digest(for_text(node, data)) for name, node in (config.get("metrics") or {}).items()}


def add_missing_metrics(run: RunDir, config: Config) -> Config:
    """Score a finished run by the metrics of `config` that it lacks or has with other options, from its translations.

    Returns:
        The result of the run; if scores were added, it is also written to the directory.

    Raises:
        UserError: the result file is damaged, or the translations are not UTF-8.
    """
    result = run.result()
    files = (run.hypotheses_file, run.references_file)
    test = result.get("test") or {}
    used, asked = result.get("scored_by") or {}, scored_by(config)  # older results do not say by which options
    others = [name for name, options in asked.items() if name not in test or options != used.get(name, options)]
    missing = {name: config["metrics"][name] for name in others}
    if not missing or divergence(result) or not all(file.is_file() for file in files):
        return result
    hypotheses, references = (list(read_lines(file)) for file in files)
    sources = list(read_lines(run.sources_file)) if run.sources_file.is_file() else None
    scores = score_translations(missing, run.config()["data"], hypotheses, references, sources)
    if not scores:
        return result
    by = used | {name: asked[name] for name in missing if name in scores}
    scored = result | {"test": test | scores, "scored_by": by}
    if scored != result:
        run.write_result(scored)
    return scored


def format_scores(split: str, scores: Mapping[str, Any], sentences: int = 0) -> str:
    """Format the scores of a split for the terminal: perplexity and every metric, each with its signature."""
    named = {
        name: score for name, score in scores.items() if isinstance(score, int | float) and name not in _NOT_METRICS
    }
    parts: list[str] = []
    for name, score in named.items():
        how = [str(scores[key])] if (key := _signature_key(name)) in scores else []
        how += [f"{sentences:,} sentences"] if sentences and not parts else []
        parts.append(
            f"{_LABELS.get(name, name)} {score:.{_DIGITS.get(name, 2)}f}" + (f"  ({', '.join(how)})" if how else "")
        )
    head = [f"perplexity {scores['perplexity']:.2f}"] if "perplexity" in scores else []  # a user's task may have none
    first = f"{split} {'  '.join([*head, *parts[:1]])}"
    return "".join(f"{line}\n" for line in (first, *(f"{split} {one}" for one in parts[1:])))


def _signature_key(name: str) -> str:
    return _SIGNATURES.get(name, f"{name}_signature")


def _parse_result(result: Any) -> tuple[float, str]:
    """Return score and signature from what a metric returned: a mapping, an object with `score`, or a number."""
    if isinstance(result, Mapping):
        if "score" not in result:
            raise ValueError(f"it returns {dict(result)}, without `score`: return a number, or {{'score': ...}}")
        return float(result["score"]), str(result.get("signature", ""))
    return float(getattr(result, "score", result)), str(getattr(result, "signature", ""))
