"""What was measured of a study with layers: tables, log-log plots, and a page of both. Needs no torch."""
