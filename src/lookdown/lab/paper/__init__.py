"""One file for each table, figure or claim of the paper that can be run."""
