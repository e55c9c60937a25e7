"""Many arms against one base: what is left of each p where chance had that many tries."""

from collections.abc import Mapping


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment (Holm 1979): call significant what stays below α, and the chance that any of the
    calls is wrong stays below α, whatever the arms have to do with each other.

    The k-th smallest of m values is multiplied by m - k + 1, and none may fall below a smaller one's. It is never
    weaker than Bonferroni's m p, and asks for nothing more.

    Args:
        p: by arm; only of arms that were tested, for every one has its price.

    Returns:
        The adjusted values, in the order given.

    Raises:
        ValueError: a value is not between 0 and 1.
    """
    for arm, value in p.items():
        if not 0 <= value <= 1:
            raise ValueError(f"the p of {arm} is {value}, which is no probability")
    adjusted: dict[str, float] = {}
    least = 0.0
    for rank, (arm, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(p) - rank) * value))
        adjusted[arm] = least
    return {arm: adjusted[arm] for arm in p}
