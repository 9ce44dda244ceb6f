"""Every public name explains itself: a docstring, each parameter by name, and an example that runs."""

from __future__ import annotations

import doctest
import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import lookdown

NAMES = [name for name in lookdown.__all__ if not name.startswith("__")]


def documentation(name: str) -> str:
    """Return the docstring of a name; the documentation of a class includes that of its `__init__`."""
    value = getattr(lookdown, name)
    own = value.__doc__ or ""
    made_by_dataclass = own.startswith(f"{name}(")
    constructor = value.__init__.__doc__ or "" if inspect.isclass(value) and "__init__" in vars(value) else ""
    return "" if made_by_dataclass else inspect.cleandoc(own) + "\n" + inspect.cleandoc(constructor)


def parameters(value: Any) -> list[str]:
    """Return what a function, or the constructor of a class, takes by name."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return []
    return [name for name in inspect.signature(value).parameters if not name.startswith("_")]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_documents_every_parameter(name: str) -> None:
    text = documentation(name)
    assert text.strip(), f"{name} has no docstring"
    absent = [parameter for parameter in parameters(getattr(lookdown, name)) if not is_documented(parameter, text)]
    assert not absent, f"the docstring of {name} does not name {', '.join(absent)}"


def is_documented(parameter: str, text: str) -> bool:
    """Whether a line of the docstring begins with the parameter, alone or in a list, or has it in backticks."""
    listed = rf"^ *(\w+, )*{parameter}(, \w+)*:"
    return re.search(listed, text, re.MULTILINE) is not None or f"`{parameter}`" in text


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = documentation(name)
    assert ">>>" in text or "\n\n    " in text, f"{name} has no example, as a doctest or an indented block"
    monkeypatch.chdir(tmp_path)  # an example that writes a file leaves nothing behind
    public = {public_name: getattr(lookdown, public_name) for public_name in lookdown.__all__}
    test = doctest.DocTestParser().get_doctest(text, public, name, None, None)
    report: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)
