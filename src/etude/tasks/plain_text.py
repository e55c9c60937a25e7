"""Look at a prepared text before anything is trained on it: whether BLEU can be had on it, and whether it is plain."""

import re
from collections.abc import Callable
from typing import Any

from etude.data.corpus import first_reference
from etude.data.splits import SIDES
from etude.data.store import TokenStore
from etude.tasks.metrics import BLEU, score_translations

Config = dict[str, Any]

_SHARE = 0.5  # of the lines that must look so; of plain text, few do
_LOOKS: dict[str, Callable[[str], object]] = {
    "like subwords of SentencePiece (▁)": re.compile("▁").search,
    "like subwords of BPE (@@)": re.compile(r"@@( |$)").search,
    "tokenised": re.compile(r" [.,。，](?= |$)| @-@ |&(apos|quot|amp|#91|#93|#124);").search,
    "lowercased": str.islower,
    "like quoted cells of a CSV": re.compile(r'"([^"]|"")*"').fullmatch,
}


def describe_text(config: Config, store: TokenStore) -> list[str]:
    """Say of which test references the tokenizer cannot give back the words, and which lines are no plain text.

    Returns:
        One sentence for each finding; none for a task without BLEU.
    """
    metrics = {name: node for name, node in config["metrics"].items() if node["_target_"] == BLEU}
    if not metrics:
        return []
    sources, references = store.text("test")
    references = [first_reference(line) for line in references]
    decoded = [store.tokenizer.decode(tokens) for tokens in store.tokenizer.encode_all(references)]
    lost = [pair for pair in zip(references, decoded, strict=True) if pair[0].split() != pair[1].split()]
    found = []
    if lost:
        scores = score_translations(metrics, config["data"], decoded, references)
        most = ", ".join(f"{scores[name]:.1f} {name}" for name in metrics if name in scores)
        found.append(
            f"{100 * len(lost) / len(references):.1f} % of the test references cannot be reproduced: encoded and "
            f"decoded, {lost[0][0]!r} is {lost[0][1]!r}; no model can score above {most} on this text"
        )
    for side, lines in zip(SIDES, (sources, references), strict=True):
        alike = {look: [line for line in lines if test(line)] for look, test in _LOOKS.items()}
        looks = {look: some for look, some in alike.items() if len(some) >= _SHARE * len(lines)}
        if looks:
            shares = ", ".join(f"{look} ({100 * len(some) / len(lines):.0f} %)" for look, some in looks.items())
            found.append(
                f"the {side} lines look {shares}, such as {next(iter(looks.values()))[0]!r}: BLEU is comparable with "
                "that of others on plain text alone"
            )
    return found
