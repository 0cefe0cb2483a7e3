"""Synthesizers of other projects, run by an interpreter that has their package."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand import Budget
from evenhand.generators import MarginalSynthesizer
from evenhand.privacy import FloatNoise
from evenhand.privacy.renyi import ORDERS, RenyiCurve

SETTINGS = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "TQDM_DISABLE": "1",  # no bars
}


def has(python: str, package: str) -> bool:
    """Return whether an interpreter has a package."""
    tried = subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False)
    return tried.returncode == 0


class TookTooLong(Exception):
    """A run was stopped at its limit of processor time."""


def run(python: str, script: str, *words: object, minutes: float | None = None) -> float:
    """Run a script of this folder by another interpreter; return seconds of processor time.

    Raises
    ------
    TookTooLong
        After ``minutes`` of processor time.
    """

    def limit() -> None:
        if minutes is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (round(60 * minutes),) * 2)

    began = _of_children()
    command = [python, str(Path(__file__).parent / script), *map(str, words)]
    ended = subprocess.run(
        command, env=os.environ | SETTINGS, preexec_fn=limit, check=False
    ).returncode
    seconds = _of_children() - began
    if ended < 0 and minutes is not None and seconds >= 60 * minutes - 1:
        raise TookTooLong(f"{script} was stopped after {seconds:.0f} s.")
    if ended:
        raise subprocess.CalledProcessError(ended, command)
    return seconds


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def zero_concentrated(budget: Budget) -> float:
    """Return rho at which zero-concentrated privacy gives (epsilon, delta), by the tight bound."""
    low, high = 0.0, budget.epsilon  # epsilon is never below rho
    for _ in range(60):
        middle = 0.5 * (low + high)
        over = RenyiCurve(ORDERS, ORDERS * middle).epsilon(budget.delta) > budget.epsilon
        low, high = (low, middle) if over else (middle, high)
    return low


class Coded(NamedTuple):
    """Private rows in the bins that ours released, whose cost is not counted for others."""

    codec: Any
    codes: Any
    label: str

    @classmethod
    def of(cls, private: Any, label: str, sensitive: str, budget: Budget, seed: int) -> Coded:
        """Release bins as ours does, and read the rows in them."""
        made = MarginalSynthesizer(pairs=False, random_state=seed, noise=FloatNoise())
        codec = made.fit(private, label=label, sensitive=sensitive, budget=budget).codec_
        kept = private.copy()
        for column in codec.columns:  # what was not named, as our generators read it
            if column.bins is None and "other" in column.schema.categories:
                known = kept[column.name].astype(str).isin(column.schema.categories)
                kept[column.name] = kept[column.name].where(
                    known | kept[column.name].isna(), "other"
                )
        return cls(codec, codec.encode(kept), label)

    def decoded(self, codes: Any, rng: np.random.Generator) -> pd.DataFrame:
        """Return rows of codes."""
        columns = enumerate(self.codec.columns)
        return pd.concat([column.decode(codes[:, i], rng) for i, column in columns], axis=1)

    def drawn(
        self, python: str, name: str, budget: Budget, n: int, seed: int, minutes: float | None
    ) -> tuple[Any, Mapping[str, float]]:
        """Return codes of n rows drawn by MST, AIM or PrivBayes, and what it took."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
            sizes = [column.n_states for column in self.codec.columns]
            label = self.codec.names.index(self.label)
            np.savez(source, codes=self.codes, sizes=sizes, label=label)
            script, amount = "_graphical.py", zero_concentrated(budget)
            if name == "PrivBayes":  # its epsilon has no delta
                script, amount = "_peers.py", budget.epsilon
            words = (script, name, source, target, repr(amount), n, seed)
            seconds = run(python, *words, minutes=minutes)
            found = dict(np.load(target))
            codes = found.pop("codes")
            return codes, {"seconds": seconds} | {key: of.item() for key, of in found.items()}


def drawn_without_privacy(
    python: str, name: str, private: pd.DataFrame, n: int, seed: int, minutes: float | None
) -> tuple[pd.DataFrame, Mapping[str, float]]:
    """Return n rows of a copula or CTGAN fitted to rows as they are, and what it took."""
    numbers = [column for column, dtype in private.dtypes.items() if dtype.kind in "iuf"]
    texts = dict.fromkeys(private.columns.drop(numbers), str)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        private.to_csv(source, index=False)
        words = (name, source, target, json.dumps(numbers), n, seed)
        seconds = run(python, "_peers.py", *words, minutes=minutes)
        made = pd.read_csv(target, dtype=texts)
    made = made[list(private)].astype(private.dtypes.to_dict())
    return made, {"seconds": seconds}
