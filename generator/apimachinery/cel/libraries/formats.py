"""Named formats: ``format.dns1123Label().validate(text)`` gives none or an optional list of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import ABSENT, Opaque, Optional, Timestamp

from .urls import parse_url


class Format(Opaque):
    """``kubernetes.NamedFormat``."""

    __slots__ = ("max_regex_size", "name", "validate")
    type_name: ClassVar[str] = "kubernetes.NamedFormat"

    def __init__(self, name: str, validate: Callable[[str], list[str]], max_regex_size: int):
        self.name = name
        self.validate = validate
        self.max_regex_size = max_regex_size


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"


def _explained(message: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    joined = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {joined}regex used for validation is '{pattern}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _check(text: str, limit: int, pattern: str, message: str, *examples: str) -> list[str]:
    faults = []
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        faults.append(_too_long(limit))
    if not re.fullmatch(pattern, text, re.ASCII):
        faults.append(_explained(message, pattern, *examples))
    return faults


LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character"
)
LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)


def label(text: str) -> list[str]:
    """dns1123Label."""
    return _check(text, 63, _LABEL, LABEL_TEXT, "my-name", "123-abc")


def subdomain(text: str) -> list[str]:
    """dns1123Subdomain."""
    return _check(text, 253, _SUBDOMAIN, SUBDOMAIN_TEXT, "example.com")


def label_1035(text: str) -> list[str]:
    """dns1035Label."""
    return _check(text, 63, _LABEL_1035, LABEL_1035_TEXT, "my-name", "abc-123")


def _prefixed(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(text[:-1] + "a" if len(text) > 1 and text.endswith("-") else text)


def label_value(text: str) -> list[str]:
    """labelValue."""
    return _check(text, 63, _LABEL_VALUE, LABEL_VALUE_TEXT, "MyValue", "my_value", "12345")


def qualified_name(text: str) -> list[str]:
    """qualifiedName: an optional DNS subdomain, a slash and a name."""
    faults: list[str] = []
    parts = text.split("/")
    if len(parts) > 2:
        faults.append(
            "a qualified name "
            + _explained(QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
        return faults
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        else:
            faults += ["prefix part " + fault for fault in subdomain(parts[0])]
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part " + _too_long(63))
    if not re.fullmatch(_QUALIFIED, name, re.ASCII):
        faults.append("name part " + _explained(QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc"))
    return faults


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except EvalError as error:
        return [str(error).removeprefix("URL parse error during conversion from string: ")]
    return []


_UUID = r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"


def _uuid(text: str) -> list[str]:
    ok = re.fullmatch(_UUID, text, re.ASCII)
    return [] if ok else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if re.fullmatch(_BASE64, text, re.ASCII) else ["invalid base64"]


def _date(text: str) -> list[str]:
    ok = re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) and Timestamp.parse(text + "T00:00:00Z")
    return [] if ok else ["invalid date"]


def _datetime(text: str) -> list[str]:
    return [] if Timestamp.parse(text.upper().replace(" ", "T")) else ["invalid datetime"]


FORMATS: dict[str, Format] = {
    name: Format(name, check, size)
    for name, check, size in (
        ("dns1123Label", label, 30),
        ("dns1123Subdomain", subdomain, 60),
        ("dns1035Label", label_1035, 30),
        ("qualifiedName", qualified_name, 60),
        ("dns1123LabelPrefix", _prefixed(label), 30),
        ("dns1123SubdomainPrefix", _prefixed(subdomain), 60),
        ("dns1035LabelPrefix", _prefixed(label_1035), 30),
        ("labelValue", label_value, 40),
        ("uri", _uri, 1103),
        ("uuid", _uuid, 70),
        ("byte", _byte, 84),
        ("date", _date, 71),
        ("datetime", _datetime, 71),
    )
}


def _validate(named: Format, text: str) -> Optional:
    faults = named.validate(text)
    return Optional(faults) if faults else ABSENT


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return ABSENT if found is None else Optional(found)


def formats() -> Library:
    """Kubernetes' format library."""
    lib = Library("format")
    lib.declare_type("format", t.object_type("kubernetes.NamedFormat"), Format)
    lib.overload("validate", "format-validate", "format.(string) optional(list(string))", _validate)
    lib.overload("format.named", "format-named", "(string) optional(format)", _named)
    for name, value in FORMATS.items():
        lib.overload(f"format.{name}", f"format-constant-{name}", "() format", _constant(value))
    return lib


def _constant(value: Format) -> Callable[[], Any]:
    return lambda: value
