"""All faces of UTKFace from files to features: seconds of each step, and the process's peak memory.

The faces are written as files beside a PICTURES.csv in a temporary folder, as a user has them, and
read back: every file is looked at, the pictures are split, and each part becomes features by means
of the channels of its tiles, which cost next to nothing, with a cache in the same folder. Beside it
``load_utkface``, which holds all pictures. The time of the clock is processor time.
"""

from __future__ import annotations

import argparse
import csv
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from _harness import heading, report

from evenhand.datasets.features import extract
from evenhand.datasets.features.extractor import as_floats
from evenhand.datasets.images import ImageData, load_utkface
from evenhand.datasets.images.utkface import GENDERS, RACES, _from_npz
from evenhand.typing import Array


class Tiles:
    """Means of each channel in 16 tiles: an extractor that takes no time."""

    name, version, digest = "tiles", "1", "means of 4 x 4 tiles"
    trained_on, licence, dimension = "nothing", "none needed", 48

    def transform(self, pictures: Array) -> Any:
        """Return the means."""
        x = as_floats(pictures)
        n, c, h, w = x.shape
        return x.reshape(n, c, 4, h // 4, 4, w // 4).mean(axis=(3, 5)).reshape(n, -1)


def peak_mib() -> float:
    """Peak of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def write(folder: Path) -> Path:
    """Write the faces as files, and their table."""
    files, (_, gender, race) = _from_npz()
    path = folder / "PICTURES.csv"
    with path.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["path", "label", "group"])
        for i, (_, content) in enumerate(files):
            (folder / f"{i}.jpg").write_bytes(content)
            rows.writerow([f"{i}.jpg", GENDERS[gender[i]], RACES[race[i]]])
    return path


def from_files() -> dict[str, float]:
    """Return seconds and peaks of the way through files."""
    told: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        path = write(Path(scratch))
        told["peak_mib_before"] = peak_mib()
        start = time.process_time()

        def lap(name: str) -> None:
            nonlocal start
            told[name] = round(time.process_time() - start, 2)
            start = time.process_time()

        data = ImageData.from_csv(path)
        lap("looked_at_s")
        parts = data.split(random_state=0)
        for name in ("computed_s", "from_cache_s"):
            rows = [
                extract(part.X, Tiles(), cache=Path(scratch) / "cache")
                for part in (parts.private, parts.public, parts.test)
            ]
            lap(name)
        assert sum(map(len, rows)) == len(data) == 23_704
    told["peak_mib"] = peak_mib()
    return told


def in_memory() -> dict[str, float]:
    """Return seconds and peak of all pictures in memory, split and read once."""
    start = time.process_time()
    parts = load_utkface(keep_copies=True).split(random_state=0)
    took = round(time.process_time() - start, 2)
    for part in (parts.private, parts.public, parts.test):
        extract(part.X, Tiles(), cache=False)
    return {"loaded_and_split_s": took, "peak_mib": peak_mib()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=("files", "memory"))
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    told = from_files() if asked.way == "files" else in_memory()
    sizes = {"pictures": 23_704, "pixels": "3 x 64 x 64"}
    line = heading(f"pictures, {asked.way}", seed=0, sizes=sizes) | told
    report({**line, "target": "at most 2 GiB"}, save=asked.save)


if __name__ == "__main__":
    main()
