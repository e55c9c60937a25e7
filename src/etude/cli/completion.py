"""Tab completion: Hydra completes what stands behind the verb, with the verb taken out of the line."""

import os
import sys
from collections.abc import Collection

from etude.cli.hydra_app import run_task


def complete(words: list[str], verbs: Collection[str]) -> None:
    """Install completion or answer the shell's question, as Hydra does."""
    line, point = os.environ.get("COMP_LINE", ""), int(os.environ.get("COMP_POINT", "0") or 0)
    program, _, rest = line.partition(" ")
    verb, space, behind = rest.lstrip().partition(" ")
    if "query" in "".join(words) and not space:
        sys.stdout.write("\n".join(name for name in verbs if name.startswith(verb)))
        return
    os.environ["COMP_LINE"] = f"{program} {behind}"
    os.environ["COMP_POINT"] = str(max(0, point - len(verb) - 1))
    config_name = verb if verb in ("evaluate", "analyze", "translate") else "train"
    run_task(verb or "train", config_name, lambda config: None, words)
