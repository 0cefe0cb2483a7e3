"""What no test seeds hangs on its name alone: the same again, others of another name."""

import os
import random
from pathlib import Path

import numpy as np
import unseeded
from children import in_child

from evenhand._random import as_generator
from evenhand.privacy import DiscreteNoise, FloatNoise
from evenhand.privacy.noise import InversionNoise
from evenhand.teachers import by_unit

SRC = Path(__file__).parents[1] / "src"


def draws(name: str) -> dict[str, list[float]]:
    """Draw at each door."""
    with unseeded.drawn_by(name):
        dealt = by_unit([f"p{i}" for i in range(200)], 7)
        found = {
            "small noise": DiscreteNoise().gaussian(40.0, (8,)),
            "large noise": DiscreteNoise().gaussian(5e6, (8,)),
            "Laplace noise": DiscreteNoise().laplace(40.0, (8,)),
            "words": DiscreteNoise().random_words((8,)),
            "by inversion": InversionNoise().gaussian(40.0, (8,)),
            "floats": FloatNoise().gaussian(1.0, (8,)),
            "keys of a partition": dealt.teacher,
            "random_state=None": as_generator(None).random(8),
            "NumPy's own": np.random.random_sample(8),  # noqa: NPY002 - as old code draws
            "Python's own": np.array([random.random() for _ in range(8)]),
        }
    return {door: values.tolist() for door, values in found.items()}


def test_a_name_draws_the_same_again_and_another_name_draws_others() -> None:
    one, again, other = draws("one"), draws("one"), draws("other")
    for door, drawn in one.items():
        assert drawn == again[door], door
        assert drawn != other[door], door


def test_a_fork_draws_what_the_operating_system_gives() -> None:
    reading, writing = os.pipe()

    def job() -> None:
        os.write(writing, DiscreteNoise().random_words((4,)).tobytes())

    with unseeded.drawn_by("one"):
        os.waitpid(in_child(job), 0)
        ours = DiscreteNoise().random_words((4,)).tobytes()
    assert os.read(reading, 32) != ours


def test_every_door_of_the_package_is_known() -> None:
    # What is written under these keys is read with them: no value hangs on it.
    sealed = {"scratch", "votes_cache"}
    asking = {
        file.stem
        for file in SRC.rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if "secrets.token_bytes(" in line and not line.lstrip().startswith(('"', 'f"'))
    }
    assert asking - sealed == {module.__name__.rpartition(".")[2] for module in unseeded.DOORS}
