"""Errors that the user can fix, each reported as one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake of the user's. The message names the key, or the file and line, and says how to fix it.

    The command line prints it without a traceback and exits with `exit_status`.
    """

    exit_status = 2


_SHOWN = 12  # choices that a message lists


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Make the end of an error message: the `choices` most similar to `word`, or else the first dozen."""
    known = sorted(set(choices))
    if not known:
        return "there is nothing to choose from"
    spelt = {choice.lower(): choice for choice in known}  # TRAIN is train
    near = get_close_matches(word.lower(), spelt, n=3, cutoff=0.5 if len(word) < 4 else 0.6)  # A2 is near A1
    if near:
        return f"did you mean {' or '.join(spelt[found] for found in near)}?"
    rest = f", … ({len(known)} in all)" if len(known) > _SHOWN else ""
    return f"choose one of {', '.join(known[:_SHOWN])}{rest}"


def chain(error: BaseException | None) -> list[BaseException]:
    """Return the error and its chain of causes, the nearest first."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain
