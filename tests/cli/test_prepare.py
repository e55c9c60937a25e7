"""`etude prepare`: what it makes, and whether it is still as it was made."""

from pathlib import Path

import pytest

from etude.cli.main import main


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
