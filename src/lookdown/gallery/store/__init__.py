"""What a gallery keeps on disk: its folder, the table of chips, and its metrics."""
