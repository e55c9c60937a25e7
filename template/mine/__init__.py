"""Parts of my own: a class here, and a file in conf/ that names it."""
