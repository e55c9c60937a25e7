"""Test sets in WMT's SGM: `<seg id="1">A sentence.</seg>`, in documents that have names.

It looks like XML and is none: a bare & occurs in it. So it is searched for its tags, as sacreBLEU does.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from xml.sax.saxutils import unescape

from etude.data.corpus import Pair
from etude.data.lines import read_lines
from etude.errors import UserError

_TAG = re.compile(r'<doc\b[^>]*?\bdocid="([^"]*)"|<seg\b[^>]*?\bid="?([^">\s]+)[^>]*>|</seg>', re.IGNORECASE)
_QUOTES = {"&quot;": '"', "&apos;": "'"}

Segment = tuple[tuple[str, str], str]
"""The names of a document and of a segment in it, and its text."""


def sgm_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """The pairs of two files whose segments translate each other one by one.

    Raises:
        UserError: a file is missing or no SGM; or the files differ in a segment (both are named).
    """
    sides = read_segments(source), read_segments(target)
    for number, (left, right) in enumerate(zip_longest(*sides), start=1):
        if left is None or right is None or left[0] != right[0]:
            told = ["nothing" if side is None else f"segment {side[0][1]} of {side[0][0]!r}" for side in (left, right)]
            raise UserError(f"{source} has {told[0]} where {target} has {told[1]} (the {number}th of each)")
        yield left[1], right[1]


def read_segments(path: Path) -> list[Segment]:
    """The segments of a file, in its order; white space of any length is one space.

    Raises:
        UserError: as `read_lines`; there is no segment; or one is not closed (with the line number).
    """
    text = "\n".join(read_lines(path))
    found: list[Segment] = []
    document, opened = "", None
    for tag in _TAG.finditer(text):
        closes = tag[0].startswith("</")
        if (opened is None) == closes:
            line = text.count("\n", 0, (opened or tag).start()) + 1
            raise UserError(f"{path}, line {line}: a segment is not closed, or was never opened")
        if opened is not None:
            body = unescape(text[opened.end() : tag.start()], _QUOTES)
            found.append(((document, opened[2]), " ".join(body.split())))
        elif tag[1] is not None:
            document = tag[1]
        opened = tag if tag[2] else None
    if opened is not None:
        raise UserError(f"{path}, line {text.count(chr(10), 0, opened.start()) + 1}: a segment is not closed")
    if not found:
        raise UserError(f'{path} has no segment: it should hold lines such as <seg id="1">A sentence.</seg>')
    return found
