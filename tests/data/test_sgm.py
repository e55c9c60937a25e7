from pathlib import Path

import pytest
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from etude.data.sgm import read_segments, sgm_pairs
from etude.errors import UserError

SOURCE = """<srcset setid="newstest2013" srclang="any">
<doc sysid="ref" docid="cnn/1" genre="news" origlang="en">
<hl>
<seg id="1">A headline</seg>
</hl>
<p>
<seg id="2">Ben & Jerry's  costs < 5 dollars . </seg>
</p>
</doc>
<DOC docid="cnn/2">
<seg id="1"></seg>
<seg id="2">The end</seg>
</DOC>
</srcset>
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_segments_are_those_that_sacrebleu_reads(tmp_path: Path) -> None:
    source, target = write(tmp_path / "src.sgm", SOURCE), tmp_path / "out.txt"
    FakeSGMLDataset("x", data=[], md5=[], description="", langpairs={})._convert_format(str(source), str(target))
    assert [text for _, text in read_segments(source)] == target.read_text().split("\n")[:-1]


def test_entities_are_the_characters_they_stand_for_and_a_segment_may_break_its_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "a.sgm", '<doc docid="d"><seg id="1">&quot;a &amp; b&quot;\n &lt;c&gt; &copy</seg></doc>')
    assert read_segments(file) == [(("d", "1"), '"a & b" <c> &copy')]


def test_pairs_are_segments_of_the_same_name(tmp_path: Path) -> None:
    source, target = write(tmp_path / "s.sgm", SOURCE), write(tmp_path / "t.sgm", SOURCE.replace("The end", "Ende"))
    assert [*sgm_pairs(source, target)][-2:] == [("", ""), ("The end", "Ende")]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('<seg id="2">The end</seg>\n', "", r"segment 2 of 'cnn/2' where .*t\.sgm has nothing \(the 4th"),
        ('docid="cnn/2"', 'docid="bbc"', r"segment 1 of 'cnn/2' where .* segment 1 of 'bbc'"),
        ('<seg id="1">A', '<seg id="7">A', r"segment 1 of 'cnn/1' where .* segment 7 of 'cnn/1'"),
        ("A headline</seg>", "A headline", r"t\.sgm, line 4: a segment is not closed"),
        ("The end</seg>", "The end", r"t\.sgm, line 12: a segment is not closed"),
        (SOURCE, "A line of plain text\n", r"t\.sgm has no segment"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    source, target = write(tmp_path / "s.sgm", SOURCE), write(tmp_path / "t.sgm", SOURCE.replace(old, new))
    with pytest.raises(UserError, match=told):
        list(sgm_pairs(source, target))
