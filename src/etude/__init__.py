"""étude: study the Transformer one change at a time."""

__version__ = "1.0.0"
