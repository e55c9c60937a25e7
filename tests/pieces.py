"""SentencePiece as tests want it."""

from typing import Any

from etude.data.tokenizer import SentencePiece


def sentence_piece(vocab_size: int, **changed: Any) -> SentencePiece:
    """BPE of the text as it stands, but for what is `changed`."""
    plain = {"model_type": "bpe", "hard_vocab_limit": True, "character_coverage": 1.0, "normalization": "identity"}
    return SentencePiece(vocab_size=vocab_size, **plain | changed)  # type: ignore[arg-type]
