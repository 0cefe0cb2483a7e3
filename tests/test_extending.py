"""The plug-ins of ``docs/extending.md`` meet the contracts that what is shipped meets."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from tests.test_docs import blocks

from evenhand.generators.registry import REGISTERED

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


def module_of(page: Path) -> types.ModuleType:
    """Run the blocks as a module of its own: a generator is found by its module when it is read."""
    made = types.ModuleType("plugins")
    sys.modules[made.__name__] = made
    for line, code in blocks(page):
        exec(compile("\n" * line + code, str(page), "exec"), made.__dict__)
    return made


plugins = module_of(PAGE)
OWN = {key: kind for key, kind in REGISTERED.items() if kind.__module__ == plugins.__name__}
for key in OWN:
    del REGISTERED[key]
globals().update({name: kind for name, kind in vars(plugins).items() if name.startswith("Test")})


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only here are the page's generators known."""
    for key, kind in OWN.items():
        monkeypatch.setitem(REGISTERED, key, kind)


def test_the_page_has_a_plug_in_of_every_kind() -> None:
    contracts = {
        base.__name__
        for name, kind in vars(plugins).items()
        if name.startswith("Test")
        for base in kind.__mro__
        if base.__name__.endswith("Contract")
    }
    assert contracts >= {
        "MechanismContract",
        "WinnerContract",
        "GateContract",
        "LearnerContract",
        "TeachersContract",
        "LedgerStoreContract",
        "RunStoreContract",
        "SynthesizerContract",
        "FeatureExtractorContract",
        "PublicGeneratorContract",
    }
