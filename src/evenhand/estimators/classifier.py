"""What every classifier with a claim takes: its arguments, and ``fit``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from evenhand.estimators.inputs import NOT_TAKEN, FitArguments, Progress
from evenhand.estimators.model import ModelWithClaim
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.privacy.noise import Noise
from evenhand.typing import ArrayLike, RandomState


def checked_budget(budget: object) -> Budget:
    """Return the budget of a fit; anything else is refused."""
    if not isinstance(budget, Budget):
        raise ValueError(
            f"budget must be a Budget, got {budget!r}. Say how much privacy loss is allowed, for "
            f"example budget=Budget(epsilon=3.0, delta=1e-5)."
        )
    return budget


@dataclass(eq=False, repr=False, kw_only=True)
class Arguments:
    """Arguments that every classifier has; those of its own are fields of its class.

    A class of fields has a constructor that stores them and nothing else, which is what
    scikit-learn asks for.
    """

    _two_classes: ClassVar[bool] = False

    schema: Any = None
    classes: ArrayLike | None = None
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of scikit-learn's base, further on
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.classifier_tags.multi_class = not self._two_classes
        return tags


class ClassifierWithClaim(Arguments, ModelWithClaim):
    """Base of all classifiers that say what they promise; ``fit`` sets what the model tells."""

    NEIGHBORS: ClassVar[tuple[str, ...]] = ()
    """Changes of the data that the claim can be about; none where nothing is promised."""

    TAKES: ClassVar[tuple[str, ...]] = tuple(NOT_TAKEN)
    """Arguments that ``fit`` takes beside ``X`` and ``y``, as the method's record says."""

    READS_CONFIDENCE: ClassVar[bool] = False
    """Whether a notion may have a confidence, as the method's record says."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        X_public: Any = None,
        sensitive_features_public: Any = None,
        X_calibration: Any = None,
        y_calibration: ArrayLike | None = None,
        sensitive_features_calibration: Any = None,
        unit_ids: ArrayLike | None = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on the private rows. ``TAKES`` names the arguments that this classifier takes.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
            The rows: private, save where only the sensitive attribute is protected
            (``SFPATEClassifier``, ``PFLDClassifier``, ``RandomizedResponseClassifier``).
        y : array-like, shape (n,)
            Their labels, none missing; private as the rows are.
        sensitive_features : array-like or DataFrame, n rows, optional
            Groups of these rows: private, and covered by the guarantee; only their names are
            public. Needed where training reads them, and for a margin with ``public="synthetic"``.
            Where ``public_fraction`` sets rows of ``X`` aside as public, theirs are the groups of
            the public rows.
        X_public : DataFrame or array-like, shape (n_public, n_columns), optional
            Public rows with the same columns; no labels.
        sensitive_features_public : array-like or DataFrame, n_public rows, optional
            Groups of the public rows; several columns are combined. Needed where a margin is kept
            on these rows.
        X_calibration, y_calibration, sensitive_features_calibration : optional
            A few *public* rows with labels and groups, on which a margin about true classes is
            read; each class must occur in each group. Without them it is read from the released
            answers.
        unit_ids : array-like, shape (n,), optional
            Whose record each row is; the guarantee then protects the unit. Without it each row is
            a record, or a person, of its own.
        ledger : Ledger, optional
            The data set's account, of the unit and neighbors that the fit protects; this run is
            charged to it too. A cost that is known at one delta only cannot be charged to it.
        progress : callable, optional
            ``progress(stage, done, total)``.

        Raises
        ------
        TypeError
            For an argument that this classifier does not take.
        ValueError
            For inputs that cannot be used; the message names the way out.
        BudgetExceeded
            If the budget, or the account, does not cover one answer. Nothing is spent then.

        Whatever is raised, the model that was fitted before, if there was one, is left whole.
        """
        given = FitArguments(
            X=X,
            y=y,
            sensitive_features=sensitive_features,
            X_public=X_public,
            sensitive_features_public=sensitive_features_public,
            X_calibration=X_calibration,
            y_calibration=y_calibration,
            sensitive_features_calibration=sensitive_features_calibration,
            unit_ids=unit_ids,
            ledger=ledger,
            progress=progress,
        )
        given.require(self.TAKES, type(self).__name__)
        self._refuse_confidence()
        known: dict[str, Any] = self.__dict__
        before = known.copy()
        try:
            self._learn(given)
            self._fitted = self._describe()
        except BaseException:  # half of a fit is no model: what was fitted before stays whole
            known.clear()
            known.update(before)
            raise
        return self

    def _learn(self, given: FitArguments) -> None:
        """Train, and set the fitted attributes: what a method is."""
        raise NotImplementedError

    def _refuse_confidence(self) -> None:
        confidence = getattr(self.fairness, "confidence", None)
        if confidence is not None and not self.READS_CONFIDENCE:
            raise ValueError(
                f"{type(self).__name__} chooses no student by rows that were held out, got "
                f"fairness={self.fairness!r}. Leave confidence out, and set a rule with it on "
                f"public rows: model.with_blind_rule(X_public, groups, fairness=...); or use "
                f"FairSharesClassifier or FairPATEClassifier."
            )


@dataclass(eq=False, repr=False)
class PrivateClassifier(ClassifierWithClaim):
    """Base of the classifiers with a guarantee: they spend a budget on noise."""

    NEIGHBORS: ClassVar[tuple[str, ...]] = ("replace one", "add or remove one")

    budget: Budget | None = None
    _: KW_ONLY
    noise: Noise | None = None

    def _checked_budget(self) -> Budget:
        """Return the budget, which nobody may leave out."""
        return checked_budget(self.budget)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not isinstance(self.noise, SeededNoise)
        return tags
