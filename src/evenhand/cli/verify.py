"""``evenhand verify``: whether a folder is what was saved, and its claim what its ledger bears."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand.cli import options
from evenhand.cli.console import emit, show, table
from evenhand.cli.failures import one_line

if TYPE_CHECKING:
    from evenhand._folder import Folder
    from evenhand._signing import PublicKey

NOT_VERIFIED: Final = 3
KINDS: Final = ("model", "generator")
_WORDS: Final = {True: "yes", False: "NO", None: "not checked"}


def verify(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder of a model, or of a generator."),
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="PUBLIC.pem",
            help="Public Ed25519 key of whoever should have signed it, from a source that you "
            "trust: not from the folder itself.",
            show_default="the signature is not checked",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Check a folder without running anything in it: files, claim, signature.

    Exit code 0 if nothing is wrong, 3 if something is.

    Without --key this finds accidents and clumsy edits. Who rewrites the files, the ledger and the
    manifest together is found by the signature alone.
    """
    from evenhand._folder import require_folder
    from evenhand._signing import PublicKey

    public = None if key is None else PublicKey.read(key)
    require_folder(folder, KINDS)
    found = _checked(folder, public)
    wrong = [check for check in found if check["ok"] is False]
    if json:
        whose = None if public is None else public.fingerprint
        emit({"folder": str(folder), "verified": not wrong, "key": whose, "checks": found})
    else:
        show(table(("check", ""), [(c["check"], _WORDS[c["ok"]]) for c in found], text=2))
        show(*(f"{c['check']}: {c['words']}" for c in found))
    if wrong:
        raise typer.Exit(NOT_VERIFIED)


def _checked(path: Path, key: PublicKey | None) -> list[dict[str, Any]]:
    """Return each check with its outcome; None where it could not be made."""
    from evenhand._folder import MANIFEST, read_folder

    try:
        folder = read_folder(path, KINDS, ValueError)
    except (ValueError, OSError) as error:
        nothing = "the files are not those of a manifest, so there is nothing to rely on"
        return [
            _check("files", False, one_line(error)),
            _check("claim", None, nothing),
            _check("signature", None, nothing),
        ]
    files = f"all {len(folder.files)} files are those of {MANIFEST}, and there is no other"
    return [_check("files", True, files), _claim(folder), _signature(folder, key)]


def _claim(folder: Folder) -> dict[str, Any]:
    """Check what is promised against the ledger."""
    from evenhand.estimators.saving.model_folder import claim_of as of_model
    from evenhand.generators.saving import claim_of as of_generator
    from evenhand.methods import estimators

    try:
        claim = of_model(folder, estimators()) if folder.kind == "model" else of_generator(folder)
    except ValueError as error:
        return _check("claim", False, one_line(error))
    return _check("claim", True, str(claim))


def _signature(folder: Folder, key: PublicKey | None) -> dict[str, Any]:
    if folder.signature is None:
        words = "the folder is not signed: whoever could write to it could make all of it anew"
        return _check("signature", None if key is None else False, words)
    if key is None:
        words = "the folder is signed, and without --key nobody can say by whom"
        return _check("signature", None, words)
    if key.signed(folder.signature, folder.manifest):
        return _check("signature", True, f"signed by the key with SHA-256 {key.fingerprint}")
    return _check("signature", False, "this key did not sign these files")


def _check(name: str, ok: bool | None, words: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "words": words}
