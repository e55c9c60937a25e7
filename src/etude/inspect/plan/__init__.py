"""What runs will cost, before anything is spent: `etude plan`."""
