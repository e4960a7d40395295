"""Whom TLS trusts: the rules of Go's crypto/x509, which certificates of clusters are made for.

Go trusts each certificate of a pool, a server's own too, where OpenSSL wants a chain to a self-signed authority; and it
takes certificates that lack what RFC 5280 asks for, which Python 3.13 and newer refuse.
"""

from __future__ import annotations

import ssl
from pathlib import Path


def as_go(context: ssl.SSLContext) -> ssl.SSLContext:
    """Gives a context these rules."""
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context


def trusting(authorities: bytes | str = b"", file: Path | None = None) -> ssl.SSLContext:
    """A client's context that trusts these authorities (PEM), or the system's where there are none. Raises OSError,
    ssl.SSLError, ValueError."""
    text = authorities.decode("ascii") if isinstance(authorities, bytes) else authorities
    return as_go(ssl.create_default_context(cafile=file, cadata=text or None))
