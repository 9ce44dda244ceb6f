"""Recipes: TOML into frozen dataclasses, strictly, and back."""

from __future__ import annotations

from lookdown.config.building import build, to_toml
from lookdown.config.recipe import read_recipe
from lookdown.config.schema import AnyFloat

__all__ = ["AnyFloat", "build", "read_recipe", "to_toml"]
