"""How much of a Multi30k batch is real: tokens that are not padding, divided by all places of the rectangles.

python benchmarks/batching.py FOLDER_WITH_MULTI30K [TARGET_TOKENS]
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hydra.utils import instantiate
from omegaconf import OmegaConf

from etude.config.resolvers import register
from etude.data.batching import BatchStream
from etude.data.store import prepare
from etude.data.tokenizer import PAD
from etude.paths import shipped


def main(root: str, tokens: int) -> None:
    register()
    groups = {"data": "multi30k_en_de", "tokenizer": "bpe"}
    config = OmegaConf.create(
        {key: OmegaConf.load(shipped("conf") / key / f"{name}.yaml") for key, name in groups.items()}
    )
    config.data.update(root=root, download_dir=root)
    corpus, bpe = instantiate(config.data), instantiate(config.tokenizer)
    with TemporaryDirectory() as cache:
        split = prepare(corpus, bpe, Path(cache), 128).split("train")
        budget = {"source_tokens": tokens, "target_tokens": tokens, "length_noise": 4.0}
        stream = BatchStream(split, **budget, seed=1, start=0, rank=0, world_size=1, micro_batches=1)
        epoch = [stream.micro_batch(step, 0) for step in range(stream.batches_per_epoch)]
    real = np.array([[int((side != PAD).sum()) for side in (b.source, b.target_out)] for b in epoch]).sum(0)
    places = np.array([[side.numel() for side in (b.source, b.target_out)] for b in epoch]).sum(0)
    source, target = real / places
    print(f"{len(epoch)} batches of at most {tokens} source and {tokens} target tokens, an epoch of {len(split)} pairs")
    print(f"real / padded: {real.sum() / places.sum():.4f} (source {source:.4f}, target {target:.4f})")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
