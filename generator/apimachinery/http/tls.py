"""The server's certificate: given files, or one it makes itself and keeps next to its data.

A made certificate is its own authority (the kubeconfig carries it), names localhost, the loopback addresses and
the bound host, lasts a year, and is recreated when less than a week of it is left or the host changed.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import logging
import os
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apimachinery.http.trust import as_go

log = logging.getLogger("kubewright.server")

_DER = 2
"""``_ssl.ENCODING_DER``: how a certificate is asked for its bytes."""
LASTS = datetime.timedelta(days=365)
RENEWED_BEFORE = datetime.timedelta(days=7)
HANDSHAKE_SECONDS = 10.0
"""Whoever has not shaken hands is counted nowhere but in the operating system's limit of open files."""


_BROKEN, _CLOSED = "Fatal error on SSL protocol", "the handler is closed"
"""What uvloop reports of a connection that ended while TLS had something to write: its socket is closed before its
TLS hears of it, and only an OSError would be taken for what it is."""


def log_broken_tls(loop: asyncio.AbstractEventLoop) -> None:
    """Has the loop log connections that broke under uvloop's TLS in a line, not as a fault with a traceback."""
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        fault = context.get("exception")
        if isinstance(fault, RuntimeError) and context.get("message") == _BROKEN and _CLOSED in str(fault):
            log.info("a TLS connection broke off")
        elif before is not None:
            before(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


class TlsError(ValueError):
    """A certificate that cannot be used; the text names the file."""


def server_context(
    certificate: Path,
    key: Path,
    clients: Sequence[Path] = (),
    *,
    least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
) -> ssl.SSLContext:
    """A context that serves with a certificate, and takes client certificates of the authorities in ``clients``.

    A client that shows none is served all the same; one that shows another authority's is refused in the handshake.
    Between its certificate and the authority there may be others, which the client shows too. Raises TlsError.
    """
    context = as_go(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
    context.minimum_version = least
    # Tells clients that offer h2 as well that it is not spoken here.
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as fault:
        raise TlsError(f"cannot load the certificate {certificate} with the key {key}: {fault}") from None
    if clients:
        # A resumed session would know the client's certificate, but not those between it and the authority.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    for path in clients:
        # Optional: a token may identify the client as well.
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(path)
        except (OSError, ssl.SSLError) as fault:
            raise TlsError(f"cannot load the authorities {path}: {fault}") from None
    return context


def peer_chain(tls: ssl.SSLObject | None) -> tuple[bytes, ...]:
    """The client's certificate and those up to an authority (DER), as the handshake verified them; empty without."""
    leaf = tls.getpeercert(True) if tls is not None else None
    if tls is None or leaf is None:
        return ()
    if sys.version_info >= (3, 13):
        return tuple(tls.get_verified_chain() or ()) or (leaf,)
    # Python has it since 3.10, but has named it only since 3.13.
    verified = tls._sslobj.get_verified_chain()  # type: ignore[attr-defined]
    return tuple(each.public_bytes(_DER) for each in verified or ()) or (leaf,)


def renew(context: ssl.SSLContext, certificate: Path, key: Path, clients: Sequence[Path] = ()) -> None:
    """Lets a context serve with the certificate that is in the files now, to connections that are made from now on;
    authorities are added, none is taken away (whom they issued certificates for, the authenticator says). Raises
    TlsError, and then leaves the context as it was."""
    server_context(certificate, key, clients)
    try:
        context.load_cert_chain(certificate, key)
        for path in clients:
            context.load_verify_locations(path)
    except (OSError, ssl.SSLError) as fault:  # the files changed since
        raise TlsError(f"cannot load the certificate {certificate} with the key {key}: {fault}") from None


def ensure_certificate(folder: Path, host: str, *more: str) -> tuple[Path, Path]:
    """The paths of a usable certificate and key in ``folder``, made where there is none that names ``host`` and the
    names in ``more``. One that somebody else put there is used whatever it names. Raises TlsError, OSError."""
    certificate, key = folder / "apiserver.crt", folder / "apiserver.key"
    if not (key.exists() and _usable(certificate, host, *more)):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(certificate, key, host, *more)
    return certificate, key


def expires_soon(certificate: bytes) -> bool:
    """Whether a third of a certificate's life, or less, is left. Raises ValueError for what is no certificate (PEM)."""
    from cryptography import x509

    found = x509.load_pem_x509_certificate(certificate)
    life = found.not_valid_after_utc - found.not_valid_before_utc
    return found.not_valid_after_utc - datetime.datetime.now(datetime.UTC) < life / 3


def names_of(certificate: Path) -> list[str]:
    """The domain names of a certificate (PEM): its alternative ones, else its common ones. Raises TlsError."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return alternatives.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        return [str(each.value) for each in found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    except (OSError, ValueError) as fault:
        raise TlsError(f"cannot read the certificate {certificate}: {fault}") from None


def _names(*hosts: str) -> list[str]:
    names = ["localhost", "127.0.0.1", "::1"]
    return [*names, *(host for host in hosts if host not in (*names, "0.0.0.0", "::"))]


def _usable(certificate: Path, *hosts: str) -> bool:
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        if found.subject != _name(x509):
            return True
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    now = datetime.datetime.now(datetime.UTC)
    named = {str(name.value) for name in alternatives}
    return found.not_valid_after_utc - now > RENEWED_BEFORE and set(_names(*hosts)) <= named


def _name(x509: Any) -> Any:
    """Whom a certificate that is made here names."""
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubewright")])


def _make(certificate: Path, key: Path, *hosts: str) -> None:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise TlsError(
            "--tls auto needs the cryptography package: install kubewright[server], or give CERT,KEY"
        ) from None
    private = ec.generate_private_key(ec.SECP256R1())
    name = _name(x509)
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[x509.GeneralName] = []
    for entry in _names(*hosts):
        # Five minutes back: clocks of clients may be a little slow.
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(entry)))
        except ValueError:
            alternatives.append(x509.DNSName(entry))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + LASTS)
        # path_length 0: this key may sign no other authority.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .sign(private, hashes.SHA256())
    )
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # The key first: if the process dies in between, the old certificate is still unusable, and both are made again.
    # The other way round a usable certificate would lie next to another key.
    _write(key, pem, 0o600)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    # A file of its own by process: two servers may start in the same folder.
    part = path.with_suffix(f".{os.getpid()}.part")
    # The mode at creation: a chmod later would leave the key readable for a moment.
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    part.replace(path)
