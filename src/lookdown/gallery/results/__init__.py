"""What a search returns: hits, and one file an output format."""
