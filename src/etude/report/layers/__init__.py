"""Reports on the measured costs of single layers: tables, log-log plots, and an HTML page of both. Needs no torch."""
