"""Embeddings, a metric and a manifest as something that can be searched."""

from lookdown.gallery.gallery import Gallery
from lookdown.gallery.intake import Cutting
from lookdown.gallery.learning import Learnt
from lookdown.gallery.results import Hit, Results
from lookdown.gallery.stats import Stats
from lookdown.gallery.where import Where

__all__ = ["Cutting", "Gallery", "Hit", "Learnt", "Results", "Stats", "Where"]
