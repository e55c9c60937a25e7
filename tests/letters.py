"""A small parallel text of letters, and a model that is small enough for it."""

from pathlib import Path

TINY = ["model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "trainer=cpu", "logger=none"]
TEXT = ["data=files", "data.holdout=4", "tokenizer.vocab_size=30"]
ROWS = [" ".join("abcdefgh"[(k * j + k // 8) % 8] for j in range(1, 3 + k % 6)) for k in range(1, 200)]


def write_pairs(folder: Path) -> str:
    """Write pairs of rows into `pairs.tsv` there; the override that chooses it."""
    file = folder / "pairs.tsv"
    file.write_text("".join(f"{row} {k % 8}\t{row} {k % 8}\n" for k, row in enumerate(ROWS)))
    return f"data.tsv={file}"
