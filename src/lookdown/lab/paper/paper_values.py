"""The figures that the paper prints, in percent: mAP, R@50, P@50. Its tables are named by their numbers."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ABLATION", "BASE_CLUSTERS", "CLUSTERS", "COMPARISON", "RUNNING_TIME", "Scores", "Timing"]


class Scores(NamedTuple):
    """A row of a table of the paper."""

    mean_average_precision: float
    recall: float
    precision: float


class Timing(NamedTuple):
    """A row of Table VIII, in seconds and percent."""

    clustering: float
    differences: float
    updating: float
    total: float
    mean_average_precision: float


# Rows: stage 2 on cosine (or, in III and IV, the identity loss alone), GLRTML-TR, + GLRTML-TE, + CPLFPA.
ABLATION: dict[int, tuple[Scores, Scores, Scores, Scores]] = {
    1: (Scores(77.6, 73.9, 58.6), Scores(80.2, 75.8, 60.3), Scores(81.1, 76.6, 60.9), Scores(80.9, 76.8, 60.9)),
    2: (Scores(80.7, 59.4, 76.9), Scores(81.9, 60.0, 77.5), Scores(82.1, 60.3, 77.7), Scores(82.4, 60.0, 77.5)),
    3: (Scores(51.2, 31.9, 60.3), Scores(48.9, 31.7, 59.0), Scores(44.9, 28.1, 56.5), Scores(53.3, 33.3, 61.0)),
    4: (Scores(65.4, 10.4, 77.3), Scores(67.9, 10.3, 78.3), Scores(66.1, 10.3, 77.7), Scores(69.4, 10.6, 78.8)),
    6: (Scores(80.7, 76.7, 59.1), Scores(81.8, 78.2, 60.5), Scores(81.9, 77.9, 60.8), Scores(82.1, 78.2, 60.9)),
    7: (Scores(63.4, 31.9, 66.1), Scores(67.9, 36.9, 68.8), Scores(63.4, 32.6, 66.5), Scores(71.6, 36.2, 69.0)),
}

# Classes that are searched, and one for the background (Table V underlines them).
BASE_CLUSTERS = {"CBRSOR-FGSRSI": 17, "CBRSOR-MAR": 21, "UDA-CBRSOR-FGSRSI": 8, "UDA-CBRSOR-MAR": 9}

CLUSTERS: dict[str, tuple[float, ...]] = {  # Table V: mAP for the base number of clusters less 3 to plus 3
    "CBRSOR-FGSRSI": (80.1, 80.7, 80.2, 80.9, 80.7, 81.0, 81.0),
    "CBRSOR-MAR": (80.1, 81.7, 82.1, 82.4, 82.6, 82.7, 82.7),
    "UDA-CBRSOR-FGSRSI": (49.0, 53.2, 53.4, 53.3, 54.5, 57.0, 58.1),
    "UDA-CBRSOR-MAR": (69.7, 69.0, 70.1, 69.4, 69.4, 68.9, 69.3),
}

RUNNING_TIME: dict[int, Timing] = {  # Table VIII, by the number of pairs of each kind
    20_000: Timing(2.4, 1.4, 2.5, 6.3, 53.3),
    30_000: Timing(2.4, 1.7, 3.6, 7.7, 55.3),
    40_000: Timing(2.4, 2.1, 3.9, 8.4, 55.2),
}

# Tables IX to XII; `ours` is with the base number of clusters, `ours, best` with the other number that the paper shows.
COMPARISON: dict[int, dict[str, Scores]] = {
    9: {
        "identity": Scores(77.3, 70.6, 57.5),
        "sphere": Scores(75.4, 72.0, 57.7),
        "triplet": Scores(76.4, 72.3, 57.7),
        "lifted": Scores(79.4, 76.0, 60.4),
        "instance": Scores(75.1, 71.5, 58.1),
        "contrastive": Scores(78.1, 74.2, 59.3),
        "circle": Scores(73.3, 67.4, 57.1),
        "sp": Scores(77.6, 74.6, 58.7),
        "uce": Scores(80.9, 76.4, 60.0),
        "ccl": Scores(75.2, 72.1, 56.4),
        "ours": Scores(80.9, 76.8, 60.9),
        "ours, best": Scores(81.0, 77.3, 61.0),
    },
    10: {
        "identity": Scores(81.6, 60.0, 77.2),
        "sphere": Scores(74.5, 54.0, 72.3),
        "triplet": Scores(78.5, 59.2, 76.8),
        "lifted": Scores(79.5, 58.9, 76.2),
        "instance": Scores(78.3, 57.3, 75.3),
        "contrastive": Scores(78.7, 57.0, 76.0),
        "circle": Scores(81.9, 59.4, 78.3),
        "sp": Scores(81.1, 59.8, 76.9),
        "uce": Scores(80.2, 59.5, 76.1),
        "ccl": Scores(75.2, 60.3, 76.5),
        "ours": Scores(82.4, 60.0, 77.5),
        "ours, best": Scores(82.7, 60.1, 77.6),
    },
    11: {
        "identity": Scores(51.2, 31.9, 60.3),
        "sphere": Scores(49.1, 32.3, 61.3),
        "triplet": Scores(31.4, 22.3, 44.3),
        "lifted": Scores(47.2, 27.4, 56.1),
        "instance": Scores(47.5, 29.7, 58.7),
        "contrastive": Scores(48.4, 26.0, 55.8),
        "circle": Scores(53.6, 27.8, 60.7),
        "sp": Scores(47.4, 29.9, 58.2),
        "uce": Scores(44.7, 29.8, 54.9),
        "ccl": Scores(48.0, 28.1, 57.5),
        "ours": Scores(53.3, 33.3, 61.0),
        "ours, best": Scores(58.1, 33.0, 62.3),
    },
    12: {
        "identity": Scores(65.4, 10.4, 77.3),
        "sphere": Scores(67.4, 10.0, 76.2),
        "triplet": Scores(60.7, 9.3, 70.7),
        "lifted": Scores(60.6, 9.8, 73.2),
        "instance": Scores(67.4, 10.3, 77.8),
        "contrastive": Scores(63.1, 9.8, 73.7),
        "circle": Scores(66.9, 10.4, 78.5),
        "sp": Scores(69.4, 10.4, 79.4),
        "uce": Scores(62.4, 10.0, 74.8),
        "ccl": Scores(68.0, 10.5, 79.3),
        "ours": Scores(69.4, 10.0, 77.0),
        "ours, best": Scores(69.4, 10.6, 78.8),
    },
}
