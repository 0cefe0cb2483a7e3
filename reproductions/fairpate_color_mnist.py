"""placeholder"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.datasets.images import load_color_mnist
from evenhand.learners.nets.architectures import ColorMNISTNetwork
from evenhand.teachers import by_position
from evenhand.teachers.stacked import NetworkTeachers

N_TEACHERS, N_PUBLIC, N_ALL_PUBLIC, N_VALIDATION = 200, 1000, 3000, 1000
TEACHERS = NetworkTeachers(ColorMNISTNetwork(), epochs=10, batch_size=32, learning_rate=0.003)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pictures:
    """Rows of one part: pixels (n, 3, 28, 28), digits, colours."""

    X: Any
    y: Any
    groups: Any

    def take(self, rows: Any) -> Pictures:
        """Return some of them."""
        return Pictures(X=self.X[rows], y=self.y[rows], groups=self.groups[rows])


def parts(seed: int) -> dict[str, Pictures]:
    """Return the private, public, validation and test rows of a seed, which colours them too."""
    train, test = (
        load_color_mnist(part, random_state=2 * seed + (part == "test"))
        for part in ("train", "test")
    )
    order = np.random.default_rng(seed).permutation(len(train))
    edges = (N_ALL_PUBLIC, N_ALL_PUBLIC + N_VALIDATION)
    public, validation, private = np.split(order, edges)
    rows = {"private": private, "public": public, "validation": validation}
    found = {name: train.take(some) for name, some in rows.items()} | {"test": test}
    return {
        name: Pictures(
            X=np.ascontiguousarray(data.X), y=data.y, groups=np.asarray(data.sensitive_features)
        )
        for name, data in found.items()
    }


def votes_of(seed: int, folder: Path) -> dict[str, Any]:
    """Return the votes of the teachers on the public rows, kept in a folder that is private."""
    file = folder / f"votes-{seed}.npz"
    if not file.exists():
        data, start = parts(seed), time.process_time()
        private, public = data["private"], data["public"]
        deal = by_position(len(private.y), N_TEACHERS, seed)
        ensemble = TEACHERS.fit(
            private.X,
            private.y,
            deal,
            10,
            np.random.default_rng(seed),
            progress=lambda done, n: print(f"{done} of {n} teachers", flush=True),
        )
        trained = time.process_time() - start
        votes = ensemble.vote(public.X).astype(np.uint8)
        seconds = time.process_time() - start
        np.savez_compressed(file, votes=votes, trained_s=trained, voted_s=seconds - trained)
    return dict(np.load(file))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--only", choices=("votes",))
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        found = votes_of(seed, arguments.runs)
        y = parts(seed)["public"].y
        winners = np.array([np.bincount(of, minlength=10).argmax() for of in found["votes"].T])
        print(seed, (found["votes"] == y).mean(), (winners == y).mean(), found["trained_s"], found["voted_s"])


if __name__ == "__main__":
    main()
