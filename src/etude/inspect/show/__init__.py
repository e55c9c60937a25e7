"""Configs made visible: `etude show` draws the model of one, `etude diff` sets two side by side."""
