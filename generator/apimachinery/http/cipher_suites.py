"""Cipher suites by the names that TLS has for them (IANA), as kube-apiserver's option takes them.

OpenSSL calls them otherwise: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256. Those of TLS 1.3 are
not chosen in Go, and so not here; those that the OpenSSL of this machine has given up (RC4, 3DES) are known names that
nobody speaks.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence

_OF_13 = frozenset(("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"))
_EVERYWHERE = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "RC4_128_SHA": "RC4-SHA",
}
_TRIPLE = {"3DES_EDE_CBC_SHA": "DES-CBC3-SHA"}
_CHACHA = dict.fromkeys(("CHACHA20_POLY1305", "CHACHA20_POLY1305_SHA256"), "CHACHA20-POLY1305")
_CIPHERS = {
    "ECDHE_ECDSA": _EVERYWHERE | _CHACHA,
    "ECDHE_RSA": _EVERYWHERE | _CHACHA | _TRIPLE,
    "RSA": _EVERYWHERE | _TRIPLE,
}
"""What Go knows: by how keys are exchanged, the cipher and its name in OpenSSL."""


class CipherSuiteError(ValueError):
    """A name that is no cipher suite, or suites of which none is spoken."""


def limit(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Lets a context speak no other cipher suites below TLS 1.3. Raises CipherSuiteError."""
    wanted = [name for suite in suites if (name := _name_of(suite))]
    if not wanted:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(wanted))
    except ssl.SSLError:
        raise CipherSuiteError(f"none of {', '.join(suites)} is spoken here; name another too") from None


def _name_of(suite: str) -> str:
    """The name in OpenSSL; empty for those of TLS 1.3."""
    if suite in _OF_13:
        return ""
    parts = re.fullmatch(r"TLS_(ECDHE_ECDSA|ECDHE_RSA|RSA)_WITH_(\w+)", suite)
    cipher = _CIPHERS[parts[1]].get(parts[2]) if parts else None
    if parts is None or cipher is None:
        raise CipherSuiteError(f"Cipher suite {suite} not supported or doesn't exist")
    return cipher if parts[1] == "RSA" else f"{parts[1].replace('_', '-')}-{cipher}"
