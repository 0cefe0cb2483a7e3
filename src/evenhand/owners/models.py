"""Any model of an owner as votes: a file of skops, a file of ONNX, or a command."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._extras import MissingExtra, installed
from evenhand.learners.skops_files import read_skops
from evenhand.typing import Array

HARMLESS: Final = ("numpy.dtype",)
"""Types beside those that skops trusts: it reads one as that of an empty array, without pickle."""

COMMAND_S: Final = 600.0
"""Seconds that a command may take, if nothing else is said."""


class Voter(Protocol):
    """What labels rows: the only thing that is asked of a model."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """All classes, if the model knows them."""

    def labels(self, rows: pd.DataFrame) -> Array:
        """Return the class of each row; a missing one is a withheld vote."""

    def probabilities(self, rows: pd.DataFrame) -> Array:
        """Return the probability of each class, shape (n, n_classes), in the order of classes."""


def _as_they_are(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


@dataclass(frozen=True, eq=False)
class ScikitModel:
    """A fitted scikit-learn classifier or pipeline."""

    model: Any
    """A fitted classifier."""
    where: str = "the model"
    """What messages call it."""
    prepared: Callable[[pd.DataFrame], pd.DataFrame] = field(default=_as_they_are, repr=False)
    """Called with the columns that it reads, for what it reads them as."""

    @classmethod
    def read(
        cls,
        path: Path,
        trusted: Iterable[str] = (),
        prepared: Callable[[pd.DataFrame], pd.DataFrame] = _as_they_are,
    ) -> ScikitModel:
        """Read a file of skops; types that could run code are refused unless named.

        Raises
        ------
        TypesNotTrusted
            Naming every such type; nothing was made then.
        ValueError
            If it is no file of skops, or what it holds does not classify.
        """
        way_out = "If you trust whoever made this file, name each of them with --trust TYPE."
        content = path.read_bytes()
        try:
            model = read_skops(content, path, (*HARMLESS, *trusted), way_out)
        except ValueError:
            raise
        except Exception as error:  # a damaged archive, or JSON of another kind
            raise ValueError(
                f"{path} is no file of skops ({type(error).__name__}). Write one with "
                f"skops.io.dump(model, path)."
            ) from None
        try:
            _ = model.predict, model.classes_
        except AttributeError:
            raise ValueError(
                f"{path} holds a {type(model).__name__}, which is no fitted classifier. Save what "
                f"has predict and classes_, such as a Pipeline that ends with a classifier."
            ) from None
        return cls(model, str(path), prepared)

    @property
    def classes(self) -> tuple[Any, ...]:
        """Classes that the model was fitted on."""
        return tuple(np.asarray(self.model.classes_).tolist())

    def labels(self, rows: pd.DataFrame) -> Array:
        """Predict."""
        return np.asarray(self.model.predict(self._given(rows)))

    def probabilities(self, rows: pd.DataFrame) -> Array:
        """Predict probabilities."""
        if not hasattr(self.model, "predict_proba"):
            raise ValueError(
                f"{self.where} has no predict_proba. Leave --probabilities out: labels are votes."
            )
        return np.asarray(self.model.predict_proba(self._given(rows)), dtype=np.float64)

    def _given(self, rows: pd.DataFrame) -> Any:
        try:
            names = self.model.feature_names_in_
        except AttributeError:  # it was fitted on an array
            return self.prepared(rows).to_numpy()
        return self.prepared(rows[_columns(rows, [str(name) for name in names], self.where)])


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """A classifier in a file of ONNX: its first output labels rows, its second says how surely.

    One input of two axes takes all columns as numbers, in the order of the table; otherwise each
    input takes the column of its name.
    """

    session: Any
    """An ``onnxruntime.InferenceSession``."""
    where: str
    classes: tuple[Any, ...] | None = None
    """Names of the codes, where the first output is one of codes."""

    @classmethod
    def read(cls, path: Path, classes: Sequence[Any] | None = None) -> OnnxModel:
        """Read a file of ONNX. Needs the extra ``onnx``."""
        if not installed("onnxruntime"):
            raise MissingExtra.of("A model in a file of ONNX", "onnxruntime", "onnx")
        runtime = import_module("onnxruntime")
        content = path.read_bytes()
        try:
            session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ValueError(f"{path} is no model of ONNX: {str(error)[:200]}") from None
        return cls(session, str(path), None if classes is None else tuple(classes))

    def labels(self, rows: pd.DataFrame) -> Array:
        """Run the model, and return its first output."""
        found = np.asarray(self._run(rows)[0]).reshape(-1)
        if found.dtype.kind == "f":
            raise ValueError(
                f"{self.where}: the first output holds fractions, and labels are needed there. Add "
                f"--probabilities if they are probabilities in the second output, or export the "
                f"model with its labels first."
            )
        if found.dtype.kind in "iu" and self.classes is not None:
            from evenhand._numerals import text_of

            known = {text_of(name) for name in self.classes}
            if not {text_of(code) for code in found} <= known:  # codes, and not names
                if found.min() < 0 or found.max() >= len(self.classes):
                    raise ValueError(
                        f"{self.where} says codes from {found.min()} to {found.max()}, and there "
                        f"are {len(self.classes)} classes. Name all of them with --classes."
                    )
                named: Array = np.asarray(self.classes, dtype=object)[found]
                return named
        labels: Array = found
        return labels

    def probabilities(self, rows: pd.DataFrame) -> Array:
        """Run the model, and return its second output."""
        found = self._run(rows)
        if len(found) < 2 or not isinstance(found[1], np.ndarray) or found[1].ndim != 2:
            raise ValueError(
                f"{self.where} has no array of probabilities as its second output. Export it "
                f"without ZipMap, or leave --probabilities out."
            )
        return np.asarray(found[1], dtype=np.float64)

    def _run(self, rows: pd.DataFrame) -> list[Any]:
        inputs = self.session.get_inputs()
        try:
            if len(inputs) == 1 and inputs[0].name not in rows:
                kind = np.float64 if "double" in inputs[0].type else np.float32
                given = {inputs[0].name: rows.to_numpy(dtype=kind)}
            else:
                names = _columns(rows, [one.name for one in inputs], self.where)
                given = {
                    one.name: rows[[name]].to_numpy(dtype=_dtype_of(one.type))
                    for one, name in zip(inputs, names, strict=True)
                }
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.where} takes numbers, and a column of the public rows holds something "
                f"else. Leave it out with --drop, or export the model with one input for each "
                f"column. ({type(error).__name__})"
            ) from None
        try:
            return list(self.session.run(None, given))
        except Exception as error:  # whatever the runtime raises, its first line says why
            raise ValueError(
                f"{self.where} cannot read these rows: {str(error).splitlines()[0][:200]} Leave "
                f"columns that are no features out with --drop."
            ) from None


@dataclass(frozen=True, eq=False)
class CommandModel:
    """A command of the owner's own: rows as CSV on its stdin, a label for each on its stdout.

    An empty line is a withheld vote. The command runs as it is, without a shell.
    """

    command: str
    classes: tuple[Any, ...]
    timeout_s: float = COMMAND_S

    def labels(self, rows: pd.DataFrame) -> Array:
        """Run the command once for all rows."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise ValueError(f"--command {self.command!r} cannot be read: {error}.") from None
        if not words:
            raise ValueError("--command is empty. Name a program that labels rows.")
        try:
            done = subprocess.run(
                words,
                input=rows.to_csv(index=False),
                capture_output=True,
                text=True,
                check=False,
                timeout=self.timeout_s,
            )
        except OSError as error:
            raise ValueError(f"{words[0]} cannot be run: {error.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise ValueError(
                f"{words[0]} did not end within {self.timeout_s:g} seconds. Make it faster, or "
                f"write its labels to a file and use: --command 'cat labels.txt'."
            ) from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
            raise ValueError(
                f"{words[0]} ended with {done.returncode}: {_values.quoted(last)}. Nothing was "
                f"written."
            )
        lines = done.stdout.splitlines()
        if len(lines) != len(rows):
            raise ValueError(
                f"{words[0]} answered {len(lines)} lines for {len(rows)} rows. It must write one "
                f"label on a line for each row after the header, in their order."
            )
        return np.array([line.strip() or None for line in lines], dtype=object)

    def probabilities(self, rows: pd.DataFrame) -> Array:
        """Refuse: a command says labels."""
        raise ValueError("--command says labels. Leave --probabilities out.")


def cast(
    voters: Sequence[Voter], rows: pd.DataFrame, classes: Sequence[Any], *, probabilities: bool
) -> Array:
    """Let every teacher of an owner vote on the rows.

    Returns
    -------
    ndarray, shape (n_teachers, n_rows), or (n_teachers, n_rows, n_classes) for probabilities
    """
    ask: Callable[[Voter], Array] = _in_order(rows, classes) if probabilities else _labels_of(rows)
    return np.array([ask(voter) for voter in voters])


def _labels_of(rows: pd.DataFrame) -> Callable[[Voter], Array]:
    return lambda voter: np.asarray(voter.labels(rows), dtype=object)


def _in_order(rows: pd.DataFrame, classes: Sequence[Any]) -> Callable[[Voter], Array]:
    """Return probabilities of all classes; a teacher that never saw one gives it none."""
    from evenhand._numerals import text_of

    place = {text_of(name): code for code, name in enumerate(classes)}

    def ask(voter: Voter) -> Array:
        found = voter.probabilities(rows)
        own = [place[text_of(name)] for name in voter.classes or classes]
        whole = np.zeros((len(rows), len(classes)))
        whole[:, own] = found
        return whole

    return ask


def _columns(rows: pd.DataFrame, wanted: list[str], where: str) -> list[Any]:
    """Return the columns that a model reads; all that are absent are named at once."""
    known = {str(name): name for name in rows.columns}
    absent = [name for name in wanted if name not in known]
    if absent:
        raise ValueError(
            f"{where} reads columns that the public rows do not have: "
            f"{', '.join(map(repr, absent[:10]))}. They have {', '.join(map(repr, known))}."
        )
    return [known[name] for name in wanted]


def _dtype_of(kind: str) -> Any:
    if "string" in kind:
        return object
    return np.int64 if "int64" in kind else np.float64 if "double" in kind else np.float32
