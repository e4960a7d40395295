"""Bindings as they are read: whom they name, and what they give."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from apimachinery.access.authorization import SERVICE_ACCOUNT_PREFIX, Verdict
from apimachinery.access.malformed import decoded, report
from apimachinery.meta.printing import go_quote

GROUP = "rbac.authorization.k8s.io"
KINDS = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}
Key = tuple[str, str]
"""Namespace ("" for none) and name of a role or binding."""
Holder = tuple[str, str]
"""``("user", NAME)`` or ``("group", NAME)``: whom a subject names. A service account is the user it asks as."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One subject of a binding, in words of the API."""

    kind: str
    name: str
    namespace: str = ""

    def holder(self, binding_namespace: str) -> Holder | None:
        """Whom it names, None for nobody."""
        if self.kind == "User":
            return "user", self.name
        if self.kind == "Group":
            return "group", self.name
        namespace = self.namespace or binding_namespace
        if self.kind == "ServiceAccount" and namespace:
            return "user", f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{self.name}"
        return None

    def shown(self, binding_namespace: str) -> str:
        """As a reason names it."""
        name = self.name
        if self.kind == "ServiceAccount":
            name = f"{name}/{self.namespace or binding_namespace}"
        return f"{self.kind} {go_quote(name)}"


@dataclass(frozen=True, slots=True)
class Binding:
    """A ClusterRoleBinding (``namespace`` empty) or a RoleBinding."""

    namespace: str
    name: str
    role_kind: str
    role_name: str
    subjects: tuple[Subject, ...]

    @property
    def role(self) -> Key:
        """Where its role is found."""
        return ("" if self.role_kind == "ClusterRole" else self.namespace), self.role_name

    def shown(self, subject: Subject) -> str:
        """As a reason names it."""
        kind, name = "ClusterRoleBinding", self.name
        if self.namespace:
            kind, name = "RoleBinding", f"{name}/{self.namespace}"
        role = f"{self.role_kind} {go_quote(self.role_name)}"
        return f"{kind} {go_quote(name)} of {role} to {subject.shown(self.namespace)}"


class Grant:
    """A binding that applies to a user, through the subject at ``position``."""

    __slots__ = ("_verdict", "binding", "position")

    def __init__(self, binding: Binding, position: int) -> None:
        self.binding = binding
        self.position = position
        self._verdict: Verdict | None = None

    @property
    def subject(self) -> Subject:
        """The subject that applies."""
        return self.binding.subjects[self.position]

    @property
    def verdict(self) -> Verdict:
        """The allowance, and why."""
        # Made on demand: most grants are never named as a reason.
        if self._verdict is None:
            reason = f"RBAC: allowed by {self.binding.shown(self.subject)}"
            self._verdict = Verdict(allowed=True, reason=reason)
        return self._verdict


def read_binding(obj: Any, namespace: str, name: str) -> Binding:
    """A binding as JSON; what is not a subject is left out, and without a role it has no subjects."""
    fields = obj if isinstance(obj, dict) else {}
    ref, given = fields.get("roleRef"), fields.get("subjects")
    role = _texts(ref, "kind", "name")
    if role is None:
        return Binding(namespace, name, "", "", ())
    read = (_texts(subject, "kind", "name", "namespace") for subject in _listed(given))
    subjects = tuple(Subject(*texts) for texts in read if texts is not None)
    return Binding(namespace, name, role[0], role[1], subjects)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any, *fields: str) -> list[str] | None:
    """The texts of an object, empty where there is none; None where something else is there."""
    if not isinstance(value, dict):
        return None
    found = [value.get(field) or "" for field in fields]
    return found if all(isinstance(text, str) for text in found) else None


class _Subject(msgspec.Struct):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Ref(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Binding(msgspec.Struct):
    ref: _Ref = msgspec.field(name="roleRef")
    subjects: list[_Subject] | None = None


_decode_binding = msgspec.json.Decoder(_Binding).decode


def decode_binding(value: bytes, namespace: str, name: str) -> Binding:
    """A binding as it is stored: as ``read_binding``, which it is left to where something is malformed."""
    try:
        read = _decode_binding(value)
    # Typed decoding is several times faster; whatever it refuses is read leniently.
    except (msgspec.MsgspecError, RecursionError) as fault:
        report("RoleBinding" if namespace else "ClusterRoleBinding", namespace, name, str(fault))
        return read_binding(decoded(value), namespace, name)
    subjects = tuple(Subject(each.kind, each.name, each.namespace) for each in read.subjects or ())
    return Binding(namespace, name, read.ref.kind, read.ref.name, subjects)


class LargeBinding:
    """A binding with many subjects: read when somebody asks whom it names, which takes long, so not on the loop."""

    __slots__ = ("_holders", "_key", "_read", "_value")

    def __init__(self, value: bytes, namespace: str, name: str) -> None:
        self._value = value
        self._key = (namespace, name)
        self._read: Binding | None = None
        self._holders: dict[Holder, int] | None = None

    @property
    def is_read(self) -> bool:
        """Whether ``grant`` takes no time."""
        return self._holders is not None

    def read(self) -> Binding:
        """The binding."""
        if self._read is None:
            self._read = decode_binding(self._value, *self._key)
        return self._read

    def grant(self, holders: Iterable[Holder]) -> Grant | None:
        """What it gives to a user who is all of these, through the first subject that applies."""
        if self._holders is None:
            # The first subject that applies is the one named in the reason, so later ones do not replace it.
            found: dict[Holder, int] = {}
            for position, subject in enumerate(self.read().subjects):
                holder = subject.holder(self._key[0])
                if holder is not None:
                    found.setdefault(holder, position)
            self._holders = found
        known = self._holders
        # The lowest position of all that apply, for the same reason.
        position = min((known[holder] for holder in holders if holder in known), default=-1)
        return None if position < 0 else Grant(self.read(), position)


def no_role(binding: Binding) -> str:
    """What is wrong with a binding whose role does not exist."""
    return f"{binding.role_kind.lower()}.{GROUP} {go_quote(binding.role_name)} not found"
