"""``--reseed K``: all seeds of a test move, alike in every process, and pinned numbers stay."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import reseed

HERE = Path(__file__).parent
DRAWS = """
import json, random
import numpy as np, pandas as pd
from sklearn.utils import check_random_state
from evenhand._random import as_generator
from evenhand.privacy import SeededNoise

random.seed(7)
print(json.dumps({
    "default_rng": np.random.default_rng(7).random(),
    "a list": np.random.default_rng([7, 8]).random(),
    "random_state": as_generator(7).random(),
    "SeededNoise": float(SeededNoise(7).gaussian(1.0, (1,))[0]),
    "scikit-learn": check_random_state(7).random_sample(),
    "pandas": int(pd.Series(range(10**6)).sample(1, random_state=7).iloc[0]),
    "random": random.random(),
    "random.Random": random.Random(7).random(),
}))
"""
SUITE = '''
"""
>>> import numpy as np
>>> round(np.random.default_rng(7).random(), 3)
0.625
"""
import json, os, subprocess, sys
import numpy as np
import pytest

def draw():
    return round(np.random.default_rng(7).random(), 3)

def test_a_verdict_of_one_seed():
    assert draw() == 0.625

@pytest.mark.pinned(reason="0.625 was written down")
def test_a_number_that_was_written_down():
    assert draw() == 0.625

def test_a_process_draws_what_the_test_does():
    code = "import numpy as np; print(round(np.random.default_rng(7).random(), 3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert float(done.stdout) == draw()

def test_a_seed_that_is_refused_stays_so():
    with pytest.raises(ValueError):
        np.random.default_rng(-1)
    with pytest.raises(ValueError):
        np.random.RandomState(2**32)

def test_torch_draws_others_too():
    torch = pytest.importorskip("torch")
    torch.manual_seed(7)
    one = float(torch.rand(1))
    torch.random.manual_seed(7)
    assert float(torch.rand(1)) == one
    assert abs(one - 0.5349) > 1e-4

def test_a_random_state_is_one():
    assert isinstance(np.random.mtrand._rand, np.random.RandomState)
    assert isinstance(np.random.RandomState(7), np.random.RandomState)
'''


@pytest.mark.pinned(reason="the draws of this process are the ones without a shift")
def test_every_door_is_shifted() -> None:
    env = {**os.environ, reseed.VARIABLE: "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(HERE / "reseed"), env.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", DRAWS], capture_output=True, text=True, check=True, env=env
    )
    with redirect_stdout(io.StringIO()) as written:
        exec(DRAWS, {})
    shifted, plain = json.loads(done.stdout), json.loads(written.getvalue())
    assert plain["default_rng"] == pytest.approx(0.6250954)
    for door, drawn in plain.items():
        assert shifted[door] != drawn, door


@pytest.mark.slow
def test_what_hangs_on_one_seed_fails_and_what_is_pinned_stays(tmp_path: Path) -> None:
    shutil.copy(HERE / "conftest.py", tmp_path)
    for beside in ("reseed", "postgres"):  # modules that conftest.py imports
        shutil.copytree(HERE / beside, tmp_path / beside)
    (tmp_path / "test_small.py").write_text(SUITE)
    words = "-q -rA -p no:cacheprovider --doctest-modules --import-mode=importlib -n 1 --reseed 1"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words.split(), "test_small.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    found = re.findall(r"^(PASSED|FAILED) test_small\.py::(\S+)", done.stdout, re.MULTILINE)
    assert len(found) == 7, done.stdout + done.stderr
    failed = {name for verdict, name in found if verdict == "FAILED"}
    assert failed == {"test_a_verdict_of_one_seed"}


def test_no_seed_enters_by_another_door() -> None:
    others = r"from numpy\.random import|SeedSequence\(|PCG64\(|MT19937\("
    for file in [*HERE.rglob("*.py"), *(HERE.parent / "src").rglob("*.py")]:
        if file != Path(__file__):
            found = re.search(others, file.read_text(encoding="utf-8"))
            assert not found, f"{file} seeds by {found and found[0]}, which --reseed cannot shift"
    # Of the tests alone: generators of PyTorch are seeded from a Generator in the package.
    for file in HERE.rglob("test_*.py"):
        if file != Path(__file__):
            assert "torch.Generator(" not in file.read_text(encoding="utf-8"), file
