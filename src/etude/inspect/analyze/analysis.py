"""Run every analysis of `etude analyze` on one run."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from etude.errors import UserError
from etude.inspect.analyze.attention_maps import collect_maps, measure_spreads
from etude.inspect.analyze.heads import score_removals
from etude.inspect.analyze.subject import Subject, longest_training_sentence, sample_text
from etude.inspect.analyze.variant_scores import score_averages, score_by_length, score_searches, score_shuffled_order
from etude.terminal import console

Rows = list[dict[str, Any]]

_UNSEEN = {"entropy": None, "distance": None}  # of attention that calls no backend, and passes its weights nowhere


def analyze_run(subject: Subject, config: dict[str, Any]) -> dict[str, Any]:
    """Compute the content of `analysis.json`, which the package's docstring describes.

    The same config gives the same results.

    Args:
        subject: the run.
        config: the config of `etude analyze`.

    Raises:
        UserError: the model's likelihoods are not finite, or its text is not available.
    """
    seed = config["seed"]
    text = sample_text(subject, config["sentences"], seed)
    longest = longest_training_sentence(subject)
    with _progress() as progress:

        def collect(rows: Iterable[dict[str, Any]], description: str) -> Rows:
            task = progress.add_task(description, total=None)
            collected = list(progress.track(rows, task_id=task))
            progress.remove_task(task)
            return collected

        intact = subject.likelihoods(text)
        if not np.isfinite(intact.rows).all():
            raise UserError(f"the model of {subject.run.path} answers with no numbers (NaN): its training diverged")
        own = subject.translations(text) if subject.metric else None
        wide = measure_spreads(subject, text)
        heads = collect(score_removals(subject, text, intact, translated=config["removal_bleu"], seed=seed), "heads")
        lengths = collect(score_by_length(subject, text, intact, own, longest), "lengths") if own else []
        searched: Iterable[dict[str, Any]] = ()
        if own and {"beam", "alpha"} <= subject.config["decoding"].keys():  # a search of one's own may have neither
            searched = score_searches(subject, text, own, config["beams"], config["alphas"], seed=seed)
        return {
            "settings": {
                "split": "test",
                "sentences": len(text.sources),
                "seed": seed,
                "metric": subject.metric,
                "decoding": {key: value for key, value in (subject.config["decoding"] or {}).items() if key[0] != "_"},
            },
            "intact": {"perplexity": intact.score} | ({subject.metric: own.score} if own else {}),
            "heads": [head | wide.get((head["attention"], head["layer"], head["head"]), _UNSEEN) for head in heads],
            "maps": collect(collect_maps(subject, text, config["maps"]), "maps"),
            "order": score_shuffled_order(subject, text, intact, seed=seed) if own else None,
            "lengths": lengths,
            "trained": {"longest": longest},
            "decoding": collect(searched, "decoding"),
            "averaging": collect(score_averages(subject, text, intact, seed=seed), "averaging"),
        }


def _progress() -> Progress:
    """Make a progress display with the current analysis and its number of results; disabled without a terminal."""
    terminal = console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description} {task.completed}"),
        TimeElapsedColumn(),
        console=terminal,
        disable=not terminal.is_terminal,
        transient=True,
    )
