"""An unlabelled target domain -> pseudo-labels -> a new metric."""

from lookdown.adaptation.adapting import Adaptation, adapt
from lookdown.adaptation.settings import AUTO, CPLFPA, Settings
from lookdown.adaptation.shards import Shards

__all__ = ["AUTO", "CPLFPA", "Adaptation", "Settings", "Shards", "adapt"]
