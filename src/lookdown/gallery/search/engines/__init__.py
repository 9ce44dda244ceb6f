"""Ways to search vectors, one file each."""
