"""Checks of certificate signing requests."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from apimachinery.meta import names
from apimachinery.meta.field_errors import FieldError, invalid_value

Errors = Iterator[FieldError]


def signer_name(value: Any, path: str) -> Errors:
    """A signer is a domain with at least two labels, and a path below it."""
    if not isinstance(value, str) or not value:
        return
    domain, slash, rest = value.partition("/")
    if not slash or "/" in rest:
        yield invalid_value(
            path, value, "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        )
        return
    for detail in names.dns1123_subdomain_faults(domain):
        yield invalid_value(path, domain, f"validating label {domain!r}: {detail}".replace("'", '"'))
    if "." not in domain:
        yield invalid_value(path, value, "should be a domain with at least two segments separated by dots")
    for detail in names.dns1123_subdomain_faults(rest):
        yield invalid_value(path, rest, detail)


def request(value: Any, path: str) -> Errors:
    """A request is a PEM block of the type CERTIFICATE REQUEST."""
    try:
        text = base64.b64decode(value or "")
    except (ValueError, TypeError):
        return
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in text or b"-----END CERTIFICATE REQUEST-----" not in text:
        yield invalid_value(path, value or "", "PEM block type must be CERTIFICATE REQUEST")
