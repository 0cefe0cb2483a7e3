"""Every registered method on a table so small that one record counts: what audits run over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import Budget
from evenhand.baselines.intervention_points import POINTS
from evenhand.datasets import Schema
from evenhand.fairness import DemographicParity, EqualizedOdds
from evenhand.methods import METHODS, estimators
from evenhand.privacy.noise import WORD, Noise
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL
from evenhand.testing.audit import Case
from evenhand.testing.door import coins
from evenhand.testing.neighbors import EXTREME, Rows, neighbors_of

__all__ = ["BUDGET", "cases", "pictures", "table"]

Settings = dict[str, Any]

BUDGET: Final = Budget(epsilon=10.0, delta=1e-5)
"""So that claims are near mu = 2, where few draws tell a noise from half of it."""

PURE: Final = Budget(epsilon=2.0, delta=1e-5)
"""The same for a release of pure epsilon: no mu is as small that covers its rare events."""

N: Final = 60
_N_PUBLIC: Final = 40
_MARGIN: Final = DemographicParity(margin=0.2)
_DECLARED: Final[Any] = {
    "x": {"bounds": (-3, 3)},
    "z": {"bounds": (-3, 3)},
    "job": ["chef", "clerk", "rare"],
}


def table(n: int = N, seed: int = 0) -> Rows:
    """Return two numbers and a category, a label that follows them, and two groups."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], n, p=[0.6, 0.4])
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n) + 0.5 * (groups == "a"),
            "z": rng.normal(size=n),
            "job": rng.choice(["chef", "clerk"], n),
        }
    )
    rare, extreme = n // 3, 2 * n // 3
    X.loc[rare, "job"] = "rare"
    X.loc[extreme, ["x", "z"]] = EXTREME
    y = np.where(X["x"] + rng.normal(size=n) / 2 > 0.3, "yes", "no")
    return Rows(X=X, y=y, groups=groups, ids=np.arange(n), rare=rare, extreme=extreme)


def pictures(n: int = N, seed: int = 0) -> Rows:
    """Return 8 x 8 pictures of a bar that stands or lies, on the left or on the right."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["lies", "stands"], n)
    groups = rng.choice(["left", "right"], n, p=[0.6, 0.4])
    X = rng.integers(0, 30, (n, 8, 8), dtype=np.uint8)
    for i in range(n):
        at = 4 * int(groups[i] == "right")
        if y[i] == "stands":
            X[i, :, at + 1] += 200
        else:
            X[i, 4, at : at + 3] += 200
    rare, extreme = n // 3, 2 * n // 3
    X[rare], X[extreme] = 0, 255
    return Rows(X=X, y=y, groups=groups, ids=np.arange(n), rare=rare, extreme=extreme)


def cases() -> dict[str, Case]:
    """Return a case for each method that promises privacy, and for its settings that noise sums.

    One that has no case of its own here has one by its record.

    A name is that of the command line, with "images:" before generators of pictures, and a setting
    behind it where a method has several.
    """
    found = [
        *_asking(),
        *_by_gradients(),
        *_set_aside(),
        *_of_groups(),
        *_of_tables(),
        *_of_images(),
    ]
    found += _of_records({case.name.partition(",")[0] for case in found})
    return {case.name: case for case in found}


def _estimator(
    name: str,
    relation: str,
    kind: str,
    *,
    private: bool = False,
    public: bool = True,
    public_groups: bool = False,
    budget: Budget = BUDGET,
    **settings: Any,
) -> Case:
    """Return the case of a registered class; ``private``: it reads their groups."""
    rows, other = table(), table(_N_PUBLIC, seed=1)
    made: Callable[..., Any] = estimators()[kind]

    def fit(rows: Rows, noise: Noise | None, seed: int) -> Any:
        given: dict[str, Any] = {}
        if private:
            given["sensitive_features"] = rows.groups
        if public:
            given["X_public"] = other.X
        if public_groups:
            given["sensitive_features_public"] = other.groups
        model = made(budget, noise=noise, random_state=seed, classes=["no", "yes"], **settings)
        return model.fit(rows.X, rows.y, **given)

    return Case(name=name, fit=fit, rows=rows, relation=relation)


def _asking() -> Iterator[Case]:
    """Those that ask teachers: two records each, so that one decides about votes."""
    of: Settings = {"relation": "replace one", "n_teachers": N // 2}
    yield _estimator("pate", kind="PATEClassifier", **of)
    yield _estimator("pate, labels", kind="PATEClassifier", answers="labels", **of)
    for at in POINTS:
        yield _estimator(
            f"intervention, {at}",
            kind="InterventionClassifier",
            fairness=_MARGIN,
            at=at,
            public_groups=True,
            private=True,
            **of,
        )


def _of_records(named: Collection[str]) -> Iterator[Case]:
    """Those that no other case names, as the records of their methods describe them."""
    for name, spec in METHODS.items():
        if not spec.private or name in named:
            continue
        settings: Settings = dict(spec.fixed)
        if spec.teachers:
            settings["n_teachers"] = N // 2
        if "margin" in spec.needs:
            settings["fairness"] = replace(_MARGIN, reference=spec.reference or "rest")
        yield _estimator(
            name,
            spec.estimator.NEIGHBORS[0],
            spec.estimator.__name__,
            private="margin" in spec.needs and spec.reads_private_groups({}),
            public="X_public" in spec.takes,
            public_groups=spec.public_groups,
            **settings,
        )


def _by_gradients() -> Iterator[Case]:
    """Those of noisy gradients, with every record in every step: no amplification."""
    of: Settings = {"relation": "add or remove one", "n_steps": 20, "batch_size": N, "n_records": N}
    yield _estimator("dpsgd", kind="DPSGDClassifier", **of)
    yield _estimator("dpsgd, margin", kind="DPSGDClassifier", fairness=_MARGIN, private=True, **of)
    yield _estimator("dpsgd, hidden", kind="DPSGDClassifier", hidden=(4,), **of)
    fermi: Settings = {"kind": "DPFERMIClassifier", "private": True, **of}
    yield _estimator("dp-fermi", group_shares={"a": 0.6, "b": 0.4}, **fermi)
    yield _estimator("dp-fermi, noisy shares", group_shares="released", **fermi)
    yield _estimator(
        "dp-post-processing",
        kind="DPPostProcessingClassifier",
        fairness=EqualizedOdds(margin=0.2, reference="pairwise"),
        private=True,
        table_budget=0.1,
        **of,
    )


def _set_aside(budget: Budget = BUDGET) -> Iterator[Case]:
    """Those of noisy gradients, on a table of which they set rows aside themselves."""
    of: Settings = {
        "relation": "add or remove one",
        "budget": budget,
        "public": False,
        "public_fraction": 0.3,
        "schema": Schema.declared(_DECLARED),
        "n_steps": 20,
        "batch_size": N,
        "n_records": N,
    }
    aside = coins(1, N) < 0.3 * WORD
    kinds: dict[str, Settings] = {
        "dpsgd": {"kind": "DPSGDClassifier"},
        "dp-fermi": {"kind": "DPFERMIClassifier", "private": True},
        "dp-post-processing": {
            "kind": "DPPostProcessingClassifier",
            "private": True,
            "table_budget": 0.1,
        },
    }
    for name, settings in kinds.items():
        case = _estimator(f"{name}, public_fraction", **settings, **of)
        open_rows = {
            neighbor.name: "the features of rows set aside are not covered"
            for neighbor in neighbors_of(case.rows)
            if neighbor.removed is not None and aside[neighbor.removed]
        }
        yield replace(case, uncovered=open_rows)


def _of_groups() -> Iterator[Case]:
    """Those that protect the group alone, where all else of a record is public."""
    of: Settings = {"relation": GROUP_LABEL, "private": True, "public": False}
    within = DemographicParity(margin=0.1, reference="overall")
    sf: Settings = {"kind": "SFPATEClassifier", "n_teachers": N // 3, "fairness": within, **of}
    yield _estimator("sf-student", variant="student", **sf)
    yield _estimator("sf-teachers", variant="teachers", pull=1.0, **sf)
    labels: Settings = {**sf, "relation": GROUP_AND_CLASS_LABEL}
    yield _estimator("sf-teachers, labels", variant="teachers", pull=0.0, **labels)
    yield _estimator(
        "randomized-response",
        kind="RandomizedResponseClassifier",
        fairness=_MARGIN,
        budget=PURE,
        **of,
    )
    yield _estimator("pf-ld", kind="PFLDClassifier", fairness=_MARGIN, n_steps=10, **of)


def _of_tables() -> Iterator[Case]:
    from evenhand.generators.registry import generators

    schema = Schema.declared({**_DECLARED, "y": ["no", "yes"], "g": ["a", "b"]})
    small: dict[str, Settings] = {
        "mean-embedding": {"n_frequencies": 10, "n_parts": 5, "n_steps": 3},
        "pate-gan": {"n_teachers": 10, "n_rounds": 3, "batch_size": 8},
        "ron-gauss": {"n_dimensions": 3},
        "ffpdg": {"n_dimensions": 3},
        "dp-wgan": {"n_steps": 5, "batch_size": 16},
    }

    def case(name: str, kind: Any, words: str, schema: Schema | None, **more: Any) -> Case:
        relation = "add or remove one"
        settings = small.get(name, {}) | more

        # Without ids a record's teacher is a secret coin of its position; ids follow the record.
        by_id = name == "pate-gan" and "neighbors" not in settings

        def fit(rows: Rows, noise: Noise | None, seed: int) -> Any:
            made = kind(noise=noise, random_state=seed, **settings)
            frame = rows.X.assign(y=rows.y, g=rows.groups, **({"id": rows.ids} if by_id else {}))
            roles = {"label": "y", "sensitive": "g", "unit": "id" if by_id else None}
            return made.fit(frame, budget=BUDGET, schema=schema, **roles)

        relation = str(settings.get("neighbors", relation))
        rows = table() if schema is not None else table(20 * N)
        # A category that one record alone has is named with probability at most delta / 10.
        tail = {"rare category removed": "within delta: generators/tables/test_released_schema.py"}
        uncovered = {} if schema is not None else tail
        return Case(name=name + words, fit=fit, rows=rows, relation=relation, uncovered=uncovered)

    kept = generators("tables", offered=True)
    for name, kind in kept.items():
        yield case(name, kind, "", schema)
        yield case(name, kind, ", replace one", schema, neighbors="replace one")
    yield case("marginal", kept["marginal"], ", noisy schema", None)


def _of_images() -> Iterator[Case]:
    from evenhand.generators.registry import GENERATORS, generators

    gan: Settings = {"n_teachers": 10, "n_steps": 3, "n_rows": 4, "critic_rows": 8}
    small: dict[str, Settings] = {
        "mean-embedding": {"n_frequencies": 10, "hidden": (8,), "n_steps": 3, "n_samples": 8},
        "dp-wgan": {"n_batches": 5, "n_steps": 3, "n_rows": 4, "critic_rows": 8},
        "g-pate": gan,
        "teacher-gan": gan,
        "gs-wgan": gan,
        "datalens": gan,
    }

    def case(kind: Any, words: str = "", of: Settings | None = None) -> Case:
        settings = small[kind.method] if of is None else of

        def fit(rows: Rows, noise: Noise | None, seed: int) -> Any:
            made = kind(noise=noise, random_state=seed, **settings)
            return made.fit(
                rows.X,
                rows.y,
                sensitive_features=rows.groups,
                budget=BUDGET,
                classes=["lies", "stands"],
                groups=["left", "right"],
            )

        relation = "add or remove one" if kind.method == "mean-embedding" else "replace one"
        return Case(
            name=f"images:{words or kind.method}",
            fit=fit,
            rows=pictures(),
            relation=relation,
        )

    for kind in generators("images", offered=True).values():
        yield case(kind)
    yield case(GENERATORS["images", "gs-wgan-published"], "gs-wgan, in turn", gan)
    yield case(GENERATORS["images", "teacher-gan-strata"], "teacher-gan, strata", gan)
