"""Checks of certificate signing requests: what is asked for, and what signers and approvers say to it."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    numbered,
    of_missing,
    struct,
)
from apimachinery.meta.field_errors import duplicate, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_HIDDEN = "<certificate data>"
_DECISIONS = ("Approved", "Denied")
_PERMANENT = (*_DECISIONS, "Failed")
"""Conditions that nobody takes back: a request that failed or was denied is not signed after all."""
_STATUSES = ("False", "True", "Unknown")
# Python's ``re`` is safe here: the pattern is ours and linear (RFC 7468: a label, lines of base64, the label again).
_BLOCK = re.compile(
    rb"-----BEGIN ([^-\r\n]*)-----[ \t]*\r?\n((?:[^\r\n]*:[^\r\n]*\r?\n)*)([A-Za-z0-9+/=\s]*)-----END \1-----"
)


@of_missing
def request(value: Any, path: str) -> Errors:
    """A request is a PEM block of the type CERTIFICATE REQUEST."""
    try:
        text = base64.b64decode(value or "")
    except (ValueError, TypeError):
        return
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in text or b"-----END CERTIFICATE REQUEST-----" not in text:
        yield invalid_value(path, value, "PEM block type must be CERTIFICATE REQUEST")


@of_missing
def usages(value: Any, path: str, values: Sequence[str]) -> Errors:
    """What a certificate is for: something, each of ``values`` once."""
    given = value if isinstance(value, list) else []
    if not given:
        yield required_error(path)
    seen = set()
    for index, usage in enumerate(given):
        if usage not in values:
            yield not_supported(f"{path}[{index}]", usage, values)
        if usage in seen:
            yield duplicate(f"{path}[{index}]", usage)
        seen.add(usage)


def new_signer(value: Any, path: str) -> Errors:
    """The signer of old clients has been left to the version that had it as default."""
    if value == "kubernetes.io/legacy-unknown":
        yield invalid_value(path, value, "the legacy signerName is not allowed via this API version")


def lifetime(value: Any, path: str) -> Errors:
    """How long a certificate is asked for: ten minutes at least."""
    if isinstance(value, int) and value < 600:
        yield invalid_value(path, value, "may not specify a duration less than 600 seconds (10 minutes)")


def update(value: Json, path: str, old: Json) -> Errors:
    """A write of the request itself neither decides on it nor answers it."""
    del path
    yield from _kept_certificate(value, old, signs=False)
    yield from _kept_conditions(value, old, _DECISIONS)


def status(value: Json, path: str, old: Json) -> Errors:
    """A signer answers with a certificate, once, or with a failure; it does not decide."""
    del path
    now, before = struct(value, "status") or {}, struct(old, "status") or {}
    yield from _conditions(now, before)
    if now.get("certificate") != before.get("certificate") and not before.get("certificate"):
        yield from _certificate(now.get("certificate"), "status.certificate")
    yield from _kept_certificate(value, old, signs=True)
    yield from _kept_conditions(value, old, _DECISIONS)


def approval(value: Json, path: str, old: Json) -> Errors:
    """An approver decides, once, and does not sign."""
    del path
    now, before = struct(value, "status") or {}, struct(old, "status") or {}
    yield from _conditions(now, before)
    yield from _kept_certificate(value, old, signs=False)
    yield from _kept_conditions(value, old, ())


def _kept_certificate(value: Json, old: Json, *, signs: bool) -> Errors:
    now, before = ((struct(each, "status") or {}).get("certificate") or "" for each in (value, old))
    if now == before:
        return
    if before:
        yield forbidden("status.certificate", "updates may not modify existing certificate content")
    elif not signs:
        yield forbidden("status.certificate", "updates may not set certificate content")


def _kept_conditions(value: Json, old: Json, not_added: Sequence[str]) -> Errors:
    now, before = (
        {condition.get("type") for _, condition in numbered(struct(each, "status") or {}, "conditions")}
        for each in (value, old)
    )
    for kind in _PERMANENT:
        if kind in not_added and kind in now - before:
            yield forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')
        if kind in before - now:
            yield forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')


def _conditions(status: Json, before: Json) -> Errors:
    """Conditions have a type each, and decisions are true; two that contradict each other stay where they are."""
    seen: list[str] = []
    stored = {condition.get("type") for _, condition in numbered(before, "conditions")}
    for index, condition in numbered(status, "conditions"):
        place, kind = f"status.conditions[{index}]", condition.get("type") or ""
        text = condition.get("status") or ""
        allowed = ("True",) if kind in _PERMANENT else _STATUSES
        if not kind:
            yield required_error(f"{place}.type")
        if not text:
            yield required_error(f"{place}.status")
        elif text not in allowed:
            yield not_supported(f"{place}.status", text, allowed)
        if kind in _DECISIONS and not stored.issuperset(_DECISIONS):
            if any(other in _DECISIONS and other != kind for other in seen):
                detail = "Approved and Denied conditions are mutually exclusive"
                yield invalid_value("status.conditions", kind, detail)
        if kind in seen:
            yield duplicate(f"{place}.type", kind)
        seen.append(kind)


def _certificate(value: Any, path: str) -> Errors:
    """PEM blocks of certificates, without headers; text between them is nobody's business."""
    try:
        text = base64.b64decode(value or "")
    except (ValueError, TypeError):
        return
    if not text:
        return
    blocks = 0
    for match in _BLOCK.finditer(text):
        blocks += 1
        label, headers, body = match.groups()
        if label != b"CERTIFICATE":
            shown = label.decode("utf-8", "replace")
            detail = f'only CERTIFICATE PEM blocks are allowed, found "{shown}"'
            yield invalid_value(path, _HIDDEN, detail)
            return
        if headers:
            yield invalid_value(path, _HIDDEN, "no PEM block headers are permitted")
            return
        if not _is_sequence(body):
            yield invalid_value(path, _HIDDEN, "x509: malformed certificate")
            return
    if not blocks:
        yield invalid_value(path, _HIDDEN, "must contain at least one CERTIFICATE PEM block")


def _is_sequence(body: bytes) -> bool:
    """Whether base64 text holds one DER sequence of the length that it says (X.690 8.1): what every certificate is."""
    try:
        data = base64.b64decode(body)
    except ValueError:
        return False
    if len(data) < 2 or data[0] != 0x30:
        return False
    if data[1] < 0x80:
        return len(data) == 2 + data[1]
    count = data[1] & 0x7F
    return len(data) == 2 + count + int.from_bytes(data[2 : 2 + count], "big")
