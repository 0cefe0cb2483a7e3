"""The score of a classifier that may need the group of each row to decide about it."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.metrics import accuracy_score

from evenhand.typing import ArrayLike


class ScoredByGroup:
    """Base of classifiers whose ``predict`` takes ``sensitive_features``; stands before others."""

    # Who routes the groups to ``fit`` alone need not say so of ``score``.
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": False}

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
    ) -> float:
        """Return the accuracy of ``predict``, in [0, 1], best 1.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
        y : array-like, shape (n,)
            True labels.
        sample_weight : array-like, shape (n,), optional
        sensitive_features : array-like or DataFrame, n rows, optional
            The group of every row, as for ``predict``. A search of scikit-learn hands it on after
            ``set_score_request(sensitive_features=True)``.
        """
        groups = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        said = self.predict(X, **groups)  # type: ignore[attr-defined]
        return float(accuracy_score(y, said, sample_weight=sample_weight))
