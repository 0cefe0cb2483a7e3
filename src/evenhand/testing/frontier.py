"""Made-up runs with the shape of real ones, for tests of what is built on runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from evenhand.fairness import FairnessKind
from evenhand.frontier import Run
from evenhand.frontier.run import Setting
from evenhand.privacy import Guarantee
from evenhand.privacy.guarantee import no_guarantee

MADE_UP: Final = "made-up"
"""Name of the data set that such runs carry, so that nobody takes one for a measurement."""

KINDS: Final = {
    "fairpate": FairnessKind.WEIGHTS,
    "pate": FairnessKind.NONE,
    "dpsgd": FairnessKind.THRESHOLDS,
    "reject-option": FairnessKind.REJECT_OPTION,
    "non-private": FairnessKind.NONE,
}


def synthetic_runs(
    n_settings: int,
    *,
    n_seeds: int = 1,
    methods: Sequence[str] = tuple(KINDS),
    groups: Sequence[str] = ("women", "men"),
    seed: int = 0,
) -> list[Run]:
    """Return runs that a formula made up: nothing was trained, and nothing measured.

    Error falls with epsilon, a small gap costs accuracy, a reject option trades coverage for both,
    and "non-private" has no bound. Every value is drawn from ``seed``.

    Parameters
    ----------
    n_settings : int
        Settings over all methods, which take turns.
    n_seeds : int
        Repetitions of each.
    methods : sequence of str
        Names; one that is not in ``KINDS`` behaves as "fairpate" does.
    groups : sequence of str
    seed : int

    Examples
    --------
    >>> runs = synthetic_runs(3, n_seeds=2)
    >>> len(runs), runs[0].setting.data, runs[0].setting.method
    (6, 'made-up', 'fairpate')
    """
    rng = np.random.default_rng(seed)
    return [
        run
        for at in range(n_settings)
        for run in _repetitions(at, methods[at % len(methods)], n_seeds, groups, rng)
    ]


def _repetitions(
    at: int, method: str, n_seeds: int, groups: Sequence[str], rng: np.random.Generator
) -> Iterator[Run]:
    bounded = method != "non-private"
    epsilon = float(f"{math.exp(rng.uniform(math.log(0.3), math.log(10))):.3g}")
    margin = float(f"{rng.uniform(0.005, 0.2):.3f}")
    teachers = int(rng.choice([50, 100, 200, 300]))
    chooses = method == "reject-option"
    coverage = float(rng.uniform(0.6, 1.0)) if chooses else 1.0
    noise = 0.0 if not bounded else 0.06 / epsilon**0.7
    base = 0.15 + noise + 0.22 * (0.2 - margin) ** 1.5 - 0.12 * (1 - coverage)
    arguments = {"margin": margin, "n_teachers": teachers, "number": at}
    if bounded:
        arguments["epsilon"] = epsilon
    for repetition in range(n_seeds):
        error = _unit(base + rng.normal(0, 0.006))
        gap = _unit(margin * rng.uniform(0.7, 1.15) + rng.normal(0, 0.004))
        yield Run(
            setting=Setting(
                data=MADE_UP,
                fingerprint=MADE_UP,
                method=method,
                arguments=arguments,
                seed=repetition,
            ),
            epsilon=epsilon if bounded else math.inf,
            delta=1e-5,
            error=error,
            gap=gap,
            coverage=coverage,
            error_interval=(_unit(error - 0.008), _unit(error + 0.008)),
            gap_interval=(_unit(gap - 0.012), _unit(gap + 0.012)),
            mu_squared=None,
            fairness_kind=KINDS.get(method, FairnessKind.WEIGHTS),
            groups=tuple(
                {
                    "name": name,
                    "rows": 2000 + 900 * k,
                    "error": _unit(error + (-1) ** k * 0.01),
                    "selection_rate": _unit(0.3 + (-1) ** k * gap / 2),
                    "coverage": coverage,
                }
                for k, name in enumerate(groups)
            ),
            guarantee=_claim(epsilon, bounded).to_dict(),
            command=" ".join(
                ["evenhand train PRIVATE.csv --public PUBLIC.csv", f"--method {method}"]
                + [f"--{name.replace('_', '-')} {value}" for name, value in arguments.items()]
                + [f"--seed {repetition}"]
            ),
            measured_on="private holdout, not covered",
            seconds=1.0,
        )


def _claim(epsilon: float, bounded: bool) -> Guarantee:
    if not bounded:
        return no_guarantee("the model was trained without noise")
    return Guarantee(
        epsilon=epsilon,
        delta=1e-5,
        unit="record",
        neighbors="replace one",
        noise="exact discrete noise (OpenDP)",
        accounting="exact Gaussian DP accounting",
        public=("the unlabelled rows with their groups", "all settings"),
        not_covered=("the choice of settings", "measurements on private test rows"),
    )


def _unit(value: float) -> float:
    return min(max(float(value), 0.0), 1.0)
