"""An unlabelled target domain -> pseudo-labels -> a new metric."""

from lookdown.adaptation.adaptation import Adaptation, Method, adapt
from lookdown.adaptation.adaptation_settings import AUTO, AUTO_OF_DIFFERENCES, CPLFPA, AdaptationSettings
from lookdown.adaptation.shards import Shards

__all__ = ["AUTO", "AUTO_OF_DIFFERENCES", "CPLFPA", "Adaptation", "AdaptationSettings", "Method", "Shards", "adapt"]
