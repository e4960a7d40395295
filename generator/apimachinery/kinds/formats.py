"""Forms of texts that rule files may name: each function says what is wrong with a text, in kube-apiserver's words."""

from __future__ import annotations

import re
from collections.abc import Callable

from apimachinery.kinds.gates import enabled
from apimachinery.meta import addresses, names

# Python's ``re`` is safe here: the patterns are ours and linear.
_PORT_CHARACTERS = re.compile(r"[-a-z0-9]+")
_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[-A-Za-z0-9]+")


def port_name_faults(text: str) -> list[str]:
    """What is wrong with the name of a port (an IANA service name)."""
    faults = []
    if len(text) > 15:
        faults.append("must be no more than 15 characters")
    if not _PORT_CHARACTERS.fullmatch(text):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in text):
        faults.append("must contain at least one letter (a-z)")
    if "--" in text:
        faults.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        faults.append("must not begin or end with a hyphen")
    return faults


def env_name_faults(text: str) -> list[str]:
    """What is wrong with the name of an environment variable."""
    if not text:
        return ["environment variable name must be non-empty"]
    if any(not " " <= char <= "~" or char == "=" for char in text):
        return [
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        ]
    return []


def header_name_faults(text: str) -> list[str]:
    """What is wrong with the name of an HTTP header."""
    if _HEADER.fullmatch(text):
        return []
    return [
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
        "validation is '[-A-Za-z0-9]+')"
    ]


def c_identifier_faults(text: str) -> list[str]:
    """What is wrong with an identifier as of C."""
    if _C_IDENTIFIER.fullmatch(text):
        return []
    return [
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
        "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
        "'[A-Za-z_][A-Za-z0-9_]*')"
    ]


def fully_qualified_faults(text: str) -> list[str]:
    """What is wrong with a domain name that must have at least two parts."""
    if faults := names.dns1123_subdomain_faults(text):
        return faults
    return [] if text.count(".") >= 1 else ["should be a domain with at least two segments separated by dots"]


def three_part_faults(text: str) -> list[str]:
    """What is wrong with a domain name that must have at least three parts."""
    if faults := names.dns1123_subdomain_faults(text):
        return [",".join(faults)]
    return (
        [] if text.count(".") >= 2 else ["should be a domain with at least three segments separated by dots"]
    )


def absolute_path_faults(text: str) -> list[str]:
    """What is wrong with a path that must begin with a slash."""
    return [] if text.startswith("/") else ["must be an absolute path"]


def ip_faults(text: str) -> list[str]:
    """What is wrong with an address in a field of old: its spelling only where the release is strict (KEP-4858)."""
    if enabled("StrictIPCIDRValidation"):
        return addresses.legacy_ip_faults(text)
    return [] if addresses.parse_ip(text) else [addresses.NO_ADDRESS]


def cidr_faults(text: str) -> list[str]:
    """What is wrong with a block in a field of old, likewise."""
    if enabled("StrictIPCIDRValidation"):
        return addresses.legacy_cidr_faults(text)
    return [] if addresses.parse_cidr(text) else [addresses.NO_BLOCK]


FORMATS: dict[str, Callable[[str], list[str]]] = {
    "absolute-path": absolute_path_faults,
    "c-identifier": c_identifier_faults,
    "canonical-ip": addresses.ip_faults,
    "cidr": cidr_faults,
    "config-key": names.config_key_faults,
    "dns-1035-label": names.dns1035_label_faults,
    "dns-label": names.dns1123_label_faults,
    "dns-subdomain": names.dns1123_subdomain_faults,
    "dns-subdomain-prefix": lambda text: names.dns_subdomain_name(text, True),
    "dns-subdomain-underscore": names.dns1123_subdomain_with_underscore_faults,
    "env-name": env_name_faults,
    "fully-qualified": fully_qualified_faults,
    "http-header": header_name_faults,
    "ip": ip_faults,
    "label-value": names.label_value_faults,
    "path-segment": names.path_segment_faults,
    "port-name": port_name_faults,
    "qualified-name": names.qualified_name_faults,
    "three-part-domain": three_part_faults,
}
"""The formats a rule file may name."""
