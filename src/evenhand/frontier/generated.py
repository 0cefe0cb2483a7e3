"""What a generator on a frontier draws: rows of a table, or pictures; and who judges of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import pandas as pd

from evenhand.datasets import Schema
from evenhand.datasets.images import ImageData
from evenhand.fairness.groups import encode_groups
from evenhand.frontier.run import Plain
from evenhand.generators.images.classifiers import IMAGE_MODELS, ImageJudge, require_classifier
from evenhand.generators.images.codec import ImageSample
from evenhand.generators.images.evaluation import groups_shown
from evenhand.generators.tables.utility import MODELS, Judge
from evenhand.typing import FloatArray


class TrainedJudge(Protocol):
    """A public model that was trained on what was drawn: ``Judge`` or ``ImageJudge``."""

    @property
    def model(self) -> Any:
        """What was trained."""

    def probabilities(self, rows: Any, classes: Sequence[str]) -> FloatArray:
        """Return the probability of each class for each row or picture."""


@dataclass(frozen=True, kw_only=True)
class Generated(ABC):
    """One kind of data: how it is given to a generator, and how what is drawn is judged."""

    payload: ClassVar[str]
    judges: ClassVar[tuple[str, ...]]
    """The models that may be trained on what is drawn, the default first."""

    judge: str
    """One of them."""
    use_sensitive: bool
    """Whether it reads the sensitive columns, when trained and when asked."""
    random_state: int

    @abstractmethod
    def fit_arguments(
        self, X: Any, y: Any, groups: Any, units: Any, declared: Schema | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the private records as ``fit`` and ``check`` of a generator take them."""

    @abstractmethod
    def trained_judge(self, generator: Any, drawn: Any) -> TrainedJudge:
        """Train the judge on what was drawn."""

    @abstractmethod
    def judge_input(self, generator: Any, X: Any, groups: Any) -> Any:
        """Return real records as the judge reads them."""

    @abstractmethod
    def groups_of(self, generator: Any, drawn: Any) -> Any:
        """Return the groups of what was drawn; None where the generator knows none."""

    def columns(self, judge: Any) -> tuple[str, ...]:
        """Return the columns that the judge reads; none where it reads pictures."""
        return ()

    def group_shares(
        self, drawn: Any, X: Any, y: Any, groups: Any, *, even: bool
    ) -> dict[str, dict[str, Plain]]:
        """Return by group what share was asked for, and what real records say was drawn."""
        return {}


class GeneratedRows(Generated):
    """Rows of a table."""

    payload = "tables"
    judges = tuple(MODELS)

    def fit_arguments(
        self, X: Any, y: Any, groups: Any, units: Any, declared: Schema | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return one table of the private rows, and the roles of its columns."""
        frame = _with_groups(X, groups).assign(**{str(y.name): y})
        sensitive = [str(name) for name in pd.DataFrame(groups).columns]
        columns: dict[str, Any] = {"label": str(y.name), "sensitive": sensitive}
        if declared is not None:
            known = tuple(c for c in declared.columns if c.name in frame)
            columns["schema"] = Schema(columns=known)
        if units is not None:
            columns["unit"] = str(units.name)
            frame = frame.assign(**{columns["unit"]: units})
        return (frame,), columns

    def trained_judge(self, generator: Any, drawn: Any) -> Judge:
        """Train the judge on rows."""
        label, *sensitive = generator.conditions_.names
        schema = generator.codec_.schema
        return Judge.of(
            schema.as_measured(drawn),
            label=label,
            sensitive=sensitive,
            model=self.judge,
            use_sensitive=self.use_sensitive,
            schema=schema,
            random_state=self.random_state,
        )

    def judge_input(self, generator: Any, X: Any, groups: Any) -> Any:
        """Return rows with their groups, as the schema measures them."""
        rows = X if groups is None else _with_groups(X, groups)
        return generator.codec_.schema.as_measured(rows)

    def groups_of(self, generator: Any, drawn: Any) -> Any:
        """Return the sensitive columns."""
        return drawn[list(generator.conditions_.names[1:])]

    def columns(self, judge: Judge) -> tuple[str, ...]:
        """Return the columns that the judge reads."""
        return judge.features.names


class GeneratedPictures(Generated):
    """Pictures, (n, channels, h, w) as a frontier has them; no judge of them reads the group."""

    payload = "images"
    judges = tuple(IMAGE_MODELS)

    def fit_arguments(
        self, X: Any, y: Any, groups: Any, units: Any, declared: Schema | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the private pictures, labels, groups and units."""
        require_classifier(self.judge, X.shape[2:])  # before anything is spent
        return (_pictures(X), y), {"sensitive_features": groups, "unit_ids": units}

    def trained_judge(self, generator: Any, drawn: ImageSample) -> ImageJudge:
        """Train the judge on pictures."""
        return ImageJudge.of(drawn, model=self.judge, random_state=self.random_state)

    def judge_input(self, generator: Any, X: Any, groups: Any) -> Any:
        """Return pictures with channels last."""
        return _pictures(X)

    def groups_of(self, generator: Any, drawn: ImageSample) -> Any:
        """Return the groups that were asked for."""
        return drawn.sensitive_features

    def group_shares(
        self, drawn: ImageSample, X: Any, y: Any, groups: Any, *, even: bool
    ) -> dict[str, dict[str, Plain]]:
        """Return shares by a classifier of real pictures, and how well it knows each group.

        It is trained on one half of the test pictures and tried on the other. Even shares are asked
        for if ``even`` is set, and where the generator knows no groups; else those as learnt. Empty
        with too few pictures to train it on.
        """
        test = ImageData.of(X, np.asarray(y), groups)
        found = groups_shown(drawn, test, train=None, random_state=self.random_state)
        if found is None:
            return {}
        judged, _ = found
        names = [name for name, _ in judged.balance.groups]
        asked = np.full(len(names), 1.0 / len(names))
        if drawn.sensitive_features is not None and not even:
            coded = encode_groups(drawn.sensitive_features, names=tuple(names))
            asked = coded.sizes / coded.sizes.sum()
        known = dict(judged.recognised)
        return {
            name: {
                "share_asked": float(at),
                "share_shown": share,
                "recognised": known[name] if math.isfinite(known[name]) else None,
            }
            for at, (name, share) in zip(asked, judged.balance.groups, strict=True)
        }


BY_JUDGE: Final[Mapping[str, type[Generated]]] = {
    judge: kind for kind in (GeneratedRows, GeneratedPictures) for judge in kind.judges
}
"""The kind of data that each judge is trained on."""


def _with_groups(X: pd.DataFrame, groups: Any) -> pd.DataFrame:
    return X.assign(**{str(name): column for name, column in pd.DataFrame(groups).items()})


def _pictures(X: Any) -> Any:
    """Return (n, channels, h, w) as (n, h, w) or (n, h, w, 3)."""
    return X[:, 0] if X.shape[1] == 1 else np.moveaxis(X, 1, -1)
