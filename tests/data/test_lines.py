import gzip
from pathlib import Path

import pytest
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from etude.data.lines import content_sum, parallel_lines, read_lines, read_segments, sgm_pairs
from etude.errors import UserError


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("eins\u2028zwei\r\ndrei\x0bvier\rfünf\n\nletzte".encode())
    assert list(read_lines(file)) == ["eins zwei", "drei vier fünf", "", "letzte"]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    assert list(read_lines(file)) == ["one", "two"]


def test_gzip_is_recognised_whatever_the_name(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed.txt"
    plain.write_bytes("größer\nkleiner\n".encode())
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_lines(packed)) == list(read_lines(plain)) == ["größer", "kleiner"]
    assert content_sum(packed) == content_sum(plain)


def test_invalid_utf8_is_reported_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "latin1.txt"
    file.write_bytes("gut\nauch gut\ngrößer\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin1\.txt, line 3: byte 0xf6 .*UTF-8"):
        list(read_lines(file))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["plain", "gzipped"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "nothing.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"nothing\.txt is empty"):
        list(read_lines(file))


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text("x\n")
    with pytest.raises(UserError, match=r"no file .*trian\.en; did you mean train\.en\?"):
        list(read_lines(tmp_path / "trian.en"))
    with pytest.raises(UserError, match="nor a folder"):
        list(read_lines(tmp_path / "nowhere" / "train.en"))


def test_a_torn_gzip_file_and_a_folder_are_errors_not_tracebacks(tmp_path: Path) -> None:
    torn = tmp_path / "torn.gz"
    torn.write_bytes(gzip.compress(b"word " * 1000)[:-20])
    with pytest.raises(UserError, match=r"cannot read .*torn\.gz"):
        list(read_lines(torn))
    with pytest.raises(UserError, match="is a folder: name a file in it"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize(("lines", "other"), [(7, 4), (4, 7), (5, 4), (1, 2)])
def test_different_line_counts_are_both_named(tmp_path: Path, lines: int, other: int) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("hello\n" * lines)
    target.write_text("hallo\n" * other)
    with pytest.raises(UserError, match=rf"a\.en has {lines} lines but .*a\.de has {other};"):
        list(parallel_lines(source, target))


def test_pairs_are_stripped(tmp_path: Path) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("  one \n\ntwo")
    target.write_text("eins\t\n \nzwei\n")
    assert list(parallel_lines(source, target)) == [("one", "eins"), ("", ""), ("two", "zwei")]


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
