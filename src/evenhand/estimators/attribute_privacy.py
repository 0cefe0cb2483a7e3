"""What the classifiers share that protect the sensitive attribute alone, on one table of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks, _values
from evenhand._frames import as_pandas
from evenhand.datasets import PublicEncoder
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators.classifier import PrivateClassifier
from evenhand.estimators.given_rows import encoded
from evenhand.estimators.inputs import FitArguments, FitInputs
from evenhand.estimators.ledgers import single_ledger
from evenhand.estimators.reading import read_fit_inputs
from evenhand.fairness.grouping import published_groups
from evenhand.fairness.groups import GroupCodes, missing_groups
from evenhand.privacy import Budget, Guarantee, Ledger, attribute_of
from evenhand.privacy.guarantee import delta_warning
from evenhand.privacy.noise import Noise
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL

UNIT: Final = attribute_of("person")


@dataclass(frozen=True, kw_only=True, eq=False)
class PeopleInputs:
    """Rows whose features and labels are public, with groups that are not."""

    data: FitInputs
    """``X_private`` are all rows."""
    encoder: PublicEncoder | PixelEncoder
    """Fitted on these rows: their features are public."""
    X_encoded: Any
    """Shape (n, n_features); or pictures."""
    groups: GroupCodes
    """Private."""

    @property
    def are_pictures(self) -> bool:
        """Whether rows are pictures, which networks read."""
        return isinstance(self.encoder, PixelEncoder)


class AttributePrivacyClassifier(PrivateClassifier):
    """Base of the classifiers that protect the group of each person and nothing else."""

    NEIGHBORS = (GROUP_LABEL, GROUP_AND_CLASS_LABEL)

    _features_are_private = False

    def _read_people(
        self,
        given: FitArguments,
        rng: np.random.Generator,
        *,
        names: tuple[str, ...] | None = None,
    ) -> PeopleInputs:
        """Check the rows; features are public here, so they scale themselves.

        ``names`` are the groups that can occur; those that do if not given.
        """
        public = FitArguments(X=given.X, y=given.y, X_public=given.X)
        data = read_fit_inputs(self, public, rng=rng)
        if given.sensitive_features is None:
            raise ValueError(
                f"{type(self).__name__} keeps a margin between the groups of these rows, and "
                f"sensitive_features is missing. Pass it, or use NonPrivateClassifier: without "
                f"groups there is nothing to protect here."
            )
        _refuse_missing(given.sensitive_features)
        _refuse_in_features(given.X, given.sensitive_features, type(self).__name__)
        groups = published_groups(given.sensitive_features, names=names)
        _checks.same_length(X=data.X_private, sensitive_features=groups)
        if groups.n_groups < 2:
            raise ValueError(
                f"The rows hold one group only, {_values.quoted(groups.names[0])}: there is "
                f"nothing to compare it with. Check the sensitive column."
            )
        encoder, rows = encoded(data.X_private, self.schema)
        return PeopleInputs(data=data, encoder=encoder, X_encoded=rows, groups=groups)

    @staticmethod
    def _only_at_its_delta(budget: Budget, noise: Noise) -> Ledger:
        """Open a ledger of this run alone, for a cost that is known at one delta only."""
        return single_ledger(budget, noise, unit=UNIT, neighbors=GROUP_LABEL)

    @staticmethod
    def _claim(
        people: PeopleInputs,
        noise: Noise,
        *,
        epsilon: float,
        delta: float,
        accounting: str,
        noise_words: str,
        mu_squared: float | None = None,
    ) -> Guarantee:
        """Return what is promised to whoever has a group among these rows."""
        n = people.data.n_private
        warning = delta_warning(delta, n)
        return Guarantee(
            epsilon=epsilon,
            delta=delta,
            unit=UNIT,
            neighbors=GROUP_LABEL,
            noise=noise_words,
            accounting=accounting,
            public=(
                f"the features and class labels of all {n} rows",
                *people.data.made_by,
                "that each row is another person",
                "the names of the groups",
                "all settings",
            ),
            not_covered=(
                "what the public features and labels tell of the attribute",
                "a choice of settings or of a model made by looking at the groups",
                "measurements that read the groups",
            ),
            warnings=(warning,) if warning else (),
            holds=noise.protects,
            reason="" if noise.protects else "the noise came from a seed and can be removed",
            mu_squared=mu_squared,
        )


def _refuse_in_features(X: Any, sensitive_features: Any, method: str) -> None:
    """Refuse a column of the features that is named as the attribute: it would be public."""
    given = as_pandas(sensitive_features)
    names = list(getattr(given, "columns", [getattr(given, "name", None)]))
    columns = list(getattr(as_pandas(X), "columns", ()))
    if both := [name for name in names if isinstance(name, str) and name in columns]:
        raise ValueError(
            f"X has the column {both[0]!r}, which sensitive_features names as well. {method} takes "
            f"all features as public, so the attribute would not be protected. Drop it: "
            f"X.drop(columns={both})."
        )


def _refuse_missing(sensitive_features: Any) -> None:
    """Refuse rows without a group, and a way out that would tell who they are."""
    gone = np.flatnonzero(missing_groups(sensitive_features))
    if gone.size:
        raise ValueError(
            f"sensitive_features is missing in {_values.rows(gone)}. To leave these rows out "
            f"would tell who did not say, which is a part of what is protected here. Make them a "
            f"group of their own, as with .fillna('unknown')."
        )
