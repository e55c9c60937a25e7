"""Make the notebook docs/python.ipynb of the page docs/python.md: `python docs/notebook.py`."""

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("python.md")
NOTEBOOK = PAGE.with_suffix(".ipynb")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def cells(page: str) -> list[tuple[str, str]]:
    """Divide a page into (kind, text): "markdown", "python", and "shell" for what is typed at a command line."""
    found: list[tuple[str, str]] = []
    end = 0
    for block in _BLOCK.finditer(page):
        found += [("markdown", page[end : block.start()]), (block[1] or "shell", block[2])]
        end = block.end()
    found.append(("markdown", page[end:]))
    return [(kind, text.strip()) for kind, text in found if text.strip()]


def notebook(page: str) -> str:
    """Return the notebook of a page; without outputs, which depend on the runs."""
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells(page)):
        if kind == "shell":
            text = "\n".join(f"!{line}" if "<" not in line else f"# {line}" for line in text.splitlines())
        cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        made.append(cell | ({"cell_type": "markdown"} if kind == "markdown" else code))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
