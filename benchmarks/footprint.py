"""What a base install takes on disk, and what of it ``import evenhand`` and ``demo`` import.

``python benchmarks/footprint.py [--commit A ...]`` installs each commit into a clean environment,
at the versions of ``constraints.txt``, and asks ``du -sm`` for every folder of ``site-packages``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from _harness import heading, report

ROOT = Path(__file__).parents[1]
TOUCHED = """
import json, sys
from contextlib import redirect_stdout
if sys.argv[1:]:
    from evenhand.cli import app
    with redirect_stdout(sys.stderr):
        try: app(sys.argv[1:])
        except SystemExit as end: assert not end.code, end.code
else:
    import evenhand
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def measured(commit: str, folder: Path) -> Mapping[str, object]:
    """Install a commit into a clean environment, and measure it in MiB."""
    asked = ["git", "rev-parse", "--short", commit]
    commit = subprocess.check_output(asked, cwd=ROOT, text=True).strip()
    source, home = folder / "source", folder / "environment"
    source.mkdir()
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x"], cwd=source, check=True, input=packed.stdout)
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "-c", source / "constraints.txt"]
    subprocess.run([*pip, source], check=True, stderr=subprocess.DEVNULL)

    def touched(*words: str) -> list[str]:
        done = subprocess.run(
            [python, "-c", TOUCHED, *words], check=True, capture_output=True, text=True, cwd=folder
        )
        return [name for name in json.loads(done.stdout) if name in sizes]

    site = next((home / "lib").glob("python*")) / "site-packages"
    sizes = {path.name: megabytes(path) for path in site.iterdir() if path.is_dir()}
    return {
        "commit": commit,
        "environment_mib": megabytes(home),
        "packages_mib": {name: size for name, size in sorted(sizes.items()) if size >= 5},
        "imported_by_import": touched(),
        "imported_by_demo": touched("demo", "--out", "made"),
    }


def megabytes(path: Path) -> int:
    """Return what ``du -sm`` says."""
    done = subprocess.run(["du", "-sm", path], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="append the line to results.jsonl")
    parser.add_argument("--commit", action="append", help="default: the newest")
    given = parser.parse_args()
    rows = []
    for commit in given.commit or ["HEAD"]:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(commit, Path(folder)))
    report(
        {**heading("base install", seed=0, sizes={"extras": "none"}), "rows": rows},
        save=given.save,
    )


if __name__ == "__main__":
    main()
