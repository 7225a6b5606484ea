"""A command of cells: what is checked before the first, the jobs it makes, what its processes share, what it prints."""
