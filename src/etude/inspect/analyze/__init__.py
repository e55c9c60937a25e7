"""`etude analyze`: what a trained run has learned, found by taking its model apart and asking it other questions.

It writes `analysis.json` into the run's directory, beside `result.json`. Layers and heads are numbered from 1. What is
not finite (a perplexity past every number, an interval from one sentence) is null. Under its keys stand:

    settings   what was asked for: "split" ("test"), "sentences" (pairs used), "seed"; "metric", the key under which
               scores of translations stand below: "bleu", or of trees "bracket_f1", and empty for a task that writes no
               text, which has no such scores; and "decoding", the search that the run's own config names
    intact     the model as it is, on those sentences: "perplexity" and "bleu"
    heads      a list, one entry for each head: "attention" ("encoder": self-attention there; "decoder": self-attention
               there; "cross": from the decoder to the encoder, and the alignment of a recurrent decoder), "layer",
               "head";
               "perplexity" without this head, "change" from the intact model and its 95 % "interval", and "bleu", which
               is null unless it was asked for;
               "entropy" of its weights, in nats, and "distance" |i - j|, in subwords: means over real tokens
    maps       a list of sentences: "source" and "target", their tokens as text; under "encoder", "decoder" and "cross"
               the weights as whole per cents, [layer][head][query][key]. The target is the reference, as the decoder
               reads it: it begins with <s>, and row i is where the model looks to predict the token after token i
    order      the words of each source in random order: "perplexity", "change", "interval"; null, as lengths and
               decoding are empty, where nothing is translated
    lengths    a list: "joined" pairs in one line, "pieces" ([from, to], of the source), "sentences", how many of them
               are "longer_than_trained" (null where nobody knows), "perplexity" and "bleu"
    trained    "longest": tokens in the longest source line trained on, or null where the text is not at hand
    decoding   a list: "beam", "alpha", "bleu", its "change" from the run's own search and "interval", and
               "length_ratio", words of the translations for each word of the references
    averaging  a list: the mean of the last "checkpoints" that the run kept, its "perplexity", "change" from the intact
               model, "interval" and "bleu"

Two things can be asked of a head, and they are not the same: where it looks (entropy, distance, maps), and whether the
model would miss it (removal).
"""
