"""What methods read that train one model on all private rows: public knowledge only scales it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from evenhand import _checks, _values
from evenhand.datasets import PublicEncoder
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators.given_rows import encoded, may_be_pictures, take
from evenhand.estimators.inputs import FitArguments, FitInputs
from evenhand.estimators.reading import read_fit_inputs
from evenhand.estimators.shared_rows import refuse_shared
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.privacy.noise import Noise
from evenhand.typing import Array, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedInputs:
    """The private rows, encoded by what is public."""

    data: FitInputs
    """Without public rows where a declared schema alone scales the columns."""
    encoder: PublicEncoder | PixelEncoder

    @cached_property
    def X_encoded(self) -> Array:
        """The private rows, shape (n_private, n_features), or of pictures (n_private, c, h, w)."""
        return self.encoder.transform(self.data.X_private)

    def groups(self, sensitive_features: Any) -> GroupCodes:
        """Return the groups of the private rows.

        Raises
        ------
        ValueError
            If they do not match the rows that ``fit`` was given, or are one group only.
        """
        n_given = self.data.n_private + self.data.set_aside
        known = encode_groups(sensitive_features)
        _checks.same_length(X=range(n_given), sensitive_features=known)
        if known.n_groups < 2:
            raise ValueError(
                f"The rows hold one group only, {_values.quoted(known.names[0])}: there is "
                f"nothing to compare it with. Check the sensitive column, or train without a "
                f"margin."
            )
        return GroupCodes(codes=known.codes[self.data.private_rows], names=known.names)


def read_encoded(
    estimator: Any, given: FitArguments, rng: np.random.Generator, *, coins: Noise | None = None
) -> EncodedInputs:
    """Check the arguments, and fit the encoder on what is public.

    ``estimator`` has the arguments ``schema``, ``classes`` and ``public_fraction``. ``coins`` are
    as for ``read_fit_inputs``.
    """
    by_schema = given.X_public is None and estimator.public_fraction is None
    if by_schema and estimator.schema is None and not may_be_pictures(given.X):
        raise ValueError(
            f"{type(estimator).__name__} scales its columns by public knowledge, and there is "
            f"none. Pass X_public= (rows without labels), set public_fraction=0.1 to set rows of "
            f"X aside (their features are then not covered), or declare schema= with bounds."
        )
    # With a schema alone the public rows are taken away again below.
    X_public = given.X if by_schema else given.X_public
    data = read_fit_inputs(
        estimator,
        FitArguments(X=given.X, y=given.y, X_public=X_public),
        rng=rng,
        public_fraction=estimator.public_fraction,
        n_is_public=False,
        coins=coins,
    )
    if given.X_public is not None and hasattr(estimator, "budget"):  # else nothing is promised
        refuse_shared(data, data.X_public)
    encoder: PublicEncoder | PixelEncoder
    if by_schema and not may_be_pictures(data.X_public):  # those have no columns to be scaled
        encoder = PublicEncoder(estimator.schema).fit(None)
    else:
        encoder, _ = encoded(data.X_public, estimator.schema)
    if by_schema:
        nobody: IntArray = np.zeros(0, dtype=np.int64)
        data = replace(data, X_public=take(data.X_public, nobody))
    return EncodedInputs(data=data, encoder=encoder)
