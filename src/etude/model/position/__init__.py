"""Position schemes, the values of `model/position` (section 3.5).

A scheme may act in three places: on the embeddings, on queries and keys, and on the attention scores. The base class
does nothing in each of them; a scheme overrides what it needs. One is built for the encoder and one for the decoder,
each shared by its layers unless it overrides `at_layer`. Attention from decoder to encoder is given `NO_POSITION`, as
source and target share no axis: what is added to the embeddings reaches it, what acts on pairs does not.
"""

from etude.model.position.absolute import Learned, LearnedUnscaled, Sinusoidal, SinusoidalT2T
from etude.model.position.base import NO_POSITION, NoPosition, Position
from etude.model.position.relative import T5, Alibi, PartialRotary, Rotary, RotaryInSomeLayers, Shaw
