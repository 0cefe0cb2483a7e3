"""Public rows and noisy counts under one ledger: both releases, the claim, and what is learnt."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand._words import SYNTHETIC_SHARE
from evenhand.baselines import InterventionClassifier
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.encoder import PublicEncoder
from evenhand.datasets.schema import Schema
from evenhand.estimators import base, fit_many
from evenhand.estimators.drawn_rows import ANSWERS, COUNTS, RowsToDraw, _by_public_rows
from evenhand.estimators.drift import PURPOSE as DRIFT
from evenhand.estimators.drift import DriftWarning
from evenhand.estimators.synthetic_rows import SyntheticRows, SyntheticRowsWarning
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.tables.private_table import BINS
from evenhand.privacy import GNMax, Ledger, SeededNoise
from evenhand.report import write_report
from evenhand.students import soft_labels
from evenhand.testing.audit import claimed_mu
from evenhand.testing.door import Transcript, recording

pytestmark = pytest.mark.filterwarnings(
    "ignore::evenhand.estimators.plan.NoiseDrownsAnswers",
    "ignore::evenhand.students.student.FewAnswersWarning",
    "ignore::evenhand.estimators.synthetic_rows.SyntheticRowsWarning",
)

BUDGET = Budget(epsilon=4.0, delta=1e-5)
MARGIN = DemographicParity(margin=0.1)


def people(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return rows, labels and groups."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "hours": rng.normal(np.where(sex == "M", 42, 38), 8),
            "job": rng.choice(["chef", "clerk", "smith"], n),
        }
    )
    rich = X["hours"] + (X["age"] - 45) / 4 + 6 * (X["job"] == "smith") > 42
    return X, np.where(rich, "yes", "no"), sex


PRIVATE, PUBLIC, NEW = people(2000, 0), people(400, 1), people(2000, 2)


def fitted(method: Any = FairSharesClassifier, ledger: Any = None, **changes: Any) -> Any:
    settings = {
        "budget": BUDGET,
        "public": SyntheticRows(),
        "n_teachers": 50,
        "noise": SeededNoise(1),
        "random_state": 0,
    }
    given: dict[str, Any] = {"X_public": PUBLIC[0], "ledger": ledger}
    if method is not PATEClassifier:
        settings["fairness"] = MARGIN
        given["sensitive_features_public"] = PUBLIC[2]
    for name in ("X_public", "sensitive_features", "unit_ids"):
        if name in changes:
            given[name] = changes.pop(name)
    X, y = changes.pop("X", PRIVATE[0]), changes.pop("y", PRIVATE[1])
    return method(**(settings | changes)).fit(X, y, **given)


@pytest.mark.parametrize("method", [FairSharesClassifier, FairPATEClassifier, PATEClassifier])
def test_counts_and_answers_stay_within_one_budget_and_the_claim_lists_both(
    method: Any, tmp_path: Path
) -> None:
    transcript = Transcript()
    with recording(transcript):
        model = fitted(method)
    # What was really drawn, counts and answers together, is worth no more than the budget.
    assert claimed_mu(transcript) <= BUDGET.mu * (1 + 1e-9)
    entries = model.ledger_.entries
    of_counts = [COUNTS in entry.account for entry in entries]
    assert of_counts == sorted(of_counts, reverse=True)  # all counts, then all answers
    assert all(ANSWERS in e.account for e, c in zip(entries, of_counts, strict=True) if not c)
    counts = sum(e.mu_squared for e, c in zip(entries, of_counts, strict=True) if c)
    assert counts == pytest.approx(SYNTHETIC_SHARE * BUDGET.mu_squared, rel=1e-6)
    assert model.ledger_.spent <= BUDGET.mu_squared
    assert not all(of_counts)
    assert len(model.answers_) == len(PUBLIC[0])
    claim = model.guarantee_
    assert (claim.epsilon, claim.delta) == (4.0, 1e-5)
    assert claim.mu_squared == pytest.approx(BUDGET.mu_squared)
    assert f"two releases: {COUNTS} (90% of the budget), and {ANSWERS}" in claim.accounting
    assert "student learns chances of labels (90% of" in claim.accounting  # and no labels
    assert "the features of the 400 public rows" in claim.public[0]
    assert any("which are those of the public rows" in words for words in claim.public)
    assert not any("no row" in words for words in claim.public)
    loaded = evenhand.load(model.save(tmp_path / "model"))
    assert (loaded.guarantee_, loaded.choices_) == (claim, model.choices_)
    assert loaded.public == model.public
    assert (loaded.predict(NEW[0]) == model.predict(NEW[0])).all()
    assert loaded.fitted_.of_drawn_rows[0].startswith("Beside the public rows: 90% of the budget")
    assert loaded.fitted_.asked_about == "public rows"
    write_report(loaded, tmp_path / "report.html")
    assert "what the counts say of the labels" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("method", [FairSharesClassifier, FairPATEClassifier])
def test_the_margin_is_kept_on_the_real_public_rows(method: Any) -> None:
    model = fitted(method, fairness=DemographicParity(margin=0.03))
    assert model.margin_source_ == "public rows"
    decided, group = model.predict(PUBLIC[0]) == "yes", PUBLIC[2]
    gap = abs(decided[group == "M"].mean() - decided[group == "F"].mean())
    assert model.public_gap_ == pytest.approx(gap)
    assert model.within_margin_
    assert gap <= 0.03 + 1e-9
    assert abs((PUBLIC[1] == "yes")[group == "M"].mean() - (PUBLIC[1] == "yes").mean()) > 0.03


@pytest.mark.parametrize("mechanism", [None, GNMax(sigma=0.01)])
def test_with_a_share_and_a_weight_near_zero_it_is_the_model_of_the_answers_alone(
    mechanism: GNMax | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "DEGREE", 0)  # but for the curves beside numbers
    # At such an epsilon the noise is below a hundredth of a vote, so teachers, votes and student
    # are compared, whose seeds the drawn rows must not move.
    settings: dict[str, Any] = {
        "budget": Budget(epsilon=1e9, delta=1e-5),
        "mechanism": mechanism,
        "n_teachers": 51,  # an odd number has no ties, which noise decides however small it is
        "neighbors": "add or remove one",
    }
    both = fitted(PATEClassifier, public=SyntheticRows(share=1e-3, label_weight=1e-9), **settings)
    plain = fitted(PATEClassifier, public=None, **settings)
    heavy = fitted(PATEClassifier, public=SyntheticRows(share=1e-3, label_weight=2.0), **settings)
    found = [model.predict_proba(NEW[0])[:, 1] for model in (plain, both, heavy)]
    assert np.abs(found[0] - found[1]).max() < 1e-3
    assert np.abs(found[0] - found[2]).max() > 0.01


@pytest.mark.parametrize(
    ("public", "degree"),
    [(None, 0), ("synthetic", base.DEGREE), (SyntheticRows(label_weight=1.0), base.DEGREE)],
)
def test_curves_stand_beside_numbers_where_labels_by_the_counts_are_learnt(
    public: Any, degree: int
) -> None:
    model = fitted(PATEClassifier, public=public)
    assert isinstance(model.encoder_, PublicEncoder)
    assert model.encoder_.degree == degree


@pytest.mark.slow
@pytest.mark.parametrize("method", [FairSharesClassifier, FairPATEClassifier])
@pytest.mark.parametrize("drawn_as", [soft_labels.DRAWN_AS, 1e-3])
def test_a_student_of_drowned_answers_learns_what_the_counts_know(
    method: Any, drawn_as: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        soft_labels, "DRAWN_AS", drawn_as
    )  # nearly nothing: of the public rows alone
    X, y, _ = NEW
    right = []
    for seed in range(3):
        drawn = SyntheticRows(share=0.98)
        model = fitted(method, public=drawn, noise=SeededNoise(seed))
        right.append((model.without_margin().predict(X) == y).mean())
    # By the answers alone .61 to .94, weighed so .94 to .99.
    assert min(right) > 0.8


def test_counts_know_of_private_rows_what_the_encoder_knows() -> None:
    public = PUBLIC[0].assign(note=np.where(PUBLIC[0]["age"] > 30, "other", None))
    private = PRIVATE[0].assign(
        hours=PRIVATE[0]["hours"].where(np.arange(2000) % 7 > 0),
        job=PRIVATE[0]["job"].replace("chef", "pilot").where(np.arange(2000) % 5 > 0),
        note=np.array(["other", "rare", None])[np.arange(2000) % 3],
        age=PRIVATE[0]["age"] + 200 * (np.arange(2000) % 11 == 0),
    )
    schema, rows, known = _by_public_rows(private, TypedTable.of(public), None)
    encoder = PublicEncoder().fit(public)
    assert (encoder.transform(rows) == encoder.transform(private)).all()
    assert (encoder.transform(known) == encoder.transform(public)).all()
    bounds = {c.name: c.bounds for c in schema.columns if c.kind == "numeric"}
    assert bounds["age"] == (public["age"].min(), public["age"].max())
    # What the public rows do not show is one more category, which no encoder knows.
    named = {c.name: c.categories for c in schema.columns if c.kind == "categorical"}
    assert named == {"job": ("chef", "clerk", "smith", "other"), "note": ("other", "other_")}
    model = fitted(X=private, X_public=public)
    assert model.guarantee_.delta == 1e-5


@pytest.mark.parametrize("declared", [False, True])
def test_public_rows_have_the_chances_of_their_labels_by_the_counts(declared: bool) -> None:
    # Some values are missing, as they may be.
    X, y, _ = PRIVATE
    X = X.assign(job=X["job"].where(np.arange(2000) % 7 > 0))
    known = PUBLIC[0].assign(
        job=PUBLIC[0]["job"].where(np.arange(400) % 5 > 0), age=PUBLIC[0]["age"].astype(float)
    )
    known.loc[::9, "age"] = np.nan
    columns = {
        "age": {"bounds": (0, 90), "missing": True},
        "hours": {"bounds": (0, 90)},
        "job": {"categories": ["chef", "clerk", "smith", "pilot"], "missing": True},
    }
    schema = Schema.declared(columns) if declared else None
    classes, codes = np.unique(y, return_inverse=True)
    settings = SyntheticRows().decided("shares", beside=True)
    rows = RowsToDraw.of(settings, X, codes, classes, None, None, schema, known)
    ledger = Ledger(Budget(epsilon=8.0, delta=1e-5), noise=SeededNoise(0))
    found = rows.draw(ledger, 1e-5, np.random.default_rng(0)).chances_public
    assert found is not None
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found.shape == (400, 2)
    # Of clear cases nearly all are on their side; the noise of a cell is a few of 2,000 records.
    truth = PUBLIC[1] == classes[1]
    clear = np.abs(PUBLIC[0]["hours"] + (PUBLIC[0]["age"] - 45) / 4 - 40) > 8
    assert ((found[:, 1] > 0.5) == truth)[clear].mean() > 0.85


def test_declared_columns_units_arrays_and_an_account_are_taken() -> None:
    X = PRIVATE[0]
    numbers, public = (rows[["age", "hours"]].to_numpy() for rows in (X, PUBLIC[0]))
    account = Ledger(
        Budget(epsilon=9.0, delta=1e-5),
        noise=SeededNoise(0),
        unit="person",
        neighbors="add or remove one",
    )
    # No delta is needed beside the account: nothing of the columns is released.
    model = fitted(
        X=numbers, X_public=public, unit_ids=np.arange(2000) // 2, noise=None, ledger=account
    )
    assert account.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    assert model.predict(numbers[:5]).shape == (5,)
    declared = fitted(schema=Schema.of_public(PUBLIC[0]))
    said = [words for words in declared.guarantee_.public if "bounds" in words]
    assert said == [
        "the categories, bounds and bins of the columns by which private rows are counted, as "
        "declared, and of the public rows"
    ]


def test_numbers_are_cut_to_bins_by_the_public_rows_at_no_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Amounts up to 100,000, most of them below 300: noisy counts would cut four even ranges.
    amounts = [
        rows[0].assign(amount=np.random.default_rng(i).lognormal(4, 1, len(rows[0])).clip(0, 1e5))
        for i, rows in enumerate((PRIVATE, PUBLIC))
    ]
    amounts[1].loc[0, "amount"] = 1e5
    makers: list[MarginalSynthesizer] = []
    fit_within = MarginalSynthesizer.fit_within

    def recorded(maker: MarginalSynthesizer, *args: Any, **more: Any) -> MarginalSynthesizer:
        makers.append(maker)
        return fit_within(maker, *args, **more)

    monkeypatch.setattr(MarginalSynthesizer, "fit_within", recorded)
    for private in (amounts[0], amounts[0].assign(amount=7.0, hours=40.0)):
        model = fitted(X=private, X_public=amounts[1])
    assert all(BINS not in entry.purpose for entry in model.ledger_.entries)
    first, second = (maker.codec_["amount"].bins for maker in makers)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.bin_of_cell, second.bin_of_cell)
    np.testing.assert_array_equal(first.weights, second.weights)
    in_bins = np.bincount(first.bin_of_cell[first.cells.codes(amounts[1]["amount"].to_numpy())])
    assert in_bins.max() < 400 / 2  # in even ranges all but one row would be in the first


def test_what_makes_no_sense_together_is_refused_at_once_and_spends_nothing() -> None:
    account = Ledger(
        Budget(epsilon=9.0, delta=1e-5), noise=SeededNoise(0), neighbors="add or remove one"
    )
    wrong = SyntheticRows(n_rows=500, balance="group", label_weight=0.0)
    with pytest.raises(ValueError, match="n_rows=500 is about rows to ask about") as refused:
        fitted(public=wrong, public_fraction=0.2, noise=None, ledger=account)
    for words in ("balance='group' is", "label_weight=0 leaves nothing", "public_fraction= gives"):
        assert words in str(refused.value)
    for words, method, changes in (
        ("learns released labels alone", FairPATEClassifier, {"student": DecisionTreeClassifier()}),
        ("leaves the margin to the gate", FairPATEClassifier, {"student_margin": False}),
        ("Take S_in or S_post", InterventionClassifier, {"at": "T_pre"}),
        ("leaves nothing for answers", PATEClassifier, {"check_drift": True}),
    ):
        with pytest.raises(ValueError, match=words):
            fitted(method, public=SyntheticRows(share=0.97), noise=None, ledger=account, **changes)
    with pytest.raises(ValueError, match="are the groups of X_public=, which is not given"):
        fitted(X_public=None, noise=None, ledger=account)
    assert account.spent == 0
    assert fitted(InterventionClassifier, at="S_in").within_margin_


def test_public_rows_are_compared_with_the_private_ones_beside() -> None:
    # There are two tables, so a drift check has something to compare: three accounts, one budget.
    older = PUBLIC[0].assign(age=PUBLIC[0]["age"] + 25)
    with pytest.warns(DriftWarning, match="age"):
        model = fitted(PATEClassifier, X_public=older, check_drift=True)
    spent = {DRIFT: 0.0, COUNTS: 0.0, ANSWERS: 0.0}
    for entry in model.ledger_.entries:
        spent[next(name for name in spent if name in entry.account)] += entry.mu_squared
    parts = [part / BUDGET.mu_squared for part in spent.values()]
    rest = 1.0 - 0.05 - SYNTHETIC_SHARE
    assert parts == pytest.approx([0.05, SYNTHETIC_SHARE, rest], rel=1e-5)
    assert [column.name for column in model.drift_ if column.differs] == ["age"]


@pytest.mark.slow
def test_models_of_one_training_draw_rows_of_their_own_budgets() -> None:
    def models() -> list[FairSharesClassifier]:
        return [
            FairSharesClassifier(
                Budget(epsilon=epsilon, delta=1e-5),
                MARGIN,
                public="synthetic",
                n_teachers=50,
                noise=SeededNoise(1),
                random_state=0,
            )
            for epsilon in (1.0, 4.0)
        ]

    public = {"X_public": PUBLIC[0], "sensitive_features_public": PUBLIC[2]}
    together = models()
    assert fit_many(together, *PRIVATE[:2], **public) == [None, None]
    for one, alone in zip(together, models(), strict=True):
        alone.fit(*PRIVATE[:2], **public)
        assert (one.student_.coef_ == alone.student_.coef_).all()
        assert one.guarantee_ == alone.guarantee_


@pytest.mark.filterwarnings("ignore::evenhand.students.student.ConstantStudentWarning")
def test_counts_that_show_one_class_leave_the_answers_alone() -> None:
    # The count of a single "yes" stands out of its noise of some records in less than 1 % of fits.
    rare = np.where(np.arange(2000) < 1, "yes", "no")
    # About so few the answers are one class, too.
    with (
        warnings.catch_warnings(record=True),
        pytest.warns(SyntheticRowsWarning, match="show one class alone"),
    ):
        model = fitted(PATEClassifier, y=rare)
    assert set(model.classes_) == {"no", "yes"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntheticRowsWarning)
        fitted(PATEClassifier)
