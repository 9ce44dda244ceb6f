"""Embeddings, a metric and a manifest as something that can be searched."""

from lookdown.gallery.gallery import Gallery
from lookdown.gallery.index.sources import Cutting
from lookdown.gallery.learning import MetricUpdate
from lookdown.gallery.results.hit import Hit, Results
from lookdown.gallery.search.filters import Where
from lookdown.gallery.search.request import SearchRequest
from lookdown.gallery.store.snapshot import GalleryStats

__all__ = ["Cutting", "Gallery", "GalleryStats", "Hit", "MetricUpdate", "Results", "SearchRequest", "Where"]
