"""How Go prints values of built-in kinds: the structs in messages such as ``Unsupported value: {"Type":"a",…}``.

Theory. kube-apiserver validates structs of its own that few JSON tags name, and a message shows a bad value as
encoding/json writes it: fields in the order and by the names of the source, with nothing left out: what is not said
is null, "", 0, false, or a struct of these. ``specs/kubernetes/go_types.yaml`` holds the facts; a generated
``go_types.py`` holds them as text, which is read here when a message needs it. A value's type is found by the path of
its fault from the kind's own struct. What does not fit the struct is printed as it is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.printing import InOrder, go_struct_json

GO_PACKAGES = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}
"""Groups whose structs are in a package that is not called as the group's first word."""

_ZEROS: dict[str, Any] = {"string": "", "int": 0, "bool": False, "quantity": "0", "intstr": 0}
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_SECURITY = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


class _Misfit(Exception):
    """The value is not one of the struct."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: the name printed (none where the struct's fields are here), the JSON name, the type."""

    printed: str
    key: str
    type: str
    omitted: bool


class GoForms:
    """The structs of a package, by name, as ``go_types.py`` has them."""

    def __init__(self, structs: Mapping[str, str]) -> None:
        self._structs = structs
        self._fields: dict[str, list[_Field]] = {}

    def knows(self, struct: str) -> bool:
        """Whether there is such a struct: ``core.PodSpec``."""
        return struct in self._structs

    def printed(self, root: str, fault: FieldError) -> FieldError:
        """The fault of an object of the struct ``root``, with its value and what it compares as Go prints them."""
        if fault.compared is not None:
            struct, old, new = fault.compared
            return replace(fault, detail=fault.detail + self.difference(struct, old, new), compared=None)
        if not isinstance(fault.bad_value, (dict, list)):
            return fault
        type_ = self.type_at(root, fault.field)
        if type_ is None:
            return fault
        if isinstance(fault.bad_value, dict):
            type_ = type_.removeprefix("[]")  # some faults of a list show the item
        try:
            return replace(fault, bad_value=InOrder(self._value(type_, fault.bad_value)))
        except _Misfit:
            return fault

    def difference(self, type_: str, old: Any, new: Any) -> str:
        """Two values as the lines in which their indented forms differ; nothing where one is of another form."""
        try:
            before, after = (_lines(self._value(type_, value)) for value in (old, new))
        except _Misfit:
            return ""
        return "\n" + "".join(difflib.unified_diff(before, after, n=3)).removeprefix("--- \n+++ \n")

    def type_at(self, root: str, path: str) -> str | None:
        """The type at a field path; None where the struct has no such field."""
        type_ = root
        for key, name in _STEP.findall(path):
            type_ = type_.removeprefix("*")
            if key or not name:
                if type_[:2] not in ("[]", "{}"):
                    return None
                type_ = type_[2:]
                continue
            found = self._field(type_, name)
            if found is None:
                return None
            type_ = found.type
        return type_

    def _field(self, struct: str, name: str) -> _Field | None:
        if struct not in self._structs:
            return None
        for each in self._of(struct):
            if each.key == name.lower():
                return each
            if not each.printed and (inner := self._field(each.type, name)) is not None:
                return inner
        return None

    def _of(self, struct: str) -> list[_Field]:
        """The fields of a struct, read once."""
        known = self._fields.get(struct)
        if known is None:
            package = struct.partition(".")[0]
            text = self._structs[struct]
            known = self._fields[struct] = [_field(part, package) for part in text.split(", ") if part]
            for index, each in enumerate(known):
                bare = each.type.lstrip("*[]{}")
                if "." not in bare and f"{package}.{bare}" in self._structs:
                    full = each.type.removesuffix(bare) + f"{package}.{bare}"
                    known[index] = replace(each, type=full)
        return known

    def _value(self, type_: str, value: Any) -> Any:
        """``value`` as Go prints one of this type; a struct is a dict with its fields in order."""
        if type_[0] == "*":
            return None if value is None else self._value(type_[1:], value)
        if type_[:2] == "[]":
            if value is not None and not isinstance(value, list):
                raise _Misfit
            return None if value is None else [self._value(type_[2:], each) for each in value]
        if type_[:2] == "{}":
            if value is not None and not isinstance(value, dict):
                raise _Misfit
            return (
                None if value is None else {key: self._value(type_[2:], value[key]) for key in sorted(value)}
            )
        if type_ not in self._structs:
            if isinstance(value, (dict, list)) and type_ != "raw":
                raise _Misfit
            return _ZEROS.get(type_) if value is None else value
        if value is not None and not isinstance(value, dict):
            raise _Misfit
        rest = {key.lower(): each for key, each in _arranged(type_, value or {}).items()}
        out: dict[str, Any] = {}
        self._fill(type_, rest, out)
        if rest:
            raise _Misfit
        return out

    def _fill(self, struct: str, rest: dict[str, Any], out: dict[str, Any]) -> None:
        """Moves the struct's fields from ``rest`` to ``out``."""
        for each in self._of(struct):
            if not each.printed:
                if each.type == "meta.ObjectMeta":
                    metadata = rest.pop("metadata", None) or {}
                    rest |= {key.lower(): value for key, value in metadata.items()}
                self._fill(each.type, rest, out)
                continue
            value = self._value(each.type, rest.pop(each.key, None))
            if not (each.omitted and (value is None or (each.type[0] != "*" and not value))):
                out[each.printed] = value


def _field(text: str, package: str) -> _Field:
    if text[0] == "<":
        name = text[1:-1]
        return _Field("", "", name if "." in name else f"{package}.{name}", False)
    name, _, type_ = text.partition(" ")
    printed, _, key = name.rstrip("?").partition("=")
    return _Field(printed, (key or printed).lower(), type_, name.endswith("?"))


def _arranged(struct: str, value: dict[str, Any]) -> dict[str, Any]:
    """The fields where the struct has them: what JSON says of a pod's host is in its security context, and what JSON
    says twice is there once."""
    if struct == "core.PodSpec":
        value = dict(value)
        value.pop("serviceAccount", None)
        host = {key: value.pop(key) for key in _SECURITY if key in value}
        if host or "securityContext" in value:
            value["securityContext"] = {**host, **(value.get("securityContext") or {})}
    elif struct == "core.NodeSpec" and "podCIDR" in value:
        value = {key: each for key, each in value.items() if key != "podCIDR"}
    return value


def _lines(value: Any) -> list[str]:
    """The lines of a value as Go indents JSON by one space; the last one ends as the others do."""
    return [line + "\n" for line in go_struct_json(value, indent=1).split("\n")]
