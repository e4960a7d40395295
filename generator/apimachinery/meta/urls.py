"""What is wrong with a URL for Go's ``net/url``, which reads those of webhooks.

Source: ``url.Parse`` of Go 1.25, in its order and words. Parts of a good URL are ``urllib``'s business.
"""

from __future__ import annotations

import re

from apimachinery.meta.printing import go_quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_NOT_OF_HOST = re.compile(r"[\x00-\x20#/?@\\^`{|}]")


def url_fault(text: str) -> str:
    """Why a text is no URL; empty where it is one."""
    before, hashed, fragment = text.partition("#")
    if fault := _fault(before):
        return f"parse {go_quote(before)}: {fault}"
    if hashed and (fault := _escape_fault(fragment)):
        return f"parse {go_quote(text)}: {fault}"
    return ""


def _fault(text: str) -> str:
    if _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    if text in ("", "*"):
        return ""
    if text.startswith(":"):
        return "missing protocol scheme"
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        if not scheme and ":" in rest.partition("/")[0]:
            return "first path segment in URL cannot contain colon"
        # What follows a scheme without a slash is opaque: nobody reads it.
        return "" if scheme else _escape_fault(rest)
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, after = rest[2:].partition("/")
        rest = slash + after
        if fault := _authority_fault(authority):
            return fault
    return _escape_fault(rest)


def _authority_fault(authority: str) -> str:
    user, _, host = authority.rpartition("@")
    if not host.startswith("["):
        port = host[host.rindex(":") :] if ":" in host else ""
    elif "]" not in host:
        return "missing ']' in host"
    else:
        port = host[host.rindex("]") + 1 :]
    if not _PORT.fullmatch(port):
        return f"invalid port {go_quote(port)} after host"
    if fault := _escape_fault(host):
        return fault
    if wrong := _NOT_OF_HOST.search(host):
        return f"invalid character {go_quote(wrong[0])} in host name"
    return _escape_fault(user) if _USER.fullmatch(user) else "net/url: invalid userinfo"


def _escape_fault(text: str) -> str:
    wrong = _ESCAPE.search(text)
    return f"invalid URL escape {go_quote(text[wrong.start() : wrong.start() + 3])}" if wrong else ""
