"""One door from a user's ``random_state`` to a Generator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np

    from evenhand.typing import RandomState

LARGEST_SEED: Final = 2**32 - 1
"""The largest that scikit-learn takes, and so the command line and a grid."""


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn ``random_state`` (int, Generator, RandomState or None) into a Generator.

    It seeds splits and models. Privacy noise never comes from here: see ``evenhand.privacy.noise``.
    """
    import numpy as np

    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        # Older scikit-learn code passes these; the legacy stream seeds a new one.
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer | None):
        raise TypeError(
            f"random_state must be an int, a numpy Generator or None, "
            f"got {type(random_state).__name__}."
        )
    if random_state is not None and random_state < 0:
        raise ValueError(f"random_state must be at least 0, got random_state={random_state}.")
    return np.random.default_rng(random_state)
