"""Dropout (section 5.4)."""

from torch import nn

Dropout = nn.Dropout
