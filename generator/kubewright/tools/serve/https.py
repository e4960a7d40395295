"""How ``kubewright serve`` speaks https: certificates, versions and cipher suites of TLS, browsers' rules."""

from __future__ import annotations

import argparse
import ssl
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from apimachinery.cel.patterns import PatternError, match_test
from apimachinery.http.browsers import BrowserRuleError, BrowserRules
from apimachinery.http.cipher_suites import CipherSuiteError, limit
from apimachinery.http.server_names import ServerNames
from apimachinery.http.tls import TlsError, renew, server_context
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.operate.reload import Reload


def https(
    options: argparse.Namespace, certificate: Path, key: Path, authorities: Sequence[Path]
) -> tuple[ssl.SSLContext, list[Reload]]:
    """The context of the socket, which shows this certificate unless a client asks for a name of another one, and the
    files that are read again. Raises OptionError and TlsError."""
    context = _context(options, certificate, key, authorities)
    reloads = [_reload("server certificate", context, certificate, key, authorities)]
    names = ServerNames()
    for own, own_key, patterns in _named(options.tls_sni_cert_key):
        other = _context(options, own, own_key, authorities)
        try:
            names.add(other, patterns, own)
        except TlsError as fault:
            raise OptionError(f"--tls-sni-cert-key: {fault}") from None
        reloads.append(_reload(f"server certificate {own}", other, own, own_key, authorities))
    if options.tls_sni_cert_key:
        names.follow(context)
    return context, reloads


def browser_rules(options: argparse.Namespace) -> BrowserRules | None:
    """What browsers are told; None where no option says anything. Raises OptionError."""
    origins = [origin_test(origin) for origin in _listed(options.cors_allowed_origins)]
    transport = _listed(options.strict_transport_security_directives)
    try:
        return BrowserRules(origins, transport) if origins or transport else None
    except BrowserRuleError as fault:
        raise OptionError(f"--strict-transport-security-directives: {fault}") from None


def origin_test(origin: str) -> Callable[[str], bool]:
    """Whether an Origin header matches an expression (RE2), which has to pin both ends of the host. Raises
    OptionError."""
    try:
        test = match_test(origin)
    except PatternError as fault:
        raise OptionError(f"--cors-allowed-origins: {fault}") from None
    # CVE-2022-1996: an expression without ends lets https://example.com.evil.org in.
    if not (("^" in origin or "//" in origin) and ("$" in origin or ":" in origin)):
        raise OptionError(
            f"--cors-allowed-origins: {origin!r} does not pin the start and the end of the host; write "
            "^https://HOST(:|$)"
        )
    return test


def _context(
    options: argparse.Namespace, certificate: Path, key: Path, authorities: Sequence[Path]
) -> ssl.SSLContext:
    newest = options.tls_min_version == "VersionTLS13"
    least = ssl.TLSVersion.TLSv1_3 if newest else ssl.TLSVersion.TLSv1_2
    context = server_context(certificate, key, authorities, least=least)
    if suites := _listed(options.tls_cipher_suites):
        try:
            limit(context, suites)
        except CipherSuiteError as fault:
            raise OptionError(f"--tls-cipher-suites: {fault}") from None
    return context


def _reload(
    name: str, context: ssl.SSLContext, certificate: Path, key: Path, authorities: Sequence[Path]
) -> Reload:
    return Reload(
        name, (certificate, key, *authorities), partial(renew, context, certificate, key, authorities)
    )


def _named(given: Sequence[str]) -> Iterator[tuple[Path, Path, list[str]]]:
    """Certificate, key and patterns of each ``--tls-sni-cert-key``. Raises OptionError."""
    for text in given:
        files, _, patterns = text.partition(":")
        certificate, found, key = files.partition(",")
        if not (certificate and found and key):
            raise OptionError(
                f"--tls-sni-cert-key: {text!r} is not CERT,KEY or CERT,KEY:NAME,*.NAME: "
                "expected comma separated certificate and key file paths"
            )
        yield Path(certificate), Path(key), _listed(patterns)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
