"""The ledger is the only door to noise, read from the source itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenhand
from evenhand.privacy import ConfidentGNMax, GNMax, LNMax, SeededNoise
from evenhand.privacy.noisy_max import NoisyThreshold

ROOT = Path(evenhand.__file__).parent

# Who may call what. A mechanism asks the noise; a ledger's Grant asks the mechanism; all others
# ask the Grant, whose methods have names of their own: draw, draw_by_step.
MAY_CALL = {
    "gaussian": "privacy/",
    "laplace": "privacy/",
    "random_words": "privacy/",
    "draw_noise": "privacy/grant.py",
    "draw_noise_by_step": "privacy/grant.py",
}


# An audit stands at the door itself, and makes broken noise on purpose; the contract of a mechanism
# draws to see what it is. No release imports them.
AUDITS = {"testing/door.py", "testing/attack.py", "testing/mechanisms.py"}


def calls(source: str) -> Iterator[tuple[str, int]]:
    """Every method that is called or passed on by name, as text for getattr included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "methodcaller", "attrgetter")
        ):
            yield from (
                (argument.value, node.lineno)
                for argument in node.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )


def strangers(source: str, path: str) -> list[str]:
    return [
        f"{path}:{line} uses .{name}"
        for name, line in calls(source)
        if name in MAY_CALL and not path.startswith(MAY_CALL[name])
    ]


def test_noise_is_drawn_only_behind_the_ledger() -> None:
    found = []
    for file in ROOT.rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        found += [] if path in AUDITS else strangers(file.read_text(), path)
    assert not found, f"{found}: reserve from a Ledger and use Grant.draw"


@pytest.mark.parametrize(
    "source",
    [
        "noise.gaussian(1.0, (3,))",
        "x = self.ledger.noise.laplace(1.0, (3,))",
        "GNMax(sigma=1.0).draw_noise(noise, 3, 2)",
        "f = noise.gaussian\nf(1.0, (3,))",
        "getattr(noise, 'gaussian')(1.0, (3,))",
        "noise.random_words((3,))",
    ],
)
def test_the_reader_sees_a_second_door(source: str) -> None:
    assert strangers(source, "voting/aggregator.py")
    assert not strangers("grant.draw(mechanism, 3)", "voting/aggregator.py")


def test_the_names_that_are_read_are_the_names_that_draw() -> None:
    for mechanism in (GNMax, LNMax, NoisyThreshold):
        assert callable(mechanism.draw_noise)
        assert not hasattr(mechanism, "draw")
    assert not hasattr(ConfidentGNMax, "draw_noise")
    public = {name for name in vars(SeededNoise) if not name.startswith("_")}
    draws = {"gaussian", "laplace", "random_words"}
    assert draws == {name for name in MAY_CALL if not name.startswith("draw_noise")}
    assert public == {"name", "protects", "gaussian_mu", "laplace_mu"} | draws


def test_only_the_noise_itself_calls_the_samplers_of_opendp() -> None:
    for file in ROOT.rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        if "opendp" in file.read_text() and path != "privacy/noise.py":
            tree = ast.walk(ast.parse(file.read_text()))
            names = {
                name
                for node in tree
                if isinstance(node, ast.Import | ast.ImportFrom)
                for name in [getattr(node, "module", None) or "", *(a.name for a in node.names)]
            }
            assert not any(name.split(".")[0] == "opendp" for name in names), path
