"""Display configs: `etude show` draws the model of one, `etude diff` compares two."""
