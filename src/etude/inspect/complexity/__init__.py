"""Measure Table 1 of the paper: the cost of one layer of each type, and its maximum path length."""
