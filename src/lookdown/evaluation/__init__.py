"""Ranked results in, numbers out: definitions that are written down, with intervals over scenes."""

from lookdown.evaluation.evaluating import evaluate
from lookdown.evaluation.evaluation import ClassScores, Evaluation, Measure
from lookdown.evaluation.hits import Hits
from lookdown.evaluation.query_scores import QueryScores
from lookdown.evaluation.scores import average_precision, hit_rate_at, precision_at, recall_at

__all__ = [
    "ClassScores",
    "Evaluation",
    "Hits",
    "Measure",
    "QueryScores",
    "average_precision",
    "evaluate",
    "hit_rate_at",
    "precision_at",
    "recall_at",
]
