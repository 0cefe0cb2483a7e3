"""Private rows that were passed as public: refused; samples of one population: not."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    EqualizedOdds,
    FairPATEClassifier,
    FairSharesClassifier,
)
from evenhand.baselines import NonPrivateClassifier
from evenhand.datasets import Dataset
from evenhand.estimators import PrivateRowsAsPublic, allow_shared_rows
from evenhand.estimators.shared_rows import passed_as_public
from evenhand.privacy import SeededNoise

from .conftest import Parts

REFUSED = "was the private table, or a part of it, passed as public"


def table(n: int, seed: int, kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    if kind == "numbers":
        return pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y"], n)})
    if kind == "binary":  # 32 different rows
        return pd.DataFrame(rng.integers(0, 2, (n, 5)), columns=list("abcde"))
    if kind == "rare":  # most rows are seen once, some very often
        return pd.DataFrame({"a": rng.zipf(1.6, n) % 10**6, "b": rng.zipf(1.6, n) % 10**6})
    return pd.DataFrame(  # a few thousand different rows, as in surveys
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(list("abcdefgh"), n),
            "sex": rng.choice([0, 1], n),
        }
    )


KINDS = ("numbers", "binary", "rare", "survey")


@pytest.mark.parametrize("sizes", [(2000, 500), (500, 2000), (300, 60), (4000, 4000)])
@pytest.mark.parametrize("kind", KINDS)
def test_two_samples_of_one_population_pass(kind: str, sizes: tuple[int, int]) -> None:
    # FALSE_ALARM: 4 standard deviations, and .05 besides, which is .8 more at 60 public rows and
    # far more at others: about 8e-7 per pair of tables at 60, below 1e-4 for all pairs here.
    for seed in range(20):
        both = table(sum(sizes), seed, kind)
        assert not passed_as_public(both[: sizes[0]], both[sizes[0] :]), (kind, sizes, seed)


def copies(private: pd.DataFrame, fresh: pd.DataFrame) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    a_fifth = private.iloc[rng.permutation(len(private))[: len(private) // 5]]
    return {
        "the same object": private,
        "a copy": private.copy(),
        "shuffled": private.iloc[rng.permutation(len(private))],
        "a fifth of it": a_fifth,
        "a fifth as other dtypes": a_fifth.astype(
            dict.fromkeys(a_fifth.select_dtypes("number"), float)
        ),
        "with a column less": private.iloc[:, :-1],
        "one row in six": pd.concat([a_fifth, fresh]).sample(frac=1.0, random_state=0),
    }


NOTICED = [
    (kind, how)
    for kind in ("numbers", "rare")
    for how in copies(table(50, 0, "numbers"), table(5, 1, "numbers"))
    if (kind, how) != ("rare", "one row in six")  # rows seen once are too few there
]


@pytest.mark.parametrize(("kind", "how"), NOTICED)
def test_private_rows_are_noticed(kind: str, how: str) -> None:
    private, fresh = table(2000, 0, kind), table(2000, 1, kind)
    assert passed_as_public(private, copies(private, fresh)[how])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_file_is_noticed_however_few_values_it_has(kind: str) -> None:
    private = table(500, 0, kind)
    assert passed_as_public(private, private.copy())
    assert passed_as_public(private.to_numpy(dtype=object), private.to_numpy(dtype=object).copy())


@pytest.mark.parametrize("name", ["adult", "german"])
def test_splits_of_real_tables_pass_and_their_own_rows_do_not(
    real_data: Callable[..., Dataset], name: str
) -> None:
    data = real_data(name)
    for seed in range(3):
        split = data.split(public=0.2, test=0.25, random_state=seed)
        assert not passed_as_public(split.private.X, split.public.X)
        few = split.private.X.columns[:5]  # Adult's first columns repeat, row by row
        assert not passed_as_public(split.private.X[few], split.public.X[few])
        again = split.private.X.sample(len(split.public.X), random_state=seed)
        assert passed_as_public(split.private.X, again)


def test_fit_refuses_without_a_count_and_goes_on_where_it_is_told_to(
    parts: Parts, settings: dict[str, Any]
) -> None:
    groups = {"sensitive_features_public": parts.groups}
    with pytest.raises(PrivateRowsAsPublic, match=REFUSED) as raised:
        FairPATEClassifier(**settings).fit(parts.X, parts.y, X_public=parts.X, **groups)
    assert not re.search(r"\d", str(raised.value))
    with allow_shared_rows():
        model = FairPATEClassifier(**settings).fit(parts.X, parts.y, X_public=parts.X, **groups)
    assert model.answers_.n_answered
    with pytest.raises(PrivateRowsAsPublic):  # the block has ended
        FairPATEClassifier(**settings).fit(parts.X, parts.y, X_public=parts.X, **groups)


def test_every_private_method_asks_and_a_reference_does_not(parts: Parts, loose: Any) -> None:
    with pytest.raises(PrivateRowsAsPublic):
        DPSGDClassifier(**loose).fit(parts.X, parts.y, X_public=parts.X.sample(frac=0.5))
    NonPrivateClassifier().fit(parts.X, parts.y, X_public=parts.X)


@pytest.mark.parametrize(
    ("method", "confidence"), [(FairSharesClassifier, None), (DPSGDClassifier, 0.9)]
)
def test_private_rows_are_no_calibration_rows(
    method: Any, confidence: float | None, parts: Parts
) -> None:
    fairness = EqualizedOdds(margin=0.3, confidence=confidence)
    model = method(Budget(epsilon=3.0, delta=1e-5), fairness)
    rows = {"X_public": parts.X_public, "sensitive_features_public": parts.groups_public}
    with pytest.raises(PrivateRowsAsPublic, match=REFUSED):
        model.fit(
            parts.X,
            parts.y,
            X_calibration=parts.X[:300],
            y_calibration=parts.y[:300],
            sensitive_features_calibration=parts.groups[:300],
            **(rows if method is FairSharesClassifier else {"X_public": parts.X_public}),
        )
    assert not hasattr(model, "ledger_")


def test_nothing_is_spent_before_it_is_refused(parts: Parts) -> None:
    from evenhand.privacy import Ledger

    ledger = Ledger(Budget(epsilon=3.0, delta=1e-5), noise=SeededNoise(0))
    model = FairPATEClassifier(Budget(epsilon=3.0, delta=1e-5), DemographicParity(margin=0.1))
    with pytest.raises(PrivateRowsAsPublic):
        model.fit(
            parts.X,
            parts.y,
            X_public=parts.X,
            sensitive_features_public=parts.groups,
            ledger=ledger,
        )
    assert ledger.spent == 0


def test_hundreds_of_columns_are_compared_without_a_warning() -> None:
    # Features of pictures have as many; every warning is an error here.
    rng = np.random.default_rng(0)
    private = rng.normal(size=(60, 150))
    assert passed_as_public(private, private[:40])
    assert not passed_as_public(private, rng.normal(size=(40, 150)))
