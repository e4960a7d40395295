"""Continue tokens: where a list goes on, and of which state. Opaque to clients.

Form (as kube-apiserver's, so that tools that look inside keep working): unpadded URL base64 of
``{"v":"meta.k8s.io/v1","rv":REVISION,"start":KEY}`` where KEY is relative to the listed scope and is the last
key shown plus a NUL. A revision of -1 means the state of now: an *inconsistent* continuation.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re

from apimachinery.wire.json import syntax_fault, type_name

INCONSISTENT = -1
_VERSION = "meta.k8s.io/v1"


class BadContinueToken(ValueError):
    """A token that is none of ours; the text is kube-apiserver's."""


def encode_continue(scope: str, last_key: str, revision: int, *, rooted: bool = True) -> str:
    """The token of a list of ``scope`` that showed everything up to ``last_key``; ``rooted`` puts the slash in front of
    the key that kube-apiserver's watch cache has there, and its storage has not."""
    start = ("/" if rooted else "") + last_key[len(scope) :] + "\0"
    token = json.dumps({"v": _VERSION, "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def decode_continue(scope: str, token: str) -> tuple[str, int]:
    """The first key to show, and the revision. Raises BadToken."""
    raw = _decode_base64(token)
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise _bad(syntax_fault(raw)) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _bad(f"json: cannot unmarshal {type_name(value)} into Go value of type storage.continueToken")
    version, revision, start = value.get("v", ""), value.get("rv", 0), value.get("start", "")
    if version != _VERSION:
        raise _bad(f"server does not recognize this encoded version {version}")
    # True is an int in Python.
    if not isinstance(revision, int) or isinstance(revision, bool) or revision == 0:
        raise _bad(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not isinstance(start, str) or not start:
        raise _bad(f"encoded start key empty (version {_VERSION})")
    # A start such as "../secrets/x" would leave the scope.
    rooted = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(rooted) != rooted:
        raise _bad(start)
    return scope + rooted[1:], revision


def _bad(fault: str) -> BadContinueToken:
    return BadContinueToken(f"invalid continue token: continue key is not valid: {fault}")


_FOREIGN = re.compile(rb"[^A-Za-z0-9_-]")


def _decode_base64(token: str) -> bytes:
    text = token.encode()
    # Go's decoder names the first byte that is not of the alphabet.
    if found := _FOREIGN.search(text):
        raise _bad(f"illegal base64 data at input byte {found.start()}")
    # A single character at the end holds no whole byte.
    if len(text) % 4 == 1:
        raise _bad(f"illegal base64 data at input byte {len(text) - 1}")
    try:
        return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        raise _bad("illegal base64 data at input byte 0") from None
