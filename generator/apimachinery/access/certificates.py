"""Client certificates: the user that one names, requests for one, and the authority that signs them (RFC 5280, 2986).

TLS has verified the certificate against the authorities before a request is read, so here it is only read: the common
name is the user, the organizations are the groups (X.509 subject, as kube-apiserver reads it).
"""

from __future__ import annotations

import base64
import datetime
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apimachinery.access.authentication import Identity, authenticated, unauthorized
from apimachinery.http.messages import Request, User

KEPT = 1024
LEAST_SECONDS = 600
DEFAULT_DAYS = 365
BACKDATED = datetime.timedelta(minutes=5)
CREDENTIAL = "authentication.kubernetes.io/credential-id"
_Known = tuple[Identity, datetime.datetime, datetime.datetime]


class BadRequestForCertificate(ValueError):
    """A certificate signing request that cannot be signed; the text says why."""


class AuthorityError(ValueError):
    """Certificates of authorities that cannot be used; the text names the file."""


class ClientCertificates:
    """Users by the certificate of their connection, issued by one of ``authorities``."""

    def __init__(self, authorities: list[x509.Certificate]) -> None:
        self._authorities = authorities
        self._known: dict[bytes, _Known | None] = {}

    def trust(self, authorities: list[x509.Certificate]) -> None:
        """Takes other authorities from now on."""
        self._authorities = authorities
        self._known.clear()

    def authenticate(self, request: Request) -> Identity | None:
        """See Authenticator."""
        if not request.peer:
            return None
        known = self._known.get(request.peer)
        if known is None:
            if request.peer in self._known:
                return None
            known = self._read(request.peer)
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[request.peer] = known
            if known is None:
                return None
        identity, start, end = known
        # A connection may outlive the certificate that opened it.
        if not start <= datetime.datetime.now(datetime.UTC) <= end:
            raise unauthorized()
        return identity

    def _read(self, der: bytes) -> _Known | None:
        """The user of a certificate; None where its issuer is another's (the front proxy's)."""
        try:
            certificate = x509.load_der_x509_certificate(der)
        except ValueError:
            raise unauthorized() from None
        if not issued_by(certificate, self._authorities):
            return None
        user = user_of(certificate, der)
        return Identity(user), certificate.not_valid_before_utc, certificate.not_valid_after_utc


class PeerCheck:
    """Whether a client certificate (DER) is of one of these authorities and has one of these common names (any where
    none is given)."""

    def __init__(self, authorities: list[x509.Certificate], names: tuple[str, ...] = ()) -> None:
        self._authorities = authorities
        self._names = names
        self._known: dict[bytes, tuple[bool, datetime.datetime]] = {}

    def trust(self, authorities: list[x509.Certificate]) -> None:
        """Takes other authorities from now on."""
        self._authorities = authorities
        self._known.clear()

    def __call__(self, der: bytes) -> bool:
        """Whether it is, now."""
        known = self._known.get(der)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[der] = self._check(der)
        return known[0] and datetime.datetime.now(datetime.UTC) <= known[1]

    def _check(self, der: bytes) -> tuple[bool, datetime.datetime]:
        try:
            certificate = x509.load_der_x509_certificate(der)
        except ValueError:
            return False, datetime.datetime.now(datetime.UTC)
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        named = not self._names or any(str(name.value) in self._names for name in names)
        return named and issued_by(certificate, self._authorities), certificate.not_valid_after_utc


def issued_by(certificate: x509.Certificate, authorities: list[x509.Certificate]) -> bool:
    """Whether one of the authorities signed a certificate."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            continue
        return True
    return False


def user_of(certificate: x509.Certificate, der: bytes) -> User:
    """Whom a certificate names. Raises ApiError 401 for one without a common name."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(names[-1].value) if names else ""
    if not name:
        raise unauthorized()
    attributes = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    groups = tuple(str(attribute.value) for attribute in attributes)
    extra = ((CREDENTIAL, (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)),)
    return authenticated(User(name, "", groups, extra))


def read_authorities(path: Path) -> list[x509.Certificate]:
    """The certificates of a PEM file. Raises AuthorityError, OSError."""
    try:
        return authorities_of(path.read_bytes())
    except ValueError as fault:
        raise AuthorityError(f"{path}: holds no certificate in PEM form: {fault}") from None


def authorities_of(pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM text. Raises ValueError."""
    return x509.load_pem_x509_certificates(pem)


def groups_of_request(request: Any) -> tuple[str, ...]:
    """The organizations that a certificate signing request names; none where it cannot be read."""
    try:
        subject = _load(request).subject
    except BadRequestForCertificate:
        return ()
    return tuple(str(a.value) for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))


def name_of_request(request: Any) -> str:
    """The common name that a certificate signing request asks for. Raises BadRequestForCertificate."""
    names = _load(request).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _load(request: Any) -> x509.CertificateSigningRequest:
    try:
        pem = base64.b64decode(request, validate=True)
        return x509.load_pem_x509_csr(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
        raise BadRequestForCertificate(f"unable to parse csr: {fault}") from None


@dataclass(frozen=True, slots=True)
class SigningAuthority:
    """A certificate authority that signs client certificates."""

    certificate: x509.Certificate
    key: Any
    seconds: int = DEFAULT_DAYS * 24 * 3600

    @property
    def pem(self) -> bytes:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Its key."""
        pem: bytes = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return pem

    def sign_client(self, request: Any, usages: list[str], seconds: int | None) -> bytes:
        """A client certificate for a request (base64 of PEM), as PEM. Raises BadRequestForCertificate."""
        wanted = _load(request)
        if not wanted.is_signature_valid:
            raise BadRequestForCertificate("the request is not signed by its own key")
        if "client auth" not in usages or set(usages) - {
            "digital signature",
            "key encipherment",
            "client auth",
        }:
            raise BadRequestForCertificate(
                "usages did not match [client auth], or [client auth] with [digital signature] and [key encipherment]"
            )
        now = datetime.datetime.now(datetime.UTC)
        lasts = self.seconds if seconds is None else min(max(seconds, LEAST_SECONDS), self.seconds)
        end = min(now + datetime.timedelta(seconds=lasts), self.certificate.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(wanted.subject)
            .issuer_name(self.certificate.subject)
            .public_key(wanted.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATED)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.certificate.public_key()),  # type: ignore[arg-type]
                critical=False,
            )
        )
        if set(usages) & {"digital signature", "key encipherment"}:
            # An extension that allows nothing would make the certificate invalid (RFC 5280 section 4.2.1.3).
            builder = builder.add_extension(_key_usage(usages), critical=True)
        signed = builder.sign(self.key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


def _key_usage(usages: list[str]) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature="digital signature" in usages,
        content_commitment=False,
        key_encipherment="key encipherment" in usages,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def made_authority(name: str = "kubewright-client-ca") -> SigningAuthority:
    """A new authority, which lasts ten years."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return SigningAuthority(certificate, key)


@dataclass(frozen=True, slots=True)
class IssuedClient:
    """A client certificate with its key, in PEM form."""

    certificate: bytes
    key: bytes


def issue_client(authority: SigningAuthority, name: str) -> IssuedClient:
    """A new key, and a certificate for it that names a user."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    wanted = base64.b64encode(request.public_bytes(serialization.Encoding.PEM))
    certificate = authority.sign_client(wanted, ["client auth"], None)
    return IssuedClient(certificate, SigningAuthority(authority.certificate, key).key_pem)


def read_signing_authority(certificate: Path, key: Path) -> SigningAuthority:
    """The authority of a certificate and a key in PEM files. Raises AuthorityError, OSError."""
    authority = read_authorities(certificate)[0]
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
        raise AuthorityError(f"{key}: no private key in PEM form: {fault}") from None
    if private.public_key() != authority.public_key():
        raise AuthorityError(f"{key} is not the key of {certificate}")
    return SigningAuthority(authority, private)
