"""What goes into a gallery: images and scenes are found, read, embedded and added to the table."""
