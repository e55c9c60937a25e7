"""`etude prepare`: what it makes, and whether it is still as it was made."""

import re
import tarfile
from pathlib import Path

import pytest
from tests import warm

from etude.cli.main import main
from etude.study.axes import axes


def test_verify_reads_a_prepared_text_again_and_names_what_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{'abcdefgh'[k % 8]} {k}\tx {k}\n" for k in range(200)))
    text = ["data=files", f"data.tsv={tmp_path / 'pairs.tsv'}", "data.holdout=8", "tokenizer.vocab_size=30"]
    words = ["prepare", "--verify", *text, f"cache_dir={tmp_path / 'cache'}"]

    def status() -> int:
        with pytest.raises(SystemExit) as end:
            main(words)
        return end.value.code

    assert status() == 0
    assert "17 files, each as it was written" in capsys.readouterr().out
    [file] = tmp_path.glob("cache/*/test.source.txt")
    file.write_text(file.read_text().swapcase())
    assert status() == 2
    assert f"{file} is damaged" in capsys.readouterr().err


def test_what_training_would_refuse_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["prepare", "task=masked_language_modelling", "model=tiny", f"cache_dir={tmp_path / 'cache'}"])
    assert end.value.code == 2
    assert "say model=encoder_only" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


OWN = """
from etude.data.corpus import Corpus

class Own(Corpus):
    languages, vocab_size = ("en", "xx"), 20

    def fingerprint(self):
        return "0123456789abcdef"

    def pairs(self, split):
        yield from [("a b c", "c b a d"), ("d e f g", "g f")] * 20
        yield LAST
"""


def test_a_corpus_of_ones_own_is_read_with_care_and_a_change_of_its_code_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepared(last: str, *words: str) -> tuple[int, str]:
        (tmp_path / "own.py").write_text(OWN.replace("LAST", last))
        done = warm.run(warm.ETUDE, "prepare", "~data", "+data._target_=own.Own", *sizes, *words, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    sizes = ["tokenizer.vocab_size=16", "tokenizer.hard_vocab_limit=false", f"cache_dir={tmp_path / 'cache'}"]
    status, told = prepared("'a', 'b\\nc'")
    assert status == 2
    assert "own.Own.pairs('train') yields ('a', 'b\\nc') as pair 41: the line break in it" in told
    assert not [*tmp_path.glob("cache/*/meta.json")]
    assert prepared("'a', 'b'")[0] == 0
    status, told = prepared("'a', 'c'")
    assert status == 0
    assert "was prepared by other code of a corpus or tokenizer of yours than today's: raise a number" in told


def test_how_much_a_vocabulary_of_words_does_not_know_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a b w{k}\ta b w{k}\n" for k in range(42)))
    text = ["data=files", f"data.tsv={tmp_path / 'pairs.tsv'}", "data.holdout=1", "tokenizer=word"]
    with pytest.raises(SystemExit) as end:
        main(["prepare", *text, "tokenizer.vocab_size=6", f"cache_dir={tmp_path / 'cache'}"])
    assert end.value.code == 0
    unknown = re.search(r"^train +40 pairs \(([\d.]+) % of tokens unknown\)$", capsys.readouterr().out, re.MULTILINE)
    assert float(unknown[1]) == 25, "of a, b, any third word, and the end"


def test_what_cleaning_left_out_is_told_for_each_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"text.en": "a b\n" * 40 + "\n", "text.de": "c d\n" * 40 + "c\n"}
    texts |= {f"new.{code}.sgm": '<doc docid="d"><seg id="1">a b</seg></doc>' for code in ("en", "de")}
    with tarfile.open(tmp_path / "all.tgz", "w:gz") as tar:
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
            tar.add(tmp_path / name, name)
    text, new = (f"archive: all.tgz, source: {n}.en{e}, target: {n}.de{e}" for n, e in (("text", ""), ("new", ".sgm")))
    others = [f"~data.sources.{name}" for name in ("common_crawl", "news_commentary_v9")]
    own = [f"data.sources.europarl_v7={{{text}, sum: null}}", f"data.test_sets.newstest2013={{{new}, sum: null}}"]
    words = ["data=wmt14_en_de", *others, *own, "data.test=newstest2013", f"data.root={tmp_path}"]
    sizes = ["tokenizer.vocab_size=20", "tokenizer.hard_vocab_limit=false", f"cache_dir={tmp_path / 'cache'}"]
    with pytest.raises(SystemExit) as end:
        main(["prepare", *words, *sizes])
    printed = capsys.readouterr()
    assert end.value.code == 0, printed.err
    assert "train is of europarl_v7: 40 of 41 pairs (1 blank left out)" in printed.out.splitlines()


def test_a_test_set_that_a_corpus_does_not_have_names_those_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["prepare", "data=wmt14_en_de", "data.test=newstest2015"])
    assert end.value.code == 2
    assert "there are newstest2012, newstest2013, newstest2014" in capsys.readouterr().err


@pytest.mark.parametrize(
    "tokenizer", [one for axis in axes() if axis.group == "tokenizer" for one in axis.values if one != "existing"]
)
def test_every_tokenizer_learns_of_the_text_that_comes_along(
    tokenizer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["prepare", f"tokenizer={tokenizer}", "budget=smoke", f"cache_dir={tmp_path / 'cache'}"])
    assert end.value.code == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "words", "base"),
    [
        ("tokenizer", [], "etude.data.tokenizer.Vocabulary"),
        ("task", ["task=language_modelling"], "etude.tasks.task.Task"),
    ],
)
def test_a_class_of_another_kind_is_told_what_to_be_derived_from(
    part: str, words: list[str], base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", *words, f"{part}._target_=collections.Counter", "budget=smoke", f"runs_dir={tmp_path}"])
    assert end.value.code == 2
    assert f"etude: {part}: collections.Counter is not a {part}: derive it from {base}" in capsys.readouterr().err


RAISES = """
from etude.data.corpus import Corpus

class Raises(Corpus):
    languages, vocab_size = ("en", "de"), 20

    def fingerprint(self):
        return "0123456789abcdef"

    def pairs(self, split):
        raise ValueError("row 20 is bad")

class Plain:
    pass
"""


@pytest.mark.parametrize(
    ("dataset", "told"),
    [
        ("Raises", r"the data or the task fails in .*Raises \(.*texts\.py, line 11\): ValueError: row 20 is bad"),
        ("Plain", r"texts_of_mine\.texts\.Plain is not a dataset: derive it from etude\.data\.corpus\.Corpus"),
    ],
)
def test_a_dataset_of_ones_own_that_fails_is_one_sentence(
    dataset: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts_of_mine").mkdir()
    (tmp_path / "texts_of_mine" / "texts.py").write_text(RAISES)
    (tmp_path / "conf" / "data").mkdir(parents=True)
    (tmp_path / "conf" / "data" / "own.yaml").write_text(f"_target_: texts_of_mine.texts.{dataset}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["train", "data=own", "tokenizer.vocab_size=20", "budget=smoke", "trainer=cpu"])
    error = capsys.readouterr().err
    assert (end.value.code, bool(re.search(told, error)), "Traceback" in error) == (2, True, False), error


def test_the_first_pair_and_what_no_model_can_write_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second time, too, when the text has been prepared."""
    rows = [f"0.{k}\t{'abcdefgh'[k % 8]} {k}\t▁x ▁{k}\n" for k in range(200)]
    (tmp_path / "pairs.tsv").write_text("score\ten\txx\n" + "".join(rows))
    columns = ["data.columns.source=en", "data.columns.target=xx"]
    text = ["data=files", f"data.tsv={tmp_path / 'pairs.tsv'}", "data.holdout=8", "tokenizer.vocab_size=40", *columns]
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            main(["prepare", *text, f"cache_dir={tmp_path / 'cache'}"])
        assert end.value.code == 0
        printed = capsys.readouterr().out
        assert re.search(r"^train begins with '[a-h] \d' -> '▁x ▁\d'$", printed, re.MULTILINE), printed
        assert "100.0 % of the test references cannot be reproduced" in printed


@pytest.mark.parametrize("verb", ["prepare", "train"])
def test_a_package_that_bleu_lacks_is_told_before_anything_is_made(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ko_mecab.MeCab", None)
    (tmp_path / "pairs.tsv").write_text("".join(f"{'abcdefgh'[k % 8]} {k}\tx {k}\n" for k in range(200)))
    text = ["data=files", f"data.tsv={tmp_path / 'pairs.tsv'}", "data.holdout=8", "data.languages=[en,ko]"]
    own = [] if verb == "prepare" else ["budget=smoke", "trainer=cpu", "logger=none", f"runs_dir={tmp_path / 'runs'}"]
    with pytest.raises(SystemExit) as end:
        main([verb, *text, *own, f"cache_dir={tmp_path / 'cache'}"])
    assert end.value.code == 2
    assert "pip install sacrebleu[ko]; or say +metrics.bleu.tokenize=char" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()
