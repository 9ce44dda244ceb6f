"""Embeddings, a metric and a manifest as something that can be searched."""
