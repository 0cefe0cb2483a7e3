"""The change of the private data that a claim of teachers is about, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runs import FALSE_ALARM
from scipy import stats

import evenhand
from evenhand import (
    AutoClassifier,
    Budget,
    DemographicParity,
    DPSGDClassifier,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
    methods,
)
from evenhand.baselines import InterventionClassifier
from evenhand.datasets import Schema
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators import fit_many
from evenhand.estimators.inputs import FitArguments
from evenhand.estimators.shared_teachers import _require_one_training
from evenhand.estimators.synthetic_rows import SyntheticRows
from evenhand.privacy import DiscreteNoise, FloatNoise, Ledger, NoisyHistogram, SeededNoise
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.report import write_report
from evenhand.teachers import OutsideVotes
from evenhand.testing.audit import claimed_mu
from evenhand.testing.door import Release, Transcript, recording

pytestmark = pytest.mark.filterwarnings(
    "ignore::evenhand.estimators.plan.NoiseDrownsAnswers",
    "ignore::evenhand.estimators.synthetic_rows.SyntheticRowsWarning",
)

REPLACE, ADD = "replace one", "add or remove one"
BUDGET = Budget(epsilon=6.0, delta=1e-5)
SCHEMA = Schema.declared({"age": {"bounds": (0, 100)}, "job": ["chef", "clerk", "smith"]})
METHODS: list[tuple[Any, dict[str, Any]]] = [
    (PATEClassifier, {}),
    (FairSharesClassifier, {"fairness": DemographicParity(margin=0.1)}),
    (FairPATEClassifier, {"fairness": DemographicParity(margin=0.1)}),
    (InterventionClassifier, {"fairness": DemographicParity(margin=0.1), "at": "S_in"}),
]


def people(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    X = pd.DataFrame({"age": rng.integers(20, 70, n), "job": rng.choice(["chef", "clerk"], n)})
    return X, np.where(X["age"] + 10 * (sex == "M") > 48, "yes", "no"), sex


PRIVATE, PUBLIC = people(1500, 0), people(200, 1)


def fitted(method: Any = PATEClassifier, **changes: Any) -> Any:
    """Fit on the private rows; what ``fit`` takes goes there, the rest to the constructor."""
    given = {"budget": BUDGET, "schema": SCHEMA, "noise": SeededNoise(1), "random_state": 0}
    rows = {name: changes.pop(name) for name in tuple(changes) if name in method.TAKES}
    if method is not PATEClassifier:
        rows |= {"sensitive_features": PRIVATE[2]}
        if "X_public" in rows:
            rows |= {"sensitive_features_public": PUBLIC[2]}
    return method(**(given | changes)).fit(*PRIVATE[:2], **rows)


def dealt(model: Any, n: int = len(PRIVATE[1]), **given: Any) -> np.ndarray:
    """Return the teacher of each of the first ``n`` records in a fit that has just begun."""
    X, y, _ = PRIVATE
    rows = {"X": X[:n], "y": y[:n], "X_public": None if model.public else PUBLIC[0]}
    return np.asarray(model.read(FitArguments(**(rows | given))).partition.teacher)


# ---- the claim --------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "more"), METHODS)
@pytest.mark.parametrize(
    ("public", "rows", "neighbors"),
    [
        (None, {"X_public": PUBLIC[0]}, REPLACE),
        (SyntheticRows(n_rows=300), {}, ADD),
        (SyntheticRows(), {"X_public": PUBLIC[0]}, ADD),
    ],
)
def test_noisy_counts_of_records_are_for_a_record_more_or_less_and_votes_alone_for_another_record(
    method: Any, more: dict[str, Any], public: Any, rows: dict[str, Any], neighbors: str
) -> None:
    given: dict[str, Any] = {"public": public, **rows, **more}
    for named, change in ((None, neighbors), (REPLACE, REPLACE), (ADD, ADD)):
        model = fitted(method, neighbors=named, **given)
        claim = model.guarantee_
        assert (claim.unit, claim.neighbors) == ("record", change)
        assert f"(neighbors: {change} record)" in str(claim)
        assert (model.ledger_.unit, model.ledger_.neighbors) == ("record", change)
        size = "the number of private records (1500)"
        says = size if change == REPLACE else f"{size}, which sets the number of teachers"
        assert says in claim.public
        assert claim.epsilon == BUDGET.epsilon


def test_a_number_of_teachers_that_was_named_leaves_that_of_records_private() -> None:
    for public, rows in ((SyntheticRows(n_rows=300), {}), (None, {"X_public": PUBLIC[0]})):
        model = fitted(public=public, n_teachers=30, neighbors=ADD, **rows)
        assert not any("1500" in words for words in (*model.guarantee_.public, *model.choices_))
        named = fitted(public=public, n_teachers=30, neighbors=REPLACE, **rows)
        assert "the number of private records (1500)" in named.guarantee_.public
    with pytest.raises(ValueError, match=r"above it \(how many is private\)") as refused:
        fitted(n_teachers=1501, neighbors=ADD, X_public=PUBLIC[0])
    assert "1500" not in str(refused.value)
    with pytest.warns(UserWarning, match="delta=0.01 is not below") as warned:
        model = fitted(
            budget=Budget(epsilon=6.0, delta=0.01),
            n_teachers=30,
            neighbors=ADD,
            X_public=PUBLIC[0],
        )
    assert not any("1500" in str(one.message) for one in warned)
    assert model.guarantee_.warnings == ()


def test_units_are_added_or_removed_and_replacing_them_is_refused() -> None:
    units = np.arange(1500) // 2
    for neighbors in (None, ADD):
        claim = fitted(neighbors=neighbors, unit_ids=units, X_public=PUBLIC[0]).guarantee_
        assert (claim.unit, claim.neighbors) == ("person", ADD)
    account = Ledger(BUDGET, noise=SeededNoise(0), unit="person", neighbors=ADD)
    with pytest.raises(ValueError, match="changes two teachers, which is two steps of 'add or"):
        fitted(neighbors=REPLACE, unit_ids=units, X_public=PUBLIC[0], noise=None, ledger=account)
    assert account.spent == 0


def test_what_makes_no_sense_with_a_change_is_refused_before_anything_is_spent() -> None:
    rows = {"X_public": PUBLIC[0]}
    with pytest.raises(ValueError, match="neighbors must be one of 'replace one', 'add or remove"):
        fitted(neighbors="remove one", **rows)
    with pytest.raises(TypeError, match="from_votes does not take neighbors="):
        PATEClassifier.from_votes([], PUBLIC[0], neighbors=ADD)
    account = Ledger(BUDGET, noise=SeededNoise(0), neighbors=ADD)
    with pytest.raises(ValueError, match="coins that nobody can repeat set rows aside"):
        fitted(neighbors=ADD, public_fraction=0.2, noise=None, ledger=account)
    with pytest.raises(ValueError, match="as in neighbors='replace one'"):
        fitted(noise=None, ledger=account, **rows)
    assert account.spent == 0
    assert fitted(neighbors=ADD, noise=None, ledger=account, **rows).guarantee_.neighbors == ADD
    with pytest.raises(ValueError, match="neighbors must be one of 'replace one', 'add or remove"):
        AutoClassifier(BUDGET, neighbors="remove one", schema=SCHEMA).fit(*PRIVATE[:2])
    with pytest.raises(ValueError, match="about whole records, and protect='attribute'"):
        AutoClassifier(BUDGET, neighbors=ADD, protect="attribute").fit(*PRIVATE[:2])


def test_votes_that_were_cast_elsewhere_are_for_another_record_unless_it_is_said() -> None:
    votes = OutsideVotes(np.zeros((20, 200), dtype=int))
    for neighbors, change in ((None, REPLACE), (ADD, ADD)):
        model = PATEClassifier(
            BUDGET, teachers=votes, public="synthetic", neighbors=neighbors, noise=SeededNoise(0)
        )
        assert model.neighbors_for(units=False) == change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("neighbors", "schema", "method", "why"),
    [
        (None, SCHEMA, DPSGDClassifier, "one owner"),
        (ADD, SCHEMA, DPSGDClassifier, "one owner"),  # that is its claim
        (ADD, None, PATEClassifier, "neither public rows nor declared bounds"),
        (REPLACE, SCHEMA, PATEClassifier, "something is asked for that only teachers have"),
    ],
)
def test_auto_takes_a_method_whose_claim_is_about_the_change_that_is_named(
    neighbors: str | None, schema: Schema | None, method: Any, why: str
) -> None:
    model = AutoClassifier(BUDGET, neighbors=neighbors, schema=schema, random_state=0)
    model.fit(*PRIVATE[:2])
    assert isinstance(model.model_, method)
    assert model.guarantee_.neighbors == (neighbors or ADD)
    assert f"chosen by public numbers and wishes alone: {why}" in model.choices_[0]


def test_what_a_method_is_said_to_claim_it_claims() -> None:
    said = [spec for spec in methods.METHODS.values() if spec.neighbors]
    assert [spec.estimator for spec in said] == [DPSGDClassifier]
    model = DPSGDClassifier(BUDGET, schema=SCHEMA, random_state=0).fit(*PRIVATE[:2])
    assert model.guarantee_.neighbors == said[0].neighbors


def test_it_is_saved_and_stands_on_the_report(tmp_path: Path) -> None:
    model = fitted(public=SyntheticRows(n_rows=300), neighbors=REPLACE)
    model.save(tmp_path / "model")
    again = evenhand.load(tmp_path / "model")
    assert (again.neighbors, again.guarantee_.neighbors) == (REPLACE, REPLACE)
    write_report(model, tmp_path / "report.html")
    assert "neighbors: replace one record" in (tmp_path / "report.html").read_text()


# ---- what it costs ----------------------------------------------------------------------------


def releases(neighbors: str, **changes: Any) -> list[Release]:
    given = changes or {"public": SyntheticRows(n_rows=300, share=0.5)}
    transcript = Transcript()
    with recording(transcript):
        fitted(n_teachers=40, neighbors=neighbors, **given)
    assert claimed_mu(transcript) <= BUDGET.mu * (1 + 1e-9)
    return transcript.releases


def test_counts_have_less_noise_for_a_record_more_or_less_and_votes_have_the_same() -> None:
    ratios: dict[type, list[float]] = {NoisySum: [], NoisyHistogram: []}
    for one, other in zip(releases(REPLACE), releases(ADD), strict=True):
        ((_, wide),), ((_, narrow),) = one.drawn_as, other.drawn_as
        ratios[type(one.mechanism)].append(round(wide / narrow, 2))
    # Of sums the first are counts of each column, and the last the gradients of the odds of labels;
    # what tells how columns hang together is bounded by its norm, as these are.
    assert ratios[NoisySum][0] == 1.41
    assert ratios[NoisySum][-1] == 2.0
    assert set(ratios[NoisySum]) == {1.41, 2.0}
    assert set(ratios[NoisyHistogram]) == {1.0}


def test_counts_that_are_compared_with_public_rows_follow_the_change_that_was_named() -> None:
    noise: dict[str, float] = {}
    for neighbors in (REPLACE, ADD):
        counts, *votes = releases(neighbors, check_drift=True, X_public=PUBLIC[0])
        assert isinstance(counts.mechanism, NoisySum)
        # A record is in one cell of each of two columns; one in place of another moves two.
        assert counts.mechanism.l2_sensitivity == pytest.approx(
            2.0 if neighbors == REPLACE else 2**0.5
        )
        assert votes
        ((_, noise[neighbors]),) = counts.drawn_as
        model = PATEClassifier(BUDGET, n_teachers=40, neighbors=neighbors, check_drift=True)
        rows = FitArguments(X=PRIVATE[0], y=PRIVATE[1], X_public=PUBLIC[0])
        compared = model.read(rows).to_compare
        assert compared is not None
        # Shares are of the number of records where neighbors agree on it, else of noisy counts.
        assert compared.n_private == (1500 if neighbors == REPLACE else None)
    assert noise[REPLACE] / noise[ADD] == pytest.approx(2**0.5, rel=0.01)


# ---- the deal ---------------------------------------------------------------------------------


def test_a_public_seed_deals_no_record_where_noise_protects(tmp_path: Path) -> None:
    def model(noise: Any, **changes: Any) -> Any:
        return PATEClassifier(
            BUDGET, n_teachers=30, random_state=0, noise=noise, neighbors=ADD, **changes
        )

    def same(noise: Any, **given: Any) -> bool:
        return np.array_equal(*(dealt(model(noise), **given) for _ in range(2)))

    assert same(SeededNoise(1))
    assert not any(same(noise) for noise in (None, DiscreteNoise(), FloatNoise()))
    for noise, repeats in ((DiscreteNoise(), False), (SeededNoise(0), True)):
        account = Ledger(BUDGET, noise=noise, neighbors=ADD)
        assert same(None, ledger=account) is repeats
    # Of several models one noise that protects is enough, and whichever of them is the first.
    several = [model(noise) for noise in (SeededNoise(0), None)]
    for models in (several, several[::-1], [model(FloatNoise()), model(SeededNoise(0))]):
        first = (_require_one_training(models, PUBLIC[0]) for _ in range(2))
        assert not np.array_equal(*map(dealt, first))
    # Neither which rows are set aside, nor the key by which rows of a stream are dealt.
    for noise, repeats in ((None, False), (SeededNoise(0), True)):
        aside, keys = [], []
        PRIVATE[0].assign(y=PRIVATE[1]).to_parquet(tmp_path / "rows.parquet")
        for _ in range(2):
            some = model(noise, public_fraction=0.2)
            dealt(some, X_public=None)
            aside.append(some.rows_set_aside_)
            stream = FitArguments(
                X=ParquetRows(tmp_path / "rows.parquet"), y="y", X_public=PUBLIC[0]
            )
            keys.append(model(noise).read(stream).partition.key)
        assert np.array_equal(*aside) is repeats
        assert (keys[0] == keys[1]) is repeats


@pytest.mark.slow
@pytest.mark.parametrize("removed", [0, 2])
def test_teachers_of_the_other_records_are_alike_whether_or_not_one_is_there(removed: int) -> None:
    # Four records, two teachers, one public seed: all 16 deals are as frequent, and so are the 8 of
    # the others where one record is away. Who knows the seed and all others learns nothing of them.
    X, y = PRIVATE[0][:4], np.array(["no", "yes", "no", "yes"])
    for rows in (np.full(4, True), np.arange(4) != removed):
        given = {"X": X[rows].reset_index(drop=True), "y": y[rows], "X_public": PUBLIC[0]}
        times = np.zeros(2 ** rows.sum())
        for _ in range(160):
            model = PATEClassifier(BUDGET, n_teachers=2, random_state=0, neighbors=ADD)
            teacher = model.read(FitArguments(**given)).partition.teacher
            times[int(teacher @ 2 ** np.arange(rows.sum()))] += 1
        assert stats.chisquare(times).pvalue > FALSE_ALARM


def test_models_that_share_their_teachers_share_the_change() -> None:
    X, y, _ = PRIVATE
    common: dict[str, Any] = {"n_teachers": 30, "random_state": 0, "schema": SCHEMA}
    models = [PATEClassifier(BUDGET, neighbors=one, **common) for one in (REPLACE, ADD)]
    with pytest.raises(ValueError, match="need the same neighbors"):
        fit_many(models, X, y, X_public=PUBLIC[0])
    models = [PATEClassifier(BUDGET, neighbors=ADD, **common) for _ in range(2)]
    assert fit_many(models, X, y, X_public=PUBLIC[0]) == [None, None]
    assert {model.guarantee_.neighbors for model in models} == {ADD}


def test_a_stream_is_dealt_by_coins_too(tmp_path: Path) -> None:
    PRIVATE[0].assign(y=PRIVATE[1]).to_parquet(tmp_path / "rows.parquet")
    rows = ParquetRows(tmp_path / "rows.parquet")
    model = PATEClassifier(BUDGET, neighbors=ADD, random_state=0).fit(rows, "y", X_public=PUBLIC[0])
    assert (model.guarantee_.unit, model.guarantee_.neighbors) == ("record", ADD)
    size = "the number of private records (1500), which sets the number of teachers"
    assert size in model.guarantee_.public
    assert (model.predict(PUBLIC[0]) == PUBLIC[1]).mean() > 0.7
