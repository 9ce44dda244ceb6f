"""A world of our own: ships and aircraft from above, with their ground, their light and the sensor that sees them."""
