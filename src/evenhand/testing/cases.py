"""Every registered method on a table so small that one record counts: what audits run over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import Budget
from evenhand.baselines.intervention_points import POINTS
from evenhand.datasets import Schema
from evenhand.estimators.assessment import assess
from evenhand.estimators.drift import DriftCheck
from evenhand.estimators.spec import MethodSpec
from evenhand.estimators.synthetic_rows import SyntheticRows
from evenhand.fairness import DemographicParity, EqualizedOdds
from evenhand.fairness.notions import notion_named
from evenhand.generators.images.public_generator import PublicPictures
from evenhand.generators.registry import GENERATORS, generators
from evenhand.learners.nets.architectures import Dense
from evenhand.methods import METHODS
from evenhand.privacy.noise import WORD, Noise
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL
from evenhand.testing.audit import Case
from evenhand.testing.door import coins
from evenhand.testing.neighbors import EXTREME, Rows, neighbors_of

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


def _pool() -> PublicPictures:
    """Return public pictures like the private ones."""
    public = pictures(_N_PUBLIC, seed=1)
    return PublicPictures(public.X, public.y, made_of="bars that a program draws")


SMALL: Final[Settings] = {
    "n_steps": 20,
    "batch_size": N,
    "n_records": N,
    "n_teachers": N // 2,
    "table_budget": 0.1,
}
"""What makes a classifier small, where its constructor takes it: every record in every step, so
that no amplification is claimed; two records a teacher, so that one decides about votes."""

VARIANTS: Final[Mapping[str, Mapping[str, Settings]]] = {
    "pate": {"": {}, "labels": {"answers": "labels"}},
    "intervention": {at: {"at": at} for at in POINTS},
    "dpsgd": {
        "": {},
        "margin": {"fairness": _MARGIN},
        "hidden": {"hidden": (4,)},
        "curves": {"degree": 2},
        "counts": {"score_counts": True},
        "architecture": {"fairness": _MARGIN, "architecture": Dense(hidden=(4,))},
    },
    "dp-fermi": {
        "": {"group_shares": {"a": 0.6, "b": 0.4}},
        "noisy shares": {"group_shares": "released"},
        "architecture": {
            "group_shares": {"a": 0.6, "b": 0.4},
            "architecture": Dense(hidden=(4,)),
        },
    },
    "dp-post-processing": {"": {"fairness": EqualizedOdds(margin=0.2, reference="pairwise")}},
    "dp-decoupled": {"": {"fairness": DemographicParity(margin=0.2, reference="pairwise")}},
    "dp2dp": {
        "": {
            "fairness": DemographicParity(margin=0.2, reference="pairwise"),
            "n_rule_steps": 5,
        }
    },
    "dp-barycenter": {"": {"fairness": DemographicParity(margin=0.2, reference="pairwise")}},
    "fairdp": {
        "": {"fairness": DemographicParity(margin=0.2, reference="pairwise")},
        "hidden": {
            "fairness": EqualizedOdds(margin=0.2, reference="pairwise"),
            "hidden": (4,),
        },
    },
    "dp-ebm": {
        "": {"n_rounds": 4, "max_bins": 4},
        "labels": {"n_rounds": 4, "max_bins": 4, "residuals": "label"},
    },
    "sf-teachers": {
        "": {"pull": 1.0},
        "labels": {"pull": 0.0, "relation": GROUP_AND_CLASS_LABEL},
    },
    "randomized-response": {"": {"budget": PURE}},
}
"""Settings that noise sums of their own, by method and by the words behind its name. A method that
is not here is audited as its record describes it."""


def cases() -> dict[str, Case]:
    """Return a case for each method that promises privacy, and for its settings that noise sums.

    What a case is fitted on, and which neighbors its claim is about, follow from the record of the
    method or the constructor of the generator: whoever registers one is audited. A name is that of
    the command line, with "images:" before generators of pictures, and a setting behind it where a
    method has several.
    """
    found = [
        *_of_classifiers(),
        *_set_aside(),
        _assessment(),
        *_drawn_rows(),
        _drift(),
        *_of_tables(),
        _two_tables(),
        *_of_images(),
    ]
    return {case.name: case for case in found}


def _of_classifiers() -> Iterator[Case]:
    for name, spec in METHODS.items():
        for words, settings in VARIANTS.get(name, {"": {}}).items() if _promises(spec) else ():
            yield _classifier(spec, f"{name}, {words}" if words else name, **settings)


def _promises(spec: MethodSpec) -> bool:
    """Whether there is a claim to try; one that is known not to hold is none."""
    return spec.private and spec.claim_holds


def _set_aside(budget: Budget = BUDGET) -> Iterator[Case]:
    """Those of noisy gradients, on a table of which they set rows aside themselves."""
    aside = coins(1, N) < 0.3 * WORD
    for name, spec in METHODS.items():
        if not spec.private or spec.teachers or "public_fraction" not in spec.reads:
            continue
        case = _classifier(
            spec,
            f"{name}, public_fraction",
            budget=budget,
            public_fraction=0.3,
            schema=Schema.declared(_DECLARED),
        )
        open_rows = {
            neighbor.name: "the features of rows set aside are not covered"
            for neighbor in neighbors_of(case.rows)
            if neighbor.removed is not None and aside[neighbor.removed]
        }
        yield replace(case, uncovered=open_rows)


def _drawn_rows() -> Iterator[Case]:
    """Those of teachers without public rows: counts and answers as one mechanism."""
    for name, spec in METHODS.items():
        if not _promises(spec) or "public" not in spec.reads or not spec.teachers:
            continue
        yield _classifier(
            spec,
            f"{name}, drawn rows",
            public=SyntheticRows(n_rows=_N_PUBLIC, share=0.5),
            schema=Schema.declared(_DECLARED),
            relation="add or remove one",
        )
    yield _classifier(
        METHODS["fair-shares"],
        "fair-shares, drawn rows, replace one",
        public=SyntheticRows(n_rows=_N_PUBLIC, share=0.5),
        schema=Schema.declared(_DECLARED),
        neighbors="replace one",
    )
    for name in ("pate", "fairpate", "fair-shares"):
        yield _classifier(
            METHODS[name],
            f"{name}, public rows and counts",
            public=SyntheticRows(share=0.5),
            public_rows=True,
            relation="add or remove one",
        )
    case = _classifier(
        METHODS["fair-shares"],
        "fair-shares, drawn rows, noisy schema",
        public=SyntheticRows(n_rows=_N_PUBLIC, share=0.5),
        n_teachers=N,
        relation="add or remove one",
    )
    yield replace(case, rows=table(20 * N), uncovered=_NAMED)


def _drift() -> Case:
    """Return teachers whose public rows are compared with the private ones, groups included."""
    return _classifier(
        METHODS["fair-shares"],
        "fair-shares, drift check",
        check_drift=DriftCheck(share=0.5),
        schema=Schema.declared(_DECLARED),
    )


def _classifier(
    spec: MethodSpec,
    name: str,
    *,
    budget: Budget = BUDGET,
    relation: str = "",
    public_rows: bool | None = None,
    **settings: Any,
) -> Case:
    """Return the case of a method; the relation is that of its record, if no other is named.

    ``public_rows`` says whether it is given some. Default: if it takes them, and makes none itself.
    """
    rows, other = table(), table(_N_PUBLIC, seed=1)
    takes = signature(spec.estimator).parameters
    settings = {k: v for k, v in SMALL.items() if k in takes} | dict(spec.fixed) | settings
    if spec.margin == "needed" and "fairness" not in settings:
        reference = spec.reference or "rest"
        settings["fairness"] = notion_named(next(iter(spec.notions))).of(
            margin=0.2, reference=reference
        )
    by_group = bool(spec.private_groups) and ("fairness" in settings or spec.margin == "weight")
    by_group |= bool({"public", "check_drift"} & set(settings)) and bool(spec.public_groups)
    by_group |= bool(settings.get("score_counts"))
    public = public_rows
    if public is None:
        public = "X_public" in spec.takes and not {"public", "public_fraction"} & set(settings)

    def fit(rows: Rows, noise: Noise | None, seed: int) -> Any:
        given: dict[str, Any] = {}
        if by_group:
            given["sensitive_features"] = rows.groups
        if public:
            given["X_public"] = other.X
        if public and spec.public_groups and spec.teachers:
            given["sensitive_features_public"] = other.groups
        model = spec.estimator(
            budget=budget, noise=noise, random_state=seed, classes=["no", "yes"], **settings
        )
        return model.fit(rows.X, rows.y, **given)

    return Case(name=name, fit=fit, rows=rows, relation=relation or spec.estimator.NEIGHBORS[0])


def _assessment() -> Case:
    """Return the noisy table of decisions that `evenhand assess` releases."""

    def fit(rows: Rows, noise: Noise | None, seed: int) -> Any:
        return assess(
            np.where(rows.X["x"] > 0, "yes", "no").tolist(),
            {"g": rows.groups.tolist()},
            epsilon=1.0,
            truth=list(rows.y),
            classes=["no", "yes"],
            values={"g": ["a", "b"]},
            noise=noise,
        )

    relation = "add or remove one"
    return Case(name="assess", fit=fit, rows=table(), relation=relation, more_runs=5)


SMALL_TABLES: Final[Settings] = {
    "n_frequencies": 10,
    "n_parts": 5,
    "n_steps": 3,
    "n_teachers": 10,
    "n_rounds": 3,
    "batch_size": 8,
    "n_dimensions": 3,
}
SMALL_IMAGES: Final[Settings] = {
    "n_frequencies": 10,
    "hidden": (8,),
    "blocks": (0,),
    "n_steps": 3,
    "n_samples": 8,
    "n_teachers": 10,
    "n_batches": 5,
    "n_rows": 4,
    "critic_rows": 8,
    "sampling_rate": 1.0,
    "public": _pool(),
    "n_candidates": 8,
    "n_iterations": 3,
    "n_kept": 4,
}
"""What makes a generator small, where its constructor takes it."""


_NAMED: Final = dict.fromkeys(
    ("rare category removed", "rare category taken"),
    "within delta: generators/tables/test_released_schema.py",
)
"""A category that one record alone has is named with probability at most delta / 10."""


def _of_tables() -> Iterator[Case]:
    schema = Schema.declared({**_DECLARED, "y": ["no", "yes"], "g": ["a", "b"]})

    def case(
        name: str,
        kind: Any,
        words: str,
        schema: Schema | None,
        *,
        amounts: bool = False,
        **more: Any,
    ) -> Case:
        settings, relation = _settings_of(kind, SMALL_TABLES, more)
        # Without ids a record's teacher is a secret coin of its position; ids follow the record.
        by_id = "n_teachers" in settings and "neighbors" not in settings

        def fit(rows: Rows, noise: Noise | None, seed: int) -> Any:
            made = kind(noise=noise, random_state=seed, **settings)
            frame = rows.X.assign(y=rows.y, g=rows.groups, **({"id": rows.ids} if by_id else {}))
            if amounts:  # of which each is somebody else's too: one that is not is as rare as a
                frame["x"] = 1000.0 * frame["x"].clip(-2, 2).round()  # category of one record
            roles = {"label": "y", "sensitive": "g", "unit": "id" if by_id else None}
            return made.fit(frame, budget=BUDGET, schema=schema, **roles)

        rows = table() if schema is not None else table(20 * N)
        uncovered = {} if schema is not None else _NAMED
        return Case(name=name + words, fit=fit, rows=rows, relation=relation, uncovered=uncovered)

    kept = generators("tables", offered=True)
    for name, kind in kept.items():
        yield case(name, kind, "", schema)
        yield case(name, kind, ", replace one", schema, neighbors="replace one")
    yield case("marginal", kept["marginal"], ", noisy schema", None)
    yield case("marginal", kept["marginal"], ", single numbers", None, amounts=True)


def _two_tables() -> Case:
    """Return persons with up to three visits, of which two are read; of two both are alike."""
    kind: Any = GENERATORS["two tables", "two-table"]
    seen = Schema.declared({"pain": {"bounds": (-3, 3)}, "drug": _DECLARED["job"]})
    schema = Schema.declared({**_DECLARED, "y": ["no", "yes"], "g": ["a", "b"]})

    def fit(rows: Rows, noise: Noise | None, seed: int) -> Any:
        persons = rows.X.assign(y=rows.y, g=rows.groups, id=rows.ids)
        visits = persons[["id", "x", "job"]].set_axis(["id", "pain", "drug"], axis=1)
        visits = visits.loc[visits.index.repeat(rows.ids % 4)]
        third = visits.groupby("id").cumcount() == 2
        return kind(noise=noise, random_state=seed).fit(
            persons,
            visits.assign(pain=visits["pain"].mask(third, -visits["pain"])),
            key="id",
            label="y",
            sensitive="g",
            budget=BUDGET,
            most=2,
            schema=schema,
            visits_schema=seen,
        )

    return Case(name="two-table", fit=fit, rows=table(), relation="add or remove one")


def _of_images() -> Iterator[Case]:
    def case(name: str, kind: Any, **more: Any) -> Case:
        settings, relation = _settings_of(kind, SMALL_IMAGES, more)

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

        return Case(name=f"images:{name}", fit=fit, rows=pictures(), relation=relation)

    for name, kind in generators("images", offered=True).items():
        yield case(name, kind)
        if "mirrored" in signature(kind).parameters:
            yield case(f"{name}, mirrored", kind, mirrored=True)
    yield case("gs-wgan, in turn", GENERATORS["images", "gs-wgan-published"])
    yield case("teacher-gan, strata", GENERATORS["images", "teacher-gan-strata"])


def _settings_of(kind: Any, small: Settings, more: Settings) -> tuple[Settings, str]:
    """Return what a generator is made of, and the neighbors that its claim is then about."""
    takes = signature(kind).parameters
    settings = {name: value for name, value in small.items() if name in takes} | more
    # Without the choice records are dealt by their position among a public number of them.
    by_default = takes["neighbors"].default if "neighbors" in takes else "replace one"
    return settings, str(settings.get("neighbors", by_default))
