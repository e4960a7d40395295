"""Several certificates on one socket: the one that is shown goes by the name that the client asks for (SNI, RFC 6066).

A name that somebody gave counts before one read from a certificate, a whole name before ``*.example.com``, which stands
for one label. Who asks for no name, or for one that nobody has, is shown the server's first certificate.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from apimachinery.http.tls import TlsError, names_of

_PATTERN = re.compile(
    r"(\*\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.ASCII
)
_GIVEN, _READ = 0, 1


class ServerNames:
    """The contexts of a socket by the names that clients ask for."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, ssl.SSLContext]] = {}

    def add(self, context: ssl.SSLContext, patterns: Sequence[str], certificate: Path) -> None:
        """Adds a context: for its patterns, or for the names of its certificate where there are none. The first of two
        for the same name counts. Raises TlsError."""
        given = _READ if not patterns else _GIVEN
        for pattern in patterns or names_of(certificate):
            name = pattern.lower()
            if not _PATTERN.fullmatch(name):
                if given is _READ:
                    continue  # a common name may be any text, not only a domain name
                raise TlsError(f"{pattern!r} is no domain name; write NAME or *.NAME")
            if name not in self._held or given < self._held[name][0]:
                self._held[name] = (given, context)

    def follow(self, context: ssl.SSLContext) -> None:
        """Lets a socket's context show the other certificates."""

        def choose(socket: ssl.SSLSocket | ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
            found = self.find(name or "")
            if found is not None:
                socket.context = found

        context.sni_callback = choose

    def find(self, name: str) -> ssl.SSLContext | None:
        """The context for a name; None where the first certificate is shown."""
        # A fully qualified name may end with a dot, which certificates never have.
        name = name.lower().rstrip(".")
        _, dot, rest = name.partition(".")
        # A wildcard covers one label only (RFC 6125 §6.4.3).
        found = self._held.get(name) or (self._held.get(f"*.{rest}") if dot else None)
        return None if found is None else found[1]
