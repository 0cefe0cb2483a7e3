"""``evenhand verify`` and ``--sign``: who says so, and whether the files are theirs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import evenhand
from evenhand._folder import seal
from evenhand._signing import PrivateKey, PublicKey

from ..hostile_skops import callables, files_for

Run = Callable[..., Any]
PEM, RAW = serialization.Encoding.PEM, serialization.NoEncryption()
PKCS8 = serialization.PrivateFormat.PKCS8
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo


def write_keys(folder: Path, name: str) -> None:
    key = Ed25519PrivateKey.generate()
    (folder / f"{name}.pem").write_bytes(key.private_bytes(PEM, PKCS8, RAW))
    (folder / f"{name}.pub.pem").write_bytes(key.public_key().public_bytes(PEM, SPKI))


@pytest.fixture
def signed(model: Path, town: Path) -> Path:
    """Return a signed model, entered by its parent; "ours" and "other" are pairs of keys."""
    write_keys(town, "ours")
    write_keys(town, "other")
    seal(model, "model", PrivateKey.read("ours.pem"))
    return model


def checks(result: Any) -> dict[str, Any]:
    said = json.loads(result.stdout)
    return {check["check"]: check["ok"] for check in said["checks"]} | {"all": said["verified"]}


def test_a_signed_model_is_verified(signed: Path, run: Run) -> None:
    said = run("verify", signed, "--key", "ours.pub.pem", "--json")
    assert checks(said) == {"files": True, "claim": True, "signature": True, "all": True}
    shown = run("verify", signed, "--key", "ours.pub.pem").stdout
    assert PublicKey.read("ours.pub.pem").fingerprint in shown


def test_without_a_key_it_says_what_it_could_not_check(signed: Path, run: Run) -> None:
    said = run("verify", signed, "--json")
    assert checks(said) == {"files": True, "claim": True, "signature": None, "all": True}
    assert "without --key nobody can say by whom" in run("verify", signed).stdout
    (signed / "manifest.sig").unlink()
    assert "the folder is not signed" in run("verify", signed).stdout


@pytest.mark.parametrize(
    ("change", "key", "wrong"),
    [
        (lambda model: None, "other.pub.pem", "signature"),
        (lambda model: (model / "manifest.sig").unlink(), "ours.pub.pem", "signature"),
        (lambda model: (model / "manifest.sig").write_bytes(b"x"), "ours.pub.pem", "signature"),
        (lambda model: (model / "new.txt").write_text("x"), "ours.pub.pem", "files"),
        (lambda model: (model / "report.html").write_text("x"), "ours.pub.pem", "files"),
        (lambda model: (model / "manifest.json").unlink(), "ours.pub.pem", "files"),
    ],
)
def test_what_is_wrong_ends_in_exit_code_3(
    change: Any, key: str, wrong: str, signed: Path, run: Run
) -> None:
    change(signed)
    found = checks(run("verify", signed, "--key", key, "--json", exit_code=3))
    assert found[wrong] is False
    assert found["all"] is False


def test_a_careful_forger_is_found_by_the_signature_alone(signed: Path, run: Run) -> None:
    # Ledger, claim and manifest are made anew together: whole, and not by whom it should be.
    claim = json.loads((signed / "claim.json").read_text())
    claim["guarantee"]["public"].append("what a forger adds")
    claim["sentence"] = str(evenhand.privacy.Guarantee.from_dict(claim["guarantee"]))
    (signed / "claim.json").write_text(json.dumps(claim))
    signature = (signed / "manifest.sig").read_bytes()
    seal(signed, "model")
    (signed / "manifest.sig").write_bytes(signature)
    assert checks(run("verify", signed, "--json"))["all"] is True
    found = checks(run("verify", signed, "--key", "ours.pub.pem", "--json", exit_code=3))
    assert found == {"files": True, "claim": True, "signature": False, "all": False}


def test_a_forged_claim_is_found_without_a_key(model: Path, run: Run) -> None:
    claim = json.loads((model / "claim.json").read_text())
    claim["ledger"]["entries"] = []
    (model / "claim.json").write_text(json.dumps(claim))
    seal(model, "model")
    found = checks(run("verify", model, "--json", exit_code=3))
    assert found == {"files": True, "claim": False, "signature": None, "all": False}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_agrees(signed: Path) -> None:
    # A second implementation, and the command that the page gives.
    command = "openssl pkeyutl -verify -pubin -inkey {} -rawin -in {}/manifest.json -sigfile {}"
    for key, agrees in (("ours", True), ("other", False)):
        words = command.format(f"{key}.pub.pem", signed, signed / "manifest.sig").split()
        done = subprocess.run(words, capture_output=True, check=False)
        assert (done.returncode == 0) == agrees, done.stderr


def test_keys_that_are_none_are_refused(signed: Path, town: Path, refuse: Run) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    locked = serialization.BestAvailableEncryption(b"secret")
    ours = PrivateKey.read("ours.pem").key
    (town / "ec.pem").write_bytes(other.private_bytes(PEM, PKCS8, RAW))
    (town / "ec.pub.pem").write_bytes(other.public_key().public_bytes(PEM, SPKI))
    (town / "locked.pem").write_bytes(ours.private_bytes(PEM, PKCS8, locked))
    (town / "text.pem").write_text("no key")
    for file, words in (
        ("ours.pem", "is a private key; who checks needs the public one"),
        ("ec.pub.pem", "a key of another kind"),
        ("text.pem", "is not a public key in PEM"),
        ("missing.pem", "No such file"),
    ):
        assert words in refuse("verify", signed, "--key", file)
    for file, words in (
        ("ours.pub.pem", "is a public key, and signing needs the private one"),
        ("ec.pem", "a key of another kind"),
        ("locked.pem", "is under a password"),
        ("text.pem", "is not a private key in PEM"),
    ):
        with pytest.raises(ValueError, match=words):
            PrivateKey.read(file)
    said = refuse("verify", "nothing")
    assert "is not a folder" in said
    assert "evenhand synthesize --save" in said


def test_train_signs_and_reads_the_key_before_anything_is_spent(
    train: Run, refuse: Run, asked: Run, town: Path, run: Run
) -> None:
    write_keys(town, "ours")
    assert "is not a private key" in refuse(*asked({}), "--sign", "private.csv")
    assert not (town / "model").exists()
    train({}, "--sign", "ours.pem")
    said = run("verify", "model", "--key", "ours.pub.pem", "--json")
    assert checks(said)["all"] is True
    modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in (town / "model").iterdir()}
    os.umask(umask := os.umask(0))
    assert set(modes.values()) == {0o666 & ~umask}
    assert stat.S_IMODE((town / "model").stat().st_mode) == 0o777 & ~umask


def test_python_signs_as_well(model: Path, town: Path, run: Run) -> None:
    write_keys(town, "ours")
    evenhand.load(model).save("again", sign="ours.pem")
    assert checks(run("verify", "again", "--key", "ours.pub.pem", "--json"))["all"] is True


def test_a_model_of_a_stranger_ends_in_one_line(model: Path, refuse: Run) -> None:
    trip = Path("tripwire").absolute()
    head = json.loads((model / "model.json").read_text())
    head["student"] = {"kind": "skops", "file": "student.skops"}
    (model / "model.json").write_text(json.dumps(head))
    given = callables(str(trip), "x", "x")
    for name in ("builtins.exec", "numpy.testing.measure", "os.system"):
        for label, content in files_for(name, given[name]):
            if label in ("reduce", "key of a dict", "partial"):
                (model / "student.skops").write_bytes(content)
                seal(model, "model")
                line = refuse("predict", model, "test.csv")
                assert name in line
                assert name in refuse("evaluate", model, "test.csv")
                assert not trip.exists()
