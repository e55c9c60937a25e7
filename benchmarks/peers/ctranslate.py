"""CTranslate2, with the weights of the Marian model."""

import tempfile
import time

import ctranslate2
import torch
from ctranslate2.converters.transformers import MarianMTLoader

import decoding
from etude.data.tokenizer import PAD
from peers.marian import marian
from peers.torch_nn import VOCABULARY


class Decoding:
    """Its beam search, which is made to give as many pieces as all others."""

    def __init__(self, compute_type: str, beam: int = 4) -> None:
        torch.manual_seed(1)
        self.beam = beam
        self.sources = [
            [str(token) for token in row if token != PAD]
            for source, _ in decoding.batches(64)
            for row in source.tolist()
        ]
        # Its loader takes the last row of the embedding for padding, and leaves it out.
        spec, names = MarianMTLoader().get_model_spec(marian()), [str(token) for token in range(VOCABULARY - 1)]
        spec.register_source_vocabulary(names)
        spec.register_target_vocabulary(names)
        spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = names[1:4]
        spec.config.decoder_start_token = names[1]
        spec.validate()
        with tempfile.TemporaryDirectory() as folder:
            spec.save(folder)
            self.translator = ctranslate2.Translator(
                folder, compute_type=compute_type, intra_threads=torch.get_num_threads(), inter_threads=1
            )

    def round(self) -> float:
        started, pieces = time.perf_counter(), decoding.PIECES + 1  # and the end token
        self.translator.translate_batch(
            self.sources, beam_size=self.beam, max_batch_size=64, min_decoding_length=pieces, max_decoding_length=pieces
        )
        return decoding.SENTENCES / (time.perf_counter() - started)
