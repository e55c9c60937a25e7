"""Estimate the cost of runs before they start: `etude plan`."""
