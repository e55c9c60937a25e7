"""Table 1 of the paper, measured: what one layer of each kind costs, and how far apart it leaves two positions."""
