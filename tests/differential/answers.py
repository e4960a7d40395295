"""What two answers have in common: what differs from run to run taken out, then compared on three levels.

    code   the status, and the reason of a Status
    body   everything but text for people: messages, warnings, bodies of plain text
    text   that too, to the letter

Each level includes the one before. kube-apiserver walks maps in random order, so causes of a Status, and the parts of
its message, are compared without their order.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

LEVELS = ("code", "body", "text")
_GO_FAILURES = re.compile(
    "resourceVersion should not be set on objects|strconv\\.ParseUint: parsing |failed to (?:create|decode|convert) "
    "|conversion webhook for |failed calling webhook |Internal error occurred: |error decoding patch|unable to "
    "|list element types are not identical|does not contain declared merge key"
)
"""What kube-apiserver itself answers with a 500."""

_UID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
_TIME = re.compile(r"\b20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_PLACEHOLDER = re.compile(r"<(?:uid|version):\d+>")
_GENERATED = re.compile(r"(?<=-gen-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_POINTER = re.compile(r"0x[0-9a-f]{8,}|(?<=selfType)\d+")
_ADDRESSES = re.compile(r'(clusterIPs?\\*":\[?\\*")10\.(?:0\.0|96\.\d+)\.\d+')
_EMBEDDED = re.compile(r'(resourceVersion\\*":\\*")\d+')
_REVISION = re.compile(
    r"(?<=current: )\d+|(?<=in record \()\d+|(?<=in the precondition \()\d+|(?<=too old resource version: )\d+ \(\d+"
)
_AGE = re.compile(r"[0-5]?\ds")
_NUMBER = re.compile(r"\d{2,}")
_ALLOCATED = re.compile(r"10\.(?:0\.0|96\.\d+)\.\d+")
_ADDRESS = re.compile(r"127\.0\.0\.1(?::\d+)?")
_HASH = re.compile(r"[A-Za-z0-9+/]{11}=")  # a storageVersionHash
_CONTINUE = re.compile(r"\beyJ2Ijoi[\w-]+")
_OPAQUE = {"selfLink", "serverRelativeURL", "hash", "storageVersionHash", "serverAddress"}
_RULES = {"resourceRules", "nonResourceRules"}
_OF_OPENSHIFT = {"verbs": ["get"], "nonResourceURLs": ["/.well-known", "/.well-known/*"]}
"""What everybody may do on a kube-apiserver as OpenShift builds it, and on no other."""
_TEXTS = {"message", "warning"}
_OF_MAPS = re.compile("unrecognized format|: (?:Invalid value|Required value|Forbidden|Duplicate value)")
"""Warnings that kube-apiserver collects along a map: formats of schemas, and rules that old values break."""


def is_own_failure(status: int, text: str) -> bool:
    """Whether an answer is a 500 that kube-apiserver gives nobody."""
    return status == 500 and (not _GO_FAILURES.search(text) or "see the server's log" in text)


class Placeholders:
    """Replaces uids, versions, times and random names; the same value always by the same placeholder."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._seen: dict[str, dict[str, str]] = {"uid": {}, "version": {}}

    def _one(self, kind: str, value: str) -> str:
        table = self._seen[kind]
        return table.setdefault(value, f"<{kind}:{len(table) + 1}>")

    def clean(self, value: Any, key: str = "", parent: dict[str, Any] | None = None) -> Any:
        """A copy of an answer that can be compared with another run's."""
        if isinstance(value, dict) and "info" in value and ("openapi" in value or "swagger" in value):
            value = _without_prose(value)
        if isinstance(value, dict):
            if key == "protobuf" or "frames" in value:
                return self._unnamed(value)
            return {self.text(str(k)): self.clean(each, str(k), value) for k, each in value.items()}
        if isinstance(value, list):
            return [self.clean(each, key) for each in value]
        if key in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and 30000 <= value < 32768:
            return "<allocated>"
        if not isinstance(value, str):
            return value
        if key == "resourceVersion" and value:
            single = parent is not None and {"name", "uid", "creationTimestamp"} & parent.keys()
            return self._one("version", value) if single else "<version of a list>"
        if key in _OPAQUE:
            return f"<{key}>"
        if key == "cells" and _AGE.fullmatch(value):
            return "<age>"
        if key in ("clusterIP", "clusterIPs") and _ALLOCATED.fullmatch(value):
            return "<allocated>"
        return self.text(value)

    def _unnamed(self, value: Any) -> Any:
        """Of a message without names of fields: versions and times are known by being numbers."""
        if isinstance(value, dict):
            return {self.text(str(key)): self._unnamed(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._unnamed(each) for each in value]
        if isinstance(value, int) and value > 1_700_000_000:
            return "<seconds>"
        if isinstance(value, str):
            if _ADDRESS.fullmatch(value) or _HASH.fullmatch(value):
                return "<opaque>"
            return "<number>" if _NUMBER.fullmatch(value) else self.text(value)
        return value

    def text(self, value: str) -> str:
        """A text with placeholders."""
        value = value.replace(self._run, "RUN")
        if len(value) >= 8:
            value = _CONTINUE.sub(lambda found: _token(found[0]), value)
            value = _UID.sub(lambda found: self._one("uid", found[0]), value)
            value = _TIME.sub("<time>", value)
            value = _GENERATED.sub("<random>", value)
            value = _POINTER.sub("<address>", value)
            value = _REVISION.sub("<version>", value)
            value = _ADDRESSES.sub(r"\1<allocated>", value)
            value = _EMBEDDED.sub(r"\1<version>", value)
        return value


def _token(text: str) -> str:
    """What is in a continue token but its version, so that tokens of two servers can be compared."""
    try:
        token = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return text
    return f"<continue {token.get('start')!r}>" if isinstance(token, dict) else text


def _without_prose(document: Any) -> Any:
    """An OpenAPI document without descriptions, which are each project's own, and without the kinds of what every group
    has (``DeleteOptions``), which are those of a release."""
    if isinstance(document, dict):
        return {
            key: _without_prose(each)
            for key, each in document.items()
            if not (key == "description" and isinstance(each, str))
            and not (key == "x-kubernetes-group-version-kind" and isinstance(each, list) and len(each) > 2)
        }
    return [_without_prose(each) for each in document] if isinstance(document, list) else document


class Pairs:
    """Which placeholder of one run is which of the other: paired where they are first met at the same place."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def meet(self, wanted: Any, got: Any) -> None:
        """Pairs the placeholders of two answers."""
        if isinstance(wanted, dict) and isinstance(got, dict):
            for key in wanted.keys() & got.keys():
                self.meet(wanted[key], got[key])
        elif isinstance(wanted, list) and isinstance(got, list):
            for one, other in zip(wanted, got, strict=False):
                self.meet(one, other)
        elif isinstance(wanted, str) and isinstance(got, str) and "<" in wanted:
            if _PLACEHOLDER.sub("", wanted) != _PLACEHOLDER.sub("", got):
                return
            for one, other in zip(_PLACEHOLDER.findall(wanted), _PLACEHOLDER.findall(got), strict=False):
                if one[:3] == other[:3] and other not in self._of and one not in self._of.values():
                    self._of[other] = one

    def rename(self, got: Any) -> Any:
        """The second run's answer in the first one's placeholders; one without a partner keeps a mark."""
        if isinstance(got, dict):
            return {self.rename(key): self.rename(value) for key, value in got.items()}
        if isinstance(got, list):
            return [self.rename(each) for each in got]
        if isinstance(got, str) and "<" in got:
            return _PLACEHOLDER.sub(lambda found: self._of.get(found[0], found[0][:-1] + "?>"), got)
        return got


def _code(answer: dict[str, Any]) -> Any:
    body = answer.get("body")
    is_status = isinstance(body, dict) and body.get("kind") == "Status"
    return answer.get("status"), body.get("reason") if is_status else None


def _without_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_text(each)
            for key, each in value.items()
            if key not in _TEXTS and not (key == "text" and isinstance(each, str))
        }
    if isinstance(value, list):
        return [_without_text(each) for each in value]
    return value


def ordered(value: Any) -> Any:
    """Causes of a Status, and the parts of texts, in one order."""
    if isinstance(value, dict):
        found = {key: ordered(each) for key, each in value.items()}
        causes = found.get("causes")
        if isinstance(causes, list):
            found["causes"] = sorted(
                causes, key=lambda c: sorted(map(str, c.items())) if isinstance(c, dict) else []
            )
        owners = found.get("managedFields")
        if isinstance(owners, list):
            # In the order of times, and two servers need not pass from one second to the next at the same step.
            found["managedFields"] = sorted(owners, key=lambda each: json.dumps(each, sort_keys=True))
        for key in _RULES.intersection(found):
            # Of several roles, whose order is a map's.
            if isinstance(found[key], list):
                rules = [each for each in found[key] if each != _OF_OPENSHIFT]
                found[key] = sorted(rules, key=lambda each: json.dumps(each, sort_keys=True))
        conditions = found.get("conditions")
        if isinstance(conditions, list) and any(_by_chance(each) for each in conditions):
            # Two controllers of kube-apiserver write them, and either may be the first.
            found["conditions"] = sorted(conditions, key=lambda each: str(each.get("type")))
        warnings = found.get("warning")
        if isinstance(warnings, list) and all(_OF_MAPS.search(str(each)) for each in warnings):
            found["warning"] = sorted(warnings)
        texts = ("message", "evaluationError", "reason") if "allowed" in found else ("message",)
        for key in texts:
            if isinstance(found.get(key), str):
                found[key] = sorted(re.split(r", |\]|\[|\n", found[key]))
        return found
    if isinstance(value, list):
        return [ordered(each) for each in value]
    return value


def _by_chance(condition: Any) -> bool:
    return isinstance(condition, dict) and condition.get("type") == "KubernetesAPIApprovalPolicyConformant"


def agreement(wanted: dict[str, Any], got: dict[str, Any]) -> str | None:
    """The highest level at which two answers agree, None where not even their codes do."""
    if wanted == got:
        return "text"
    if _code(wanted) != _code(got):
        return None
    one, other = ordered(wanted), ordered(got)
    if one == other:
        return "text"
    return "body" if _without_text(one) == _without_text(other) else "code"


def differences(wanted: Any, got: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(path, wanted, got) of each leaf that differs; what is missing is ``...``."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in sorted(wanted.keys() | got.keys(), key=str):
            yield from differences(
                wanted.get(key, ...), got.get(key, ...), f"{path}.{key}" if path else str(key)
            )
    elif isinstance(wanted, list) and isinstance(got, list):
        for number in range(max(len(wanted), len(got))):
            one = wanted[number] if number < len(wanted) else ...
            other = got[number] if number < len(got) else ...
            yield from differences(one, other, f"{path}.{number}")
    elif wanted != got:
        yield path, wanted, got


def shown(wanted: dict[str, Any], got: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The differences that count, those of codes first."""
    found = list(differences(ordered(wanted), ordered(got)))
    return sorted(
        found, key=lambda d: (d[0] != "status", not d[0].endswith("reason"), d[0].endswith("message"))
    )


_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|<[^<>]*>|\b\d[\d.]*\b|[a-z0-9-]+-RUN\S*')


def signature(level: str | None, wanted: dict[str, Any], got: dict[str, Any]) -> str:
    """A text that differences of one class share: where they are, and how the two sides look."""
    found = shown(wanted, got)
    if not found:
        return "same"
    path, one, other = found[0]
    if level is None:
        return f"nothing | {_summary(wanted)} ≠ {_summary(got)}"
    path = re.sub(r"\.\d+\b", ".*", path)
    path = re.sub(r"(fieldsV1)\..*", r"\1…", path)
    return f"{level} | {path} | {_outline(one)} ≠ {_outline(other)}"


def _summary(answer: dict[str, Any]) -> str:
    body = answer.get("body")
    said = body.get("reason", "") if isinstance(body, dict) else ""
    message = body.get("message", "") if isinstance(body, dict) else ""
    return (
        f"{answer.get('status')} {said} ({_outline(message)})"
        if said or message
        else f"{answer.get('status')}"
    )


def _outline(value: Any) -> str:
    if value is ...:
        return "absent"
    if isinstance(value, list):
        return " / ".join(_outline(each) for each in value[:3])[:160] if value else "[]"
    if isinstance(value, dict):
        return "{" + ",".join(sorted(map(str, value))[:4]) + "}"
    return _QUOTED.sub("_", str(value))[:120]
