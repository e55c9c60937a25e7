"""The test sets that runs left beside their results: what was translated, with what, and how it should have been."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from etude.data.lines import read_lines
from etude.errors import UserError
from etude.runs.records import Run
from etude.studies.metrics import Metric
from etude.studies.study import value_at


@dataclass(frozen=True)
class TestSet:
    """What the baseline was tested on, and with it all that is compared.

    Attributes:
        sentences: how many.
        signatures: by the key of a result, how they were scored, such as sacreBLEU says it.
        store: the address of the text as numbers; runs with the same one count the same word pieces.
        sources: a line a sentence; empty where no run has kept them.
        references: as many; empty as well.
    """

    __test__ = False  # no test of pytest's

    sentences: int
    signatures: dict[str, str]
    store: str
    sources: list[str] = field(default_factory=list, repr=False)
    references: list[str] = field(default_factory=list, repr=False)


def test_set(run: Run, runs: Iterable[Run], metrics: Iterable[Metric]) -> TestSet:
    """What `run` was tested on; where it has not kept the text itself, one of `runs` with the same store may have."""
    store = str(run.result.get("store", ""))
    same = [run, *(other for other in runs if store and other.result.get("store") == store)]
    sentences = int(run.score("test.sentences") or 0)
    signatures = {metric.signature: str(value_at(run.result, metric.signature)) for metric in metrics}
    sources = _kept((other.run_dir.sources_file("test") for other in same), sentences)
    references = _kept((other.run_dir.references_file("test") for other in same), sentences)
    return TestSet(sentences, signatures, store, sources, references)


def _kept(files: Iterable[Path], sentences: int) -> list[str]:
    """What the first file holds that holds so many lines; one that is damaged does not spoil the others."""
    for file in files:
        with suppress(UserError):
            if len(found := lines(file)) == sentences:
                return found
    return []


def other_signature(run: Run, base: TestSet, metric: Metric) -> str:
    """Why a run's score was computed otherwise than the baseline's; nothing where it was not."""
    ours, theirs = str(value_at(run.result, metric.signature)), base.signatures.get(metric.signature)
    return "" if ours == theirs else f"its {metric.scorer} signature is {ours}, the baseline's {theirs}"


def other_text(run: Run, base: TestSet) -> str:
    """Why a score of a run's translations cannot be compared with the baseline's; nothing where it can."""
    sentences = value_at(run.result, "test.sentences")
    if sentences != base.sentences:
        return f"it was tested on {sentences:,} sentences, the baseline on {base.sentences:,}"
    own = lines(run.run_dir.references_file("test"))
    if own and base.references:
        return "" if own == base.references else "its references are not the baseline's"
    return "" if _store(run) == base.store else "it met another text than the baseline, and one kept no references"


def other_pieces(run: Run, base: TestSet) -> str:
    """Why the perplexity of a run cannot be compared with that of the baseline; nothing where it can."""
    return "" if _store(run) == base.store else "its perplexity is over other text or other word pieces"


def translations(run: Run, base: TestSet) -> list[str]:
    """The hypotheses of a run, a line a sentence of the test set.

    Raises:
        UserError: they are missing, or are not what the result of the run was computed from.
    """
    file = run.run_dir.hypotheses_file("test")
    found = lines(file)
    if len(found) != base.sentences:
        raise UserError(f"{file} has {len(found):,} lines for {base.sentences:,} references")
    return found


def lines(file: Path) -> list[str]:
    """The lines of a file; none where there is no such file.

    Raises:
        UserError: it is empty or not UTF-8.
    """
    return list(read_lines(file)) if file.is_file() else []


def _store(run: Run) -> str:
    return str(run.result.get("store", ""))
