"""Read test sets in WMT's SGM format: `<seg id="1">A sentence.</seg>`, in named documents.

SGM is not XML, since a bare & occurs in it; so its tags are searched for, as sacreBLEU does.
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
"""((document id, segment id), text)."""


def sgm_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Yield the pairs of two files whose segments are translations of each other one by one.

    Raises:
        UserError: a file is missing or not SGM; or the files differ in a segment (both are named).
    """
    sides = read_segments(source), read_segments(target)
    for number, (left, right) in enumerate(zip_longest(*sides), start=1):
        if left is None or right is None or left[0] != right[0]:
            names = ["nothing" if side is None else f"segment {side[0][1]} of {side[0][0]!r}" for side in (left, right)]
            raise UserError(f"{source} has {names[0]} where {target} has {names[1]} (the {number}th of each)")
        yield left[1], right[1]


def read_segments(path: Path) -> list[Segment]:
    """Read the segments of a file, in order; white space of any length becomes one space.

    Raises:
        UserError: as `read_lines`; there is no segment; or one is not closed (with the line number).
    """
    text = "\n".join(read_lines(path))
    segments: list[Segment] = []
    document, opened = "", None
    for tag in _TAG.finditer(text):
        closes = tag[0].startswith("</")
        if (opened is None) == closes:
            line = text.count("\n", 0, (opened or tag).start()) + 1
            raise UserError(f"{path}, line {line}: a segment is not closed, or was never opened")
        if opened is not None:
            body = unescape(text[opened.end() : tag.start()], _QUOTES)
            segments.append(((document, opened[2]), " ".join(body.split())))
        elif tag[1] is not None:
            document = tag[1]
        opened = tag if tag[2] else None
    if opened is not None:
        raise UserError(f"{path}, line {text.count(chr(10), 0, opened.start()) + 1}: a segment is not closed")
    if not segments:
        raise UserError(f'{path} has no segment: it should hold lines such as <seg id="1">A sentence.</seg>')
    return segments
