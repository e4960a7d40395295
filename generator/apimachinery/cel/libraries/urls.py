"""``url``, ``isURL`` and the parts of a URL, as Go's net/url reads one for a request."""

from __future__ import annotations

import re
from typing import Any, ClassVar
from urllib.parse import unquote_to_bytes

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import Opaque

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_PATH_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~$&+,/:;=@")
_PATH_VALID = _PATH_PLAIN | frozenset("!'()*[]%")


class URL(Opaque):
    """``kubernetes.URL``."""

    __slots__ = ("host", "path", "query", "raw_path", "scheme", "text")
    type_name: ClassVar[str] = "kubernetes.URL"

    def __init__(self, text: str, scheme: str, host: str, raw_path: str, query: str):
        self.text = text
        self.scheme = scheme
        self.host = host
        self.raw_path = raw_path
        self.path = unquote_to_bytes(raw_path.encode("utf-8", "surrogatepass"))
        self.query = query

    def equals(self, other: Any) -> bool:
        """By text."""
        return bool(self.text == other.text)

    def hostname(self) -> str:
        """The host without brackets and port."""
        host, _ = self._split()
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    def port(self) -> str:
        """The port, or nothing."""
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        head, colon, tail = self.host.rpartition(":")
        if colon and tail.isdigit() and "]" not in tail:
            return head, tail
        return (head, "") if colon and not tail else (self.host, "")

    def escaped_path(self) -> str:
        """The path as sent, escaped where it was not."""
        if set(self.raw_path) <= _PATH_VALID:
            return self.raw_path
        return "".join(chr(b) if chr(b) in _PATH_PLAIN else f"%{b:02X}" for b in self.path)

    def queries(self) -> dict[str, list[str]]:
        """The query's values by name; faulty pairs are left out."""
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
                continue
            name, _, value = pair.partition("=")
            found.setdefault(_plain(name), []).append(_plain(value))
        return found


def _plain(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ").encode("utf-8", "surrogatepass")).decode(
        "utf-8", "replace"
    )


def parse_url(text: str) -> URL:
    """Read an absolute URL or an absolute path; EvalError.

    As Kubernetes does, it is read twice: as the URL of a request, which has no fragment, whether it is one; and
    without its fragment, for its parts.
    """
    url = _parse_request(text, text)
    before, hash_sign, _ = text.partition("#")
    return _parse_request(before, text) if hash_sign else url


def _parse_request(part: str, text: str) -> URL:

    def fail(message: str) -> EvalError:
        from .strings import quote

        return EvalError(f"URL parse error during conversion from string: parse {quote(text)}: {message}")

    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in part):
        raise fail("net/url: invalid control character in URL")
    if not part:
        raise fail("empty url")
    found = _SCHEME.match(part)
    if found is None and part.startswith(":"):
        raise fail("missing protocol scheme")
    if found is None and ":" in part.split("/")[0] and not part[0].isascii():
        raise fail("first path segment in URL cannot contain colon")
    scheme = found[1].lower() if found else ""
    rest = part[found.end() :] if found else part
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(text, scheme, "", "", query)
        if rest == "*":
            return URL(text, "", "", "*", query)
        raise fail("invalid URI for request")
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, after = rest[2:].partition("/")
        rest = slash + after
        host = _authority(authority, fail)
    if _BAD_ESCAPE.search(rest):
        at = _BAD_ESCAPE.search(rest)
        assert at
        raise fail(f'invalid URL escape "{rest[at.start() : at.start() + 3]}"')
    return URL(text, scheme, host, rest, query)


def _authority(authority: str, fail: Any) -> str:
    user, at, host = authority.rpartition("@")
    if at and not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user):
        raise fail("net/url: invalid userinfo")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise fail("missing ']' in host")
        port = host[end + 1 :]
    else:
        _, colon, tail = host.rpartition(":")
        port = colon + tail if colon else ""
        if _BAD_ESCAPE.search(host):
            raise fail(f'invalid URL escape "{host[host.index("%") :][:3]}"')
    if port and not re.fullmatch(r":[0-9]*", port, re.ASCII):
        raise fail(f'invalid port "{port}" after host')
    wrong = re.search(r"[\x00-\x20\"<>\\^`{|}]", host)
    if wrong and wrong.group() not in '<>"':
        raise fail(f'invalid character "{wrong.group()}" in host name')
    return host


def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except EvalError:
        return False
    return True


def urls() -> Library:
    """Kubernetes' URL library."""
    lib = Library("kubernetes urls")
    lib.declare_type("url", t.object_type("kubernetes.URL"), URL)
    lib.overload("url", "string_to_url", "(string) url", parse_url)
    lib.overload("isURL", "is_url_string", "(string) bool", _is_url)
    lib.overload("getScheme", "url_get_scheme", "url.() string", lambda u: u.scheme)
    lib.overload("getHost", "url_get_host", "url.() string", lambda u: u.host)
    lib.overload("getHostname", "url_get_hostname", "url.() string", lambda u: u.hostname())
    lib.overload("getPort", "url_get_port", "url.() string", lambda u: u.port())
    lib.overload("getEscapedPath", "url_get_escaped_path", "url.() string", lambda u: u.escaped_path())
    lib.overload("getQuery", "url_get_query", "url.() map(string, list(string))", lambda u: u.queries())
    return lib
