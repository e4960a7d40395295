"""The string formats that kube-apiserver checks; any other is taken as if it were not there.

Source: kube-openapi's strfmt registry and the list that apiextensions keeps. A format's dashes do not count
(``date-time`` is ``datetime``).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from datetime import date

import re2

from apimachinery.meta.names import is_dns1123_label, is_dns1123_subdomain

_NUMERIC = frozenset({"int32", "int64", "uint32", "uint64", "float", "float32", "float64", "double"})


_OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}
"""Those that hold for custom resources: apiextensions passes over the others."""


def is_known_format(wanted: str, kind: str = "") -> bool:
    """Does kube-apiserver check this format; with ``kind``, of values of that type in a custom resource."""
    if kind in _OF_NUMBERS:
        return wanted in _OF_NUMBERS[kind]
    return wanted in _NUMERIC or wanted.replace("-", "") in _CHECKS


def string_format_check(wanted: str) -> Callable[[str], bool] | None:
    """The check of a format of strings, None for a format of numbers or an unknown one."""
    return _CHECKS.get(wanted.replace("-", ""))


_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_HOSTNAME = re.compile(r"[LN]-?[LN]{0,62}|(?:[LN](?:[LN-]{0,61}[LN])?\.)+L{2,63}")
"""On a text whose letters are written ``L``, its digits and symbols ``N``: a domain at the top has letters only."""


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re2.compile(pattern)

    def check(text: str) -> bool:
        return compiled.fullmatch(text) is not None

    return check


def _is_hostname(text: str) -> bool:
    octets = text.encode("utf-8", "surrogatepass")
    if len(octets) > 255 or any(len(label) > 63 for label in octets.split(b".")):
        return False
    shape = "".join(char if char in "-." else _sort_of(char) for char in text)
    return _HOSTNAME.fullmatch(shape) is not None


def _sort_of(char: str) -> str:
    category = unicodedata.category(char)[0]
    return "L" if category == "L" else "N" if category == "S" or "0" <= char <= "9" else "X"


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USER = re.compile(r"(?:[A-Za-z0-9._:~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})*")
_HOST = re.compile(r"""(?:[A-Za-z0-9_.~!$&'()*+,;=:\]<>"-]|[^\x00-\x7f]|%25|%[89A-Fa-f][0-9A-Fa-f])*""")
_BRACKETED = re.compile(r"\[([^\]%]*)(?:%25[^\]]+)?\](?::[0-9]*)?")


def _is_uri(text: str) -> bool:
    """Go's url.ParseRequestURI: a path from the root, or what has a scheme; below that only authorities and escapes
    in paths are checked."""
    if not text or any(char < " " or char == "\x7f" for char in text):
        return False
    if text == "*":
        return True
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        return scheme is not None
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if not _is_authority(authority):
            return False
        rest = slash + path
    return _BAD_ESCAPE.search(rest) is None


def _is_authority(text: str) -> bool:
    user, _, host = text.rpartition("@")
    if _USER.fullmatch(user) is None:
        return False
    if "[" not in host:
        port = host.rpartition(":")[2] if ":" in host else ""
        return _HOST.fullmatch(host) is not None and re.fullmatch("[0-9]*", port) is not None
    found = _BRACKETED.fullmatch(host)
    return found is not None and _is_ipv6(found[1])


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x{80}-\x{10ffff}-]+"
_ADDRESS = re2.compile(rf'({_ATOM}(\.{_ATOM})*|"([^"\\]|\\.)*")@({_ATOM}(\.{_ATOM})*|\[[^\[\]\\]*\])')
_NAMED_ADDRESS = re2.compile(r'\s*("([^"\\]|\\.)*"|[^<>"@,:;]*)\s*<([^<>]+)>\s*')


def _is_email(text: str) -> bool:
    named = _NAMED_ADDRESS.fullmatch(text)
    return _ADDRESS.fullmatch(named.group(3).strip() if named else text.strip()) is not None


def _is_ipv4(text: str) -> bool:
    return "." in text and _ip(text) is not None


def _is_ipv6(text: str) -> bool:
    return ":" in text and _ip(text, zeros=False) is not None


def _ip(text: str, *, zeros: bool = True) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address; with ``zeros`` parts of IPv4 may begin with them, as they could before Go 1.17."""
    if "%" in text:
        return None
    if zeros and "." in text:
        text = re.sub(r"(?<![0-9A-Fa-f])0+(?=[0-9]+(?:\.|$))", "", text)
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    found = _ip(address)
    if not slash or found is None or re.fullmatch(r"[0-9]+", length) is None:
        return False
    return int(length) <= found.max_prefixlen


_MAC = re.compile(
    r"(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1)*[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}\.)+[0-9A-Fa-f]{4}|[0-9A-Fa-f]+"
)


def _is_mac(text: str) -> bool:
    digits = re.sub(r"[:.-]", "", text)
    return len(digits) in (12, 16, 40) and _MAC.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return False
    try:
        year = int(text[:4])
        date(year or 4, int(text[5:7]), int(text[8:]))
    except ValueError:
        return False
    return True


_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")


def _is_date_time(text: str) -> bool:
    day, mark, rest = text.lower().partition("t")
    if not mark or not _is_date(day):
        return False
    found = _TIME.fullmatch(rest.partition("t")[0])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


_GO_DURATION = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|[+-]?0")
_WORDED = re.compile(r"[0-9]+\s*([A-Za-zµ]+)")
_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "week", "wk"),
)


def _is_duration(text: str) -> bool:
    """Go's notation, or numbers with a unit in words, among anything else."""
    if _GO_DURATION.fullmatch(text) is not None:
        return True
    units = (found[1].lower() for found in _WORDED.finditer(text))
    return any(unit.startswith(names[-1]) or unit in names for unit in units for names in _UNITS)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((10 - i) * (10 if c == "X" else int(c)) for i, c in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum((3 if i % 2 else 1) * int(c) for i, c in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if (
        not 13 <= len(digits) <= 19
        or re.fullmatch(r"(?:4|5[1-5]|2[2-7]|6011|65|3[47]|30[0-5]|3[68]|2131|1800|35).*", digits) is None
    ):
        return False
    total = 0
    for place, char in enumerate(reversed(digits)):
        digit = int(char) * (2 if place % 2 else 1)
        total += digit - 9 if digit > 9 else digit
    return total % 10 == 0


_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _matches(_UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID % ("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID % ("4", "[89ab]")),
    "uuid5": _matches(_UUID % ("5", "[89ab]")),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matches(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(
        r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,"
        r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)"
    ),
    "byte": _matches(r"(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})"),
    "password": lambda text: True,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "k8sshortname": is_dns1123_label,
    "k8slongname": is_dns1123_subdomain,
}
