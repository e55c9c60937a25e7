"""A study on Weights & Biases: its report written there, and its runs read back. No other report depends on it."""
