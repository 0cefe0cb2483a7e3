"""Where the networks of generators are trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from marks import FAINT

pytest.importorskip("torch", reason="needs the extra torch")

import torch

from evenhand.generators.registry import GENERATORS
from evenhand.privacy import SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, pictures, table

pytestmark = [pytest.mark.torch, FAINT]
OURS = [key for key in GENERATORS if "torch" in GENERATORS[key].needs]
SMALL = {
    **{"n_teachers": 10, "n_steps": 3, "n_rounds": 2},
    **{"n_rows": 4, "critic_rows": 8, "n_batches": 5, "blocks": (0, 2, 4)},
}


def fitted(key: tuple[str, str], **settings: Any) -> Any:
    kind = GENERATORS[key]
    known = kind.__init__.__annotations__
    small = {name: value for name, value in SMALL.items() if name in known}
    made = kind(**small, random_state=0, noise=SeededNoise(0), **settings)
    store = MemoryStore()
    try:
        if key[0] == "tables":
            return made.fit(table(400), **ROLES, budget=BUDGET, schema=SCHEMA, store=store)
        images, y, side = pictures(300)
        return made.fit(images, y, sensitive_features=side, budget=BUDGET, store=store)
    except ValueError:
        assert store.entries("default") == ()
        raise


@pytest.mark.parametrize("key", OURS, ids="/".join)
def test_a_device_that_is_not_here_is_refused_before_anything_is_spent(key: Any) -> None:
    words = r"device must be one that PyTorch finds here.*'a fast one'"
    with pytest.raises(ValueError, match=words):
        fitted(key, device="a fast one")


@pytest.mark.parametrize("key", OURS, ids="/".join)
def test_a_saved_generator_does_not_name_the_device_that_it_was_trained_on(key: Any) -> None:
    assert "device" not in GENERATORS[key](device="cuda").settings()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("key", OURS, ids="/".join)
def test_what_is_learnt_on_another_device_is_drawn_on_the_processor(key: Any) -> None:
    made = fitted(key, device="cuda").sample(8, balance=(), random_state=0)
    if key[0] == "images":
        assert np.isfinite(made.images).all()
    assert len(made) == 8
