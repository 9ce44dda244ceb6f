"""Where pixels come from: sources, cutting, splits, and the one table that the rest reads."""
