"""Keys that sign and verify tokens: PEM files, JSON Web Key Sets, and keys made here (RFC 7515, 7517, 7518).

A key's id is what kube-apiserver makes of it: the SHA-256 of the public key's DER form, in base64url. Only signatures
of asymmetric keys are taken, and for each key only the algorithms of its own type: so neither ``none`` nor a public key
used as a secret (``HS256``) ever verifies.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from apimachinery.http.remembered import Remembered

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = frozenset((*_OF_RSA, *_CURVES.values()))
"""How tokens may be signed (RFC 7518)."""
RSA_BITS = 1024
MAX_TOKEN = 64 * 1024


class UnusableKey(ValueError):
    """A key that cannot be used; the text names the file."""


class BadToken(ValueError):
    """A token that does not verify; the text says why."""


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key, its id, and the algorithms it may verify; the first is the one that its owner signs with."""

    id: str
    key: PublicKey
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key, its id and its algorithm."""

    id: str
    key: PrivateKey
    algorithm: str

    def sign(self, claims: dict[str, Any]) -> str:
        """A token with these claims."""
        # kube-apiserver's tokens have no typ either.
        return jwt.encode(claims, self.key, self.algorithm, headers={"kid": self.id, "typ": None})


def key_id(key: PublicKey) -> str:
    """The id of a public key."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()


def verifying(key: object, name: str, of: str = "") -> VerifyingKey:
    """A public key ready to verify. Raises UnusableKey."""
    # Shorter RSA keys can be factored.
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= RSA_BITS:
        return VerifyingKey(of or key_id(key), key, _OF_RSA)
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return VerifyingKey(of or key_id(key), key, (_CURVES[key.curve.name],))
    raise UnusableKey(
        f"{name}: tokens are verified by RSA keys (1024 bits or more) or EC keys (P-256, P-384, P-521)"
    )


def signing(key: object, name: str) -> SigningKey:
    """A private key ready to sign. Raises UnusableKey."""
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise UnusableKey(f"{name}: tokens are signed by RSA or EC keys")
    public = verifying(key.public_key(), name)
    return SigningKey(public.id, key, public.algorithms[0])


def made_key() -> SigningKey:
    """A new key on P-256: made in a moment, where an RSA key would take a tenth of a second."""
    return signing(ec.generate_private_key(ec.SECP256R1()), "made key")


def private_pem(key: SigningKey) -> bytes:
    """A signing key as PEM."""
    return key.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def read_signing_key(path: Path) -> SigningKey:
    """The private key of a PEM file. Raises UnusableKey, OSError."""
    try:
        return signing(serialization.load_pem_private_key(path.read_bytes(), None), str(path))
    except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
        raise UnusableKey(f"{path}: no private key in PEM form: {fault}") from None


def read_verifying_keys(path: Path) -> list[VerifyingKey]:
    """The public keys of a PEM file; of a private key and of a certificate theirs. Raises UnusableKey, OSError."""
    keys = []
    # A file may hold several keys, of several kinds: those before a rotation, and those after it.
    for block in _blocks(path.read_bytes()):
        try:
            if b"PRIVATE KEY" in block:
                private: Any = serialization.load_pem_private_key(block, None)
                keys.append(verifying(private.public_key(), str(path)))
            elif b"PUBLIC KEY" in block:
                keys.append(verifying(serialization.load_pem_public_key(block), str(path)))
            # With the dash: "CERTIFICATE REQUEST" has no key that may be trusted.
            elif b"BEGIN CERTIFICATE-" in block:
                keys.append(verifying(x509.load_pem_x509_certificate(block).public_key(), str(path)))
        except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
            raise UnusableKey(f"{path}: {fault}") from None
    if not keys:
        raise UnusableKey(f"{path}: holds no public key, private key or certificate in PEM form")
    return keys


def _blocks(data: bytes) -> Iterable[bytes]:
    for part in data.split(b"-----BEGIN ")[1:]:
        yield b"-----BEGIN " + part


def key_set(keys: Iterable[VerifyingKey]) -> dict[str, Any]:
    """The keys as a JSON Web Key Set."""
    shown = []
    for verifier in keys:
        if isinstance(verifier.key, rsa.RSAPublicKey):
            values = jwt.algorithms.RSAAlgorithm.to_jwk(verifier.key, as_dict=True)
        else:
            values = jwt.algorithms.ECAlgorithm.to_jwk(verifier.key, as_dict=True)
        # The order of the fields is that of go-jose, which writes kube-apiserver's answer.
        head = {"use": "sig", "kty": values["kty"], "kid": verifier.id}
        if "crv" in values:
            head["crv"] = values["crv"]
        head["alg"] = verifier.algorithms[0]
        shown.append(head | {name: values[name] for name in ("n", "e", "x", "y") if name in values})
    return {"keys": shown}


def read_key_set(document: Any) -> list[VerifyingKey]:
    """The keys of a JSON Web Key Set that can verify tokens; others are left out. Raises UnusableKey for no set."""
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise UnusableKey("no JSON Web Key Set: `keys` is missing")
    keys = []
    for entry in document["keys"]:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(entry, algorithm=entry.get("alg") or _algorithm(entry)).key
            keys.append(verifying(key, "key set", of=str(entry.get("kid") or "")))
        # A key of a kind not known here must not hide the others of the set.
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
    return keys


def _algorithm(entry: dict[str, Any]) -> str:
    curves = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
    return "RS256" if entry.get("kty") == "RSA" else curves.get(str(entry.get("crv")), "ES256")


class _Issued(msgspec.Struct):
    iss: str = ""


_issued = msgspec.json.Decoder(_Issued).decode


def unverified_issuer(token: str) -> str:
    """The issuer that a token names, before anything is known of its signature; empty where it is no JWT or names none.

    The other claims are skipped, not decoded: anybody can send a token whose claims are nested thousands of levels.
    """
    try:
        return _issued(_payload(token)).iss
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return ""


def unverified_claims(token: str) -> dict[str, Any] | None:
    """The claims that a token makes, before anything is known of its signature; None where it is no JWT."""
    try:
        claims = msgspec.json.decode(_payload(token))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return claims if isinstance(claims, dict) else None


def _payload(token: str) -> bytes:
    """The encoded claims of a JWT. Raises ValueError where it is none."""
    # A JWT has three parts; anything longer than this is not parsed for strangers.
    if len(token) > MAX_TOKEN or token.count(".") != 2:
        raise ValueError("not a JWT")
    payload = token.split(".")[1]
    return base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))


def unverified_key_id(token: str) -> str:
    """The id of the key that a token says it was signed with; empty where it says none."""
    try:
        return str(jwt.get_unverified_header(token).get("kid") or "")
    # The header comes from whoever sent the token: any failure means that it names no key.
    except Exception:
        return ""


def verified_claims(
    token: str, keys: Iterable[VerifyingKey], algorithms: Collection[str] = ALGORITHMS
) -> dict[str, Any]:
    """The claims of a token that one of the keys signed, by one of the algorithms, in its time. Raises BadToken."""
    try:
        header = jwt.get_unverified_header(token)
    except Exception as fault:
        raise BadToken(str(fault)) from None
    wanted, algorithm = header.get("kid"), header.get("alg")
    # The algorithm is chosen by the key, never by the token: "none" and HS256 with a public key must not verify.
    if algorithm not in algorithms:
        raise BadToken(f"it is signed by {algorithm!r}, not by {', '.join(sorted(algorithms))}")
    usable = [key for key in keys if algorithm in key.algorithms]
    # A token of another issuer's library may have no kid; then all keys of its algorithm are tried.
    matching = [key for key in usable if wanted and key.id == wanted] or usable
    unverified: Exception = BadToken("no key verifies its signature")
    for key in matching:
        try:
            # Audiences are compared by the caller, who knows which are asked about.
            return jwt.decode(token, key.key, algorithms=list(key.algorithms), options={"verify_aud": False})
        except jwt.InvalidSignatureError as failure:
            unverified = failure
        except Exception as failure:
            # Whatever a damaged token makes of the library, it is not valid.
            raise BadToken(str(failure) or type(failure).__name__) from None
    raise BadToken(str(unverified))


class VerifiedTokens:
    """The claims of signed tokens of some issuers. Verified signatures are remembered, since a client sends the same
    token with every request; whether the claims still hold is for the caller to ask each time."""

    def __init__(self, issuers: Iterable[str], keys: Iterable[VerifyingKey]) -> None:
        self._issuers = frozenset(issuers) - {""}
        self._keys = tuple(keys)
        self._remembered: Remembered[str, dict[str, Any]] = Remembered()

    def claims(self, token: str) -> dict[str, Any] | None:
        """What a token says, None for one of another issuer. Raises BadToken where no key has signed it."""
        known = self._remembered.get(token)
        if known is not None:
            return known
        if unverified_issuer(token) not in self._issuers:
            return None
        claims = verified_claims(token, self._keys)
        self._remembered.put(token, claims)
        return claims
