"""The resourceVersion that a write names."""

from __future__ import annotations

from apimachinery.meta.printing import go_quote

MAX_UINT64 = (1 << 64) - 1


def is_version(text: object) -> bool:
    """Whether a create names a version. kube-apiserver ignores what is not a number (its storage asks the versioner,
    and takes an error as none)."""
    return isinstance(text, str) and not version_fault(text) and bool(text.strip("0"))


def version_fault(text: str) -> str:
    """What Go's ``strconv.ParseUint`` says of a version, for 64 bits; empty of a good one."""
    return unsigned_fault(text, MAX_UINT64)


def unsigned_fault(text: str, most: int) -> str:
    """What Go's ``strconv.ParseUint`` says of a number up to ``most``; empty of a good one."""
    if not (text.isascii() and text.isdigit()):
        return f"strconv.ParseUint: parsing {go_quote(text)}: invalid syntax"
    digits = text.lstrip("0")
    if len(digits) > 20 or int(digits or "0") > most:
        return f"strconv.ParseUint: parsing {go_quote(text)}: value out of range"
    return ""
