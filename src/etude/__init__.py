"""étude: study the Transformer one change at a time."""

__version__ = "0.1.0"
