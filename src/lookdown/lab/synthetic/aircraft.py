"""Twenty kinds of aircraft, a row of measures each.

Kinds that differ in one measure only are listed in `ONE_FEATURE`.
"""

from __future__ import annotations

from dataclasses import replace

from lookdown.lab.synthetic.airframe import Aircraft

__all__ = ["AIRCRAFT", "ONE_FEATURE"]

_WIDE = Aircraft(
    name="wide-body twinjet", length=66, span=64, width=6.6, wing_at=0.28, chord=0.27, taper=0.14, sweep=35,
    tail_span=0.34, wing_engines=2, military=False,
)  # fmt: skip
_PROP = Aircraft(
    name="four-propeller transport", length=30, span=41, width=4.8, wing_at=0.33, chord=0.17, taper=0.5, sweep=2,
    tail_span=0.42, tail_sweep=8, wing_engines=4, propellers=True,
)  # fmt: skip
_TANKER = Aircraft(
    name="tanker", length=46, span=41, width=3.6, wing_at=0.27, chord=0.23, taper=0.34, sweep=42, tail_span=0.38,
    wing_engines=4,
)  # fmt: skip
_DELTA = Aircraft(
    name="delta fighter", length=15, span=10, width=1.6, wing_at=0.34, chord=0.58, taper=0.03, sweep=57,
    tail="none", body="pointed",
)  # fmt: skip
_FIGHTER = Aircraft(
    name="single-fin fighter", length=18, span=12.5, width=2.6, wing_at=0.40, chord=0.33, taper=0.25, sweep=42,
    tail_span=0.68, body="pointed",
)  # fmt: skip

AIRCRAFT: tuple[Aircraft, ...] = (
    Aircraft(
        name="narrow-body twinjet", length=38, span=34, width=4.1, wing_at=0.36, chord=0.18, taper=0.28, sweep=24,
        tail_span=0.38, wing_engines=2, military=False,
    ),
    _WIDE,
    replace(_WIDE, name="wide-body quadjet", wing_engines=4),
    Aircraft(
        name="regional jet", length=36, span=24, width=2.9, wing_at=0.47, chord=0.16, taper=0.3, sweep=26, tail="high",
        tail_span=0.34, rear_engines=True, military=False,
    ),
    Aircraft(
        name="business jet", length=17, span=17, width=2.3, wing_at=0.42, chord=0.22, taper=0.3, sweep=16, tail="high",
        tail_span=0.46, rear_engines=True, military=False,
    ),
    Aircraft(
        name="twin-propeller airliner", length=27, span=28, width=2.9, wing_at=0.42, chord=0.09, taper=0.6, sweep=0,
        tail="high", tail_span=0.28, tail_sweep=10, wing_engines=2, propellers=True, military=False,
    ),
    _PROP,
    replace(_PROP, name="two-propeller transport", wing_engines=2),
    Aircraft(
        name="jet transport", length=52, span=52, width=8.2, wing_at=0.31, chord=0.20, taper=0.3, sweep=22,
        tail="high", tail_span=0.44, wing_engines=4,
    ),
    _TANKER,
    replace(_TANKER, name="radar plane", radar_disc=True),
    Aircraft(
        name="heavy bomber", length=46, span=60, width=3.2, wing_at=0.27, chord=0.15, taper=0.5, sweep=37,
        tail_span=0.26, wing_engines=4, pods=2,
    ),
    Aircraft(
        name="flying wing", length=21, span=52, width=8.0, wing_at=0.0, chord=1.0, sweep=34, tail="none", fins=0,
        body="none",
    ),
    Aircraft(
        name="swing-wing bomber", length=45, span=24, width=4.8, wing_at=0.34, chord=0.30, taper=0.2, sweep=65,
        tail_span=0.55, tail_sweep=52, body="pointed",
    ),
    _DELTA,
    replace(_DELTA, name="canard fighter", canards=True),
    _FIGHTER,
    replace(_FIGHTER, name="twin-fin fighter", fins=2),
    Aircraft(
        name="trainer", length=12, span=11.5, width=1.3, wing_at=0.35, chord=0.20, taper=0.6, sweep=3, tail_span=0.4,
        tail_sweep=5, body="pointed",
    ),
    Aircraft(
        name="light aircraft", length=8, span=11.5, width=1.3, wing_at=0.22, chord=0.19, taper=0.9, sweep=0,
        tail_span=0.3, tail_sweep=4, military=False,
    ),
)  # fmt: skip

# Pairs of kinds, and the one thing in which they differ.
ONE_FEATURE: tuple[tuple[str, str, str], ...] = (
    ("wide-body twinjet", "wide-body quadjet", "number of engines"),
    ("four-propeller transport", "two-propeller transport", "number of engines"),
    ("tanker", "radar plane", "radar disc"),
    ("delta fighter", "canard fighter", "canards"),
    ("single-fin fighter", "twin-fin fighter", "number of fins"),
)
