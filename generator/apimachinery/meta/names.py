"""The forms of names in the API: DNS labels and subdomains, qualified names, label values.

Sources: RFC 1035, RFC 1123, and k8s.io/apimachinery's util/validation for limits and words. Each ``*_faults``
function returns texts, empty for a good name. Python's ``re`` is safe here: the patterns are ours and linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from apimachinery.meta.addresses import ip_faults
from apimachinery.meta.release import current_release, release_number

_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_UNDERSCORE = re.compile(
    r"_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:\._?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*"
)
_LABEL_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
# Names as nearly all are, with or without a domain before them; only for texts of up to 63 characters.
_PLAIN_KEY = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"(?:(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_SUBDOMAIN_UNDERSCORE_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _size(text: str) -> int:
    """Length in bytes, as Go counts."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_dns1123_label(text: str) -> bool:
    """Is the text a lower-case RFC 1123 label."""
    return not dns1123_label_faults(text)


def is_dns1123_subdomain(text: str) -> bool:
    """Is the text a lower-case RFC 1123 subdomain."""
    return not dns1123_subdomain_faults(text)


def dns1123_label_faults(text: str) -> list[str]:
    """What keeps the text from being a label of RFC 1123, at most 63 characters."""
    faults = ["must be no more than 63 characters"] if _size(text) > 63 else []
    if _LABEL.fullmatch(text) is None:
        if _SUBDOMAIN.fullmatch(text) is not None:
            faults.append("must not contain dots")
        else:
            faults.append(_LABEL_TEXT)
    return faults


def dns1123_subdomain_faults(text: str) -> list[str]:
    """What keeps the text from being a subdomain of RFC 1123, at most 253 characters."""
    faults = ["must be no more than 253 characters"] if _size(text) > 253 else []
    if _SUBDOMAIN.fullmatch(text) is None:
        faults.append(_SUBDOMAIN_TEXT)
    return faults


def dns1123_subdomain_with_underscore_faults(text: str) -> list[str]:
    """What keeps the text from being a subdomain whose labels may hold underscores, as search paths of DNS do."""
    faults = ["must be no more than 253 characters"] if _size(text) > 253 else []
    if _SUBDOMAIN_UNDERSCORE.fullmatch(text) is None:
        faults.append(_SUBDOMAIN_UNDERSCORE_TEXT)
    return faults


def dns1035_label_faults(text: str) -> list[str]:
    """What keeps the text from being a label of RFC 1035: it starts with a letter, at most 63 characters."""
    faults = ["must be no more than 63 characters"] if _size(text) > 63 else []
    if _LABEL_1035.fullmatch(text) is None:
        faults.append(_LABEL_1035_TEXT)
    return faults


def qualified_name_faults(text: str) -> list[str]:
    """What keeps the text from being ``[prefix/]name``: a label key, an annotation key, a finalizer."""
    if len(text) <= 63 and _PLAIN_KEY.fullmatch(text):
        return []
    parts = text.split("/")
    faults: list[str] = []
    if len(parts) > 2:
        return [
            f"a valid label key {_QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        else:
            said = (
                fault.replace("253 characters", "253 bytes") for fault in dns1123_subdomain_faults(parts[0])
            )
            faults.extend(f"prefix part {fault}" for fault in said)
    if not name:
        faults.append("name part must be non-empty")
    elif _size(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    if _QUALIFIED.fullmatch(name) is None:
        faults.append(f"name part {_QUALIFIED_RULE}")
    return faults


def label_value_faults(text: str) -> list[str]:
    """What keeps the text from being a label's value, at most 63 characters."""
    faults = ["must be no more than 63 bytes"] if _size(text) > 63 else []
    if _LABEL_VALUE.fullmatch(text) is None:
        faults.append(_LABEL_VALUE_TEXT)
    return faults


def path_segment_faults(text: str, prefix: bool = False) -> list[str]:
    """What keeps the text from being one segment of a path: the least a name must keep."""
    if not prefix:
        for segment in (".", ".."):
            if text == segment:
                return [f"may not be '{segment}'"]
    return [f"may not contain '{char}'" for char in ("/", "%") if char in text]


def config_key_faults(text: str) -> list[str]:
    """What keeps the text from being a key of a ConfigMap or Secret, at most 253 characters."""
    faults = ["must be no more than 253 characters"] if _size(text) > 253 else []
    if _CONFIG_KEY.fullmatch(text) is None:
        faults.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if text in (".", ".."):
        faults.append(f"must not be '{text}'")
    elif text.startswith(".."):
        faults.append("must not start with '..'")
    return faults


def mask_trailing_dash(prefix: str) -> str:
    """A generateName as a name rule sees it: its closing dash stands for the suffix to come."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def dns_subdomain_name(text: str, prefix: bool) -> list[str]:
    """The usual rule for names of objects."""
    return dns1123_subdomain_faults(mask_trailing_dash(text) if prefix else text)


SERVICE_NAMES_RELAXED = (1, 36)
"""Since which release names of Services may begin with a digit (RelaxedServiceNameValidation)."""


def service_name(text: str, prefix: bool) -> list[str]:
    """What is wrong with the name of a Service."""
    if release_number(current_release()) >= SERVICE_NAMES_RELAXED:
        return dns_label_name(text, prefix)
    return dns1035_label_faults(mask_trailing_dash(text) if prefix else text)


def dns_label_name(text: str, prefix: bool) -> list[str]:
    """The rule for names that become DNS labels: namespaces, services' ports."""
    return dns1123_label_faults(mask_trailing_dash(text) if prefix else text)


def ip_name(text: str, prefix: bool) -> list[str]:
    """The rule for names that are IP addresses in their canonical form."""
    del prefix
    return ip_faults(text)


def config_key_name(text: str, prefix: bool) -> list[str]:
    """The rule for names that are keys of a ConfigMap: no slash, and never a step upwards."""
    del prefix
    return config_key_faults(text)


NAME_RULES: dict[str, Callable[[str, bool], list[str]]] = {
    "config-key": config_key_name,
    "dns-label": dns_label_name,
    "service": service_name,
    "dns-subdomain": dns_subdomain_name,
    "ip": ip_name,
    "path-segment": path_segment_faults,
}
"""The rules that a kind's strategy may name."""
