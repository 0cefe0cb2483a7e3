"""The shape of the code keeps what ``docs/architecture.md`` says of it; ``house.py`` counts."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

MOST = {
    "aggregator": 5,
    "notion": 4,
    "generator of tables": 2,
    "generator of pictures": 2,
    "data set": 2,
    "picture backbone": 2,
    "method": 5,
}
"""Files of the package that name a built-in part of each kind, beside the one that defines it."""


@pytest.fixture(scope="module")
def counting() -> Any:
    file = Path(__file__).parents[1] / "benchmarks" / "house.py"
    spec = importlib.util.spec_from_file_location("house", file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["house"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def house(counting: Any) -> Any:
    return counting.House.as_it_stands()


@pytest.mark.parametrize("kind", MOST)
def test_a_part_is_named_in_few_files_beside_its_own(house: Any, kind: str) -> None:
    found = house.naming(kind)
    assert found
    assert len(found) <= MOST[kind], found


def test_every_kind_is_counted(counting: Any) -> None:
    assert counting.EXAMPLES.keys() == MOST.keys()


def test_names_in_code_count_and_names_in_words_do_not(counting: Any) -> None:
    texts = {
        "evenhand.own": "class LNMax:\n    pass\n",
        "evenhand.user": "from evenhand.own import LNMax\n",
        "evenhand.table": 'WORDS = {"LNMax": "Laplace"}\n',
        "evenhand.longer": "class LNMaxPlus:\n    pass\n",
        "evenhand.words": '"""LNMax is told of here."""  # LNMax\n',
    }
    modules = {
        name: counting.Module(name=name, text=text, is_package=False)
        for name, text in texts.items()
    }
    small = counting.House(commit="made up", modules=modules, below={})
    assert small.naming("aggregator") == ["evenhand.table", "evenhand.user"]
    assert small.naming("notion") is None


def test_public_names_are_few_and_no_command_is_long(house: Any) -> None:
    faces = (module for module in house.modules.values() if module.is_package)
    assert len({name for face in faces for name in face.public}) <= 150
    assert house.long_functions() == []
