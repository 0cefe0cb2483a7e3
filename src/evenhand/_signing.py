"""Ed25519 keys in PEM files, and what is signed and checked with them."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_MAKE = "openssl genpkey -algorithm ed25519 -out KEY.pem"
_DERIVE = "openssl pkey -in KEY.pem -pubout -out PUBLIC.pem"


@dataclass(frozen=True)
class PrivateKey:
    """Signs."""

    key: Ed25519PrivateKey

    @classmethod
    def read(cls, file: str | Path) -> PrivateKey:
        """Read a PEM file.

        Raises
        ------
        ValueError
            If it holds no private Ed25519 key, or one under a password.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        content = Path(file).read_bytes()
        if b"PUBLIC KEY" in content and b"PRIVATE KEY" not in content:
            raise ValueError(
                f"{file} is a public key, and signing needs the private one. Make one with: {_MAKE}"
            )
        try:
            key: Any = load_pem_private_key(content, password=None)
        except TypeError:
            raise ValueError(
                f"{file} is under a password. Take it off into a file that only you can read: "
                f"openssl pkey -in {file} -out KEY.pem"
            ) from None
        except Exception:
            # Without the library's words: they may quote the key.
            raise ValueError(
                f"{file} is not a private key in PEM. Make one with: {_MAKE}"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(
                f"{file} is a key of another kind ({type(key).__name__.strip('_')}); Ed25519 is "
                f"needed. Make one with: {_MAKE}"
            )
        return cls(key)

    @classmethod
    def make(cls) -> PrivateKey:
        """Return a new key from the randomness of the operating system."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> PublicKey:
        """The key that checks what this one signs."""
        return PublicKey(self.key.public_key())

    @property
    def pem(self) -> bytes:
        """The key as a PEM file, under no password: whoever reads it can sign."""
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, content: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self.key.sign(content)


@dataclass(frozen=True)
class PublicKey:
    """Checks signatures."""

    key: Ed25519PublicKey

    @classmethod
    def read(cls, file: str | Path) -> PublicKey:
        """Read a PEM file.

        Raises
        ------
        ValueError
            If it holds no public Ed25519 key.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        content = Path(file).read_bytes()
        if b"PRIVATE KEY" in content:
            raise ValueError(
                f"{file} is a private key; who checks needs the public one alone: {_DERIVE}"
            )
        try:
            key: Any = load_pem_public_key(content)
        except Exception:
            raise ValueError(
                f"{file} is not a public key in PEM. Derive one with: {_DERIVE}"
            ) from None
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError(
                f"{file} is a key of another kind ({type(key).__name__.strip('_')}); Ed25519 is "
                f"needed. Derive one with: {_DERIVE}"
            )
        return cls(key)

    @classmethod
    def of_bytes(cls, raw: bytes) -> PublicKey:
        """Return the key of these 32 bytes; ValueError for anything else."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        return cls(Ed25519PublicKey.from_public_bytes(raw))

    @property
    def raw(self) -> bytes:
        """The key in 32 bytes."""
        return self.key.public_bytes_raw()

    @property
    def pem(self) -> bytes:
        """The key as a PEM file."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the raw key, in hex: what to compare over the telephone."""
        return hashlib.sha256(self.raw).hexdigest()

    def signed(self, signature: bytes, content: bytes) -> bool:
        """Whether the owner of the private key signed exactly this."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(signature, content)
        except InvalidSignature:
            return False
        return True


def known_by(name: str, keys: Mapping[str, PublicKey]) -> PublicKey | None:
    """Return the key of this name, however its letters are composed: some systems' files split ü.

    A signature is checked as it was made: the name in what was signed stays.
    """
    spelled = unicodedata.normalize("NFC", name)
    found = [key for of, key in keys.items() if unicodedata.normalize("NFC", of) == spelled]
    return keys.get(name, found[0] if len(found) == 1 else None)
