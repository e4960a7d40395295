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
PeerChain = tuple[bytes, ...]
"""A client's certificate and those that lead to an authority, DER, as TLS verified them; empty without one."""
_Known = tuple[Identity, datetime.datetime, datetime.datetime]


class BadRequestForCertificate(ValueError):
    """A certificate signing request that cannot be signed; the text says why."""


class AuthorityError(ValueError):
    """Certificates of authorities that cannot be used; the text names the file."""


class ClientCertificates:
    """Users by the certificate of their connection, issued by one of ``authorities`` or by whom these entrusted."""

    def __init__(self, authorities: list[x509.Certificate]) -> None:
        self._authorities = authorities
        self._known: dict[PeerChain, _Known | None] = {}

    def trust(self, authorities: list[x509.Certificate]) -> None:
        """Takes other authorities from now on."""
        self._authorities = authorities
        self._known.clear()

    def authenticate(self, request: Request) -> Identity | None:
        if not request.peer:
            return None
        known = self._known.get(request.peer)
        if known is None:
            # None is kept too: otherwise the certificate of a front proxy would be parsed with each request.
            if request.peer in self._known:
                return None
            known = self._read(request.peer)
            # Connections with ever new certificates must not make it grow.
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[request.peer] = known
            if known is None:
                return None
        identity, start, end = known
        # A connection may outlive the certificates that opened it.
        if not start <= datetime.datetime.now(datetime.UTC) <= end:
            raise unauthorized()
        return identity

    def _read(self, peer: PeerChain) -> _Known | None:
        """The user of a certificate; None where its issuer is another's (the front proxy's)."""
        try:
            trusted = trusted_chain(peer, self._authorities)
        except ValueError:
            raise unauthorized() from None
        if trusted is None:
            return None
        start, end = lifetime(trusted)
        return Identity(user_of(trusted[0], peer[0])), start, end


class PeerCheck:
    """Whether a client certificate is of one of these authorities and has one of these common names (any where none is
    given)."""

    def __init__(self, authorities: list[x509.Certificate], names: tuple[str, ...] = ()) -> None:
        self._authorities = authorities
        self._names = names
        self._known: dict[PeerChain, datetime.datetime | None] = {}

    def trust(self, authorities: list[x509.Certificate]) -> None:
        """Takes other authorities from now on."""
        self._authorities = authorities
        self._known.clear()

    def __call__(self, peer: PeerChain) -> bool:
        """Whether it is, now."""
        if peer not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[peer] = self._check(peer)
        end = self._known[peer]
        return end is not None and datetime.datetime.now(datetime.UTC) <= end

    def _check(self, peer: PeerChain) -> datetime.datetime | None:
        """Until when it is; None where it is not."""
        try:
            trusted = trusted_chain(peer, self._authorities)
        except ValueError:
            return None
        if trusted is None or (self._names and common_name(trusted[0].subject) not in self._names):
            return None
        return lifetime(trusted)[1]


def trusted_chain(peer: PeerChain, authorities: list[x509.Certificate]) -> list[x509.Certificate] | None:
    """The certificates from a client's to that of an authority; None where none of these vouches for it. Raises
    ValueError.

    TLS has verified that each certificate of the chain was issued by the next, and may issue others; it knows all
    authorities of the server, so that it remains to be seen whether one of *these* is above.
    """
    chain: list[x509.Certificate] = []
    for der in peer:
        certificate = x509.load_der_x509_certificate(der)
        chain.append(certificate)
        # The authority's own certificate may be used by a client, as Go's pool of roots allows.
        if certificate in authorities:
            return chain
        # Two authorities may have the same name; only the signature decides.
        for authority in authorities:
            try:
                certificate.verify_directly_issued_by(authority)
            except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
                continue
            return [*chain, authority]
    return None


def lifetime(chain: list[x509.Certificate]) -> tuple[datetime.datetime, datetime.datetime]:
    """From when to when all certificates hold."""
    # A chain holds while all of it does.
    return max(c.not_valid_before_utc for c in chain), min(c.not_valid_after_utc for c in chain)


def common_name(subject: x509.Name) -> str:
    """The name that a subject goes by, the last where it has several; empty where it has none. Whoever reads a name
    reads it here: a request that shows one name to admission and another to authentication takes over an identity."""
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


def user_of(certificate: x509.Certificate, der: bytes) -> User:
    """Whom a certificate names. Raises ApiError 401 for one without a common name."""
    name = common_name(certificate.subject)
    if not name:
        raise unauthorized()
    attributes = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    groups = tuple(str(attribute.value) for attribute in attributes)
    # The name that kube-apiserver gives a certificate in audit events.
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
    return common_name(_load(request).subject)


def _load(request: Any) -> x509.CertificateSigningRequest:
    try:
        # Strict: characters outside of base64 would be skipped silently.
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
        # Proof that whoever asks holds the key.
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
        # spec.expirationSeconds is a wish: at least ten minutes, at most what the authority gives.
        lasts = self.seconds if seconds is None else min(max(seconds, LEAST_SECONDS), self.seconds)
        # A certificate must not outlive the authority that signed it.
        end = min(now + datetime.timedelta(seconds=lasts), self.certificate.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(wanted.subject)
            .issuer_name(self.certificate.subject)
            .public_key(wanted.public_key())
            .serial_number(x509.random_serial_number())
            # Clocks of clients may be a little slow.
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
    # digital_signature, key_cert_sign and crl_sign (RFC 5280 section 4.2.1.3).
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
    # A mistaken pair would be noticed only when the first certificate does not verify.
    if private.public_key() != authority.public_key():
        raise AuthorityError(f"{key} is not the key of {certificate}")
    return SigningAuthority(authority, private)
