"""What preparing a text cannot do without: sentencepiece learns its subwords, and cuts each line.

python benchmarks/peers/subwords.py PAIRS.tsv VOCABULARY THREADS
"""

import io
import sys
from pathlib import Path

import sentencepiece


def main() -> None:
    file, vocabulary, threads = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    lines = [side for line in file.read_text(encoding="utf-8").splitlines() for side in line.split("\t")]
    model = io.BytesIO()
    options = {"model_type": "bpe", "character_coverage": 1.0, "normalization_rule_name": "identity"}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=vocabulary, num_threads=1, **options
    )
    sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).encode(lines, num_threads=threads)


if __name__ == "__main__":
    main()
