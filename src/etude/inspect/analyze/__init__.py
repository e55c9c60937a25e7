"""`etude analyze`: examine what a trained run has learned, by ablating its heads and changing its input and search.

It writes `analysis.json` into the run's directory, beside `result.json`. Layers and heads are numbered from 1. Numbers
that are not finite (a perplexity that overflows, an interval from one sentence) are null. The keys:

    settings   "split" ("test"), "sentences" (number of pairs used), "seed"; "metric", the key of translation scores
               below: "bleu", or "bracket_f1" for trees, or empty for a task that writes no text, which has no such
               scores; and "decoding", the search of the run's own config
    intact     the unchanged model on those sentences: "perplexity" and "bleu"
    heads      a list with an entry for each head: "attention" ("encoder" or "decoder": self-attention there; "cross":
               from the decoder to the encoder, including the alignment of a recurrent decoder), "layer", "head";
               "perplexity" without this head, "change" from the intact model and its 95 % "interval", and "bleu", which
               is null unless it was requested;
               "entropy" of its weights, in nats, and "distance" |i - j|, in subwords: means over real tokens; null for
               an attention of your own that calls no `self.backend` and passes its weights through no `self.watched`
    maps       a list of sentences: "source" and "target", their tokens as text; under "encoder", "decoder" and "cross"
               the weights in whole per cent, [layer][head][query][key]. The target is the reference, as the decoder
               reads it: it begins with <s>, and row i is where the model looks to predict the token after token i
    order      with the tokens of each source in random order: "perplexity", "change", "interval"; null for a task that
               writes no text, for which lengths and decoding are empty
    lengths    a list: "joined" pairs in one line, "pieces" ([from, to], tokens of the source), "sentences", how many of
               them are "longer_than_trained" (null if unknown), "perplexity" and "bleu"
    trained    "longest": tokens in the longest source line trained on, or null if the text is not available
    decoding   a list: "beam", "alpha", "bleu", its "change" from the run's own search and "interval", and
               "length_ratio", words of the translations per word of the references
    averaging  a list: the mean of the last "checkpoints" that the run kept, its "perplexity", "change" from the intact
               model, "interval" and "bleu"

Where a head looks (entropy, distance, maps) and how much the model needs it (removal) are different questions.
"""
