"""`etude prepare`: download a corpus and tokenise it, once, before any run needs it."""

from typing import Any

from etude import build
from etude.data.splits import told
from etude.logs import logging_to


def prepare(config: dict[str, Any], *, verify: bool) -> str:
    """Make the token store of a config.

    Args:
        config: resolved.
        verify: whether to read all of it again, and compare it with what was written.

    Returns:
        What there is now, for the terminal.

    Raises:
        UserError: the corpus cannot be had or does not fit the config, or the store is damaged.
    """
    logging_to(None)
    store = build.token_store(config)
    lines = [f"{store.path}", f"{store.vocab_size:,} word pieces"]
    lines += [f"{name:6} {told(counts)}" for name, counts in store.meta["splits"].items()]
    if verify:
        store.verify()
        lines.append(f"{len(store.meta['sums'])} files, each as it was written")
    return "\n".join(lines) + "\n"
