"""Mistakes that the person at the keyboard can mend, told in one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """One clear sentence that names the key or the file and line, and the way out.

    The command line prints it without a traceback and exits with `exit_status`.
    """

    exit_status = 2


def did_you_mean(word: str, choices: Iterable[str], shown: int = 12) -> str:
    """The end of an error sentence: the names nearest to `word`, or all of them where none is near."""
    known = sorted(set(choices))
    if not known:
        return "there is nothing to choose from"
    near = get_close_matches(word, known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    rest = f", … ({len(known)} in all)" if len(known) > shown else ""
    return f"choose one of {', '.join(known[:shown])}{rest}"


def chain(error: BaseException | None) -> list[BaseException]:
    """The error and all that it came from, the nearest first."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain
