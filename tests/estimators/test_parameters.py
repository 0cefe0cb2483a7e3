"""Constructor arguments come back from JSON as they were, and nothing else comes with them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import Budget, DemographicParity
from evenhand._stored import STORED
from evenhand.datasets import Schema
from evenhand.estimators.parameters import NotPlain, decode, encode
from evenhand.privacy import ConfidentGNMax, DiscreteNoise, GNMax, NoisyHistogram, SeededNoise
from evenhand.privacy.noise import InversionNoise
from evenhand.teachers import LogisticTeachers, MLPTeachers, SklearnTeachers

VALUES: list[Any] = [
    None,
    True,
    3,
    0.1,
    "sound",
    ["no", "yes"],
    ("a", 1),
    Budget(epsilon=3.0, delta=1e-5),
    DemographicParity(margin=0.05, reference="pairwise"),
    GNMax(sigma=40.0),
    ConfidentGNMax(threshold=150.0, sigma_check=100.0, sigma=40.0),
    NoisyHistogram(sigma=9.0, n_classes=3),
    Schema.declared({"age": {"kind": "numeric", "bounds": [0, 100]}, "job": ["cook", "nurse"]}),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_equal(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        DiscreteNoise(),
        InversionNoise(),
        SeededNoise(5),
        LogisticTeachers(C=3.0),
        MLPTeachers(hidden=(8,), epochs=2),
    ],
    ids=repr,
)
def test_an_object_comes_back_with_its_arguments(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
    assert repr(back) == repr(value)


def test_arrays_of_numbers_become_lists() -> None:
    assert decode(encode(np.array([1, 2]))) == [1, 2]


@pytest.mark.parametrize(
    "value",
    [DecisionTreeClassifier(), SklearnTeachers(DecisionTreeClassifier()), object(), {"a": 1}],
    ids=["tree", "teachers of trees", "object", "dict"],
)
def test_other_types_are_not_plain(value: Any) -> None:
    with pytest.raises(NotPlain, match="is not kept as JSON"):
        encode(value)


def test_only_our_own_types_are_built() -> None:
    others = {kind for kind in STORED.values() if not kind.__module__.startswith("evenhand.")}
    assert others == {LogisticRegression, MLPClassifier}  # of scikit-learn, made of plain numbers
    with pytest.raises(KeyError, match="Popen"):
        decode({"type": "Popen", "arguments": {}})


@pytest.mark.slow
def test_whoever_loads_a_model_knows_every_type_that_says_it_may_be_stored() -> None:
    marked = re.compile(r"^@stored\n(?:@.*\n)*class (\w+)", re.MULTILINE)
    source = Path(evenhand.__file__).parent.rglob("*.py")
    said = {name for file in source for name in marked.findall(file.read_text(encoding="utf-8"))}
    assert {"Budget", "GNMax", "LogisticTeachers", "Schema", "NetworkStudent"} <= said
    code = "from evenhand.methods import estimators; estimators(); " + (
        "from evenhand._stored import STORED; print(*STORED)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said <= set(done.stdout.split())
