"""Ranked results in, numbers out: defined measures, with intervals over scenes."""

from lookdown.evaluation.evaluation import ClassScores, Evaluation, Measure
from lookdown.evaluation.measures import RelevantRanks, average_precision, hit_rate_at, precision_at, recall_at
from lookdown.evaluation.query_scores import QueryScores
from lookdown.evaluation.retrieval import evaluate

__all__ = [
    "ClassScores",
    "Evaluation",
    "Measure",
    "QueryScores",
    "RelevantRanks",
    "average_precision",
    "evaluate",
    "hit_rate_at",
    "precision_at",
    "recall_at",
]
