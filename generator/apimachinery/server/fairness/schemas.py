"""FlowSchemas, read once: which requests they match, and what tells their flows apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from apimachinery.access.authorization import Attributes, service_account_name
from apimachinery.http.messages import User

Json = dict[str, Any]
Matches = Callable[[User], bool]


@dataclass(frozen=True, slots=True)
class FlowResourceRule:
    """Requests for resources."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    namespaces: frozenset[str]
    cluster: bool

    def match(self, attributes: Attributes) -> bool:
        """Whether a request for a resource is one of these."""
        if not (
            ("*" in self.verbs or attributes.verb in self.verbs)
            and ("*" in self.groups or attributes.group in self.groups)
        ):
            return False
        if "*" not in self.resources:
            named = attributes.resource
            if attributes.subresource:
                named = f"{attributes.resource}/{attributes.subresource}"
            if named not in self.resources:
                return False
        if not attributes.namespace:
            return self.cluster
        return "*" in self.namespaces or attributes.namespace in self.namespaces


@dataclass(frozen=True, slots=True)
class FlowPathRule:
    """Requests for paths."""

    verbs: frozenset[str]
    paths: tuple[str, ...]

    def match(self, attributes: Attributes) -> bool:
        """Whether a request for a path is one of these."""
        if not ("*" in self.verbs or attributes.verb in self.verbs):
            return False
        return any(
            path in ("*", attributes.path)
            or (path.endswith("/*") and attributes.path.startswith(path.rstrip("*")))
            for path in self.paths
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    subjects: tuple[Matches, ...]
    resources: tuple[FlowResourceRule, ...]
    paths: tuple[FlowPathRule, ...]

    def match(self, user: User, attributes: Attributes) -> bool:
        if not any(subject(user) for subject in self.subjects):
            return False
        if attributes.is_resource:
            return any(rule.match(attributes) for rule in self.resources)
        return any(rule.match(attributes) for rule in self.paths)


@dataclass(frozen=True, slots=True)
class Schema:
    """One FlowSchema. ``distinguisher`` is ``ByUser``, ``ByNamespace`` or empty."""

    name: str
    uid: str
    level: str
    precedence: int
    distinguisher: str
    rules: tuple[_Rule, ...]

    def match(self, user: User, attributes: Attributes) -> bool:
        """Whether a request is of this schema."""
        return any(rule.match(user, attributes) for rule in self.rules)

    def flow(self, user: User, attributes: Attributes) -> str:
        """What tells the request's flow from others of the schema."""
        if self.distinguisher == "ByUser":
            return user.name
        return attributes.namespace if self.distinguisher == "ByNamespace" else ""


class _Metadata(msgspec.Struct):
    name: str


class _Named(msgspec.Struct):
    metadata: _Metadata


_named = msgspec.json.Decoder(_Named).decode


def read_name(value: bytes) -> str:
    """The name of a stored FlowSchema."""
    return _named(value).metadata.name


def read_schema(obj: Json) -> Schema:
    """The FlowSchema of an object as it is stored: checked when it was written, if perhaps by another release."""
    spec, metadata = obj.get("spec") or {}, obj["metadata"]
    return Schema(
        metadata["name"],
        metadata.get("uid") or "",
        (spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        int(spec.get("matchingPrecedence") or 1000),
        (spec.get("distinguisherMethod") or {}).get("type") or "",
        tuple(map(_read_rule, spec.get("rules") or ())),
    )


def _read_rule(rule: Json) -> _Rule:
    return _Rule(
        tuple(map(_read_subject, rule.get("subjects") or ())),
        tuple(
            FlowResourceRule(
                _texts(entry.get("verbs")),
                _texts(entry.get("apiGroups")),
                _texts(entry.get("resources")),
                _texts(entry.get("namespaces")),
                bool(entry.get("clusterScope")),
            )
            for entry in rule.get("resourceRules") or ()
        ),
        tuple(
            FlowPathRule(_texts(entry.get("verbs")), tuple(entry.get("nonResourceURLs") or ()))
            for entry in rule.get("nonResourceRules") or ()
        ),
    )


def _texts(values: Iterable[str] | None) -> frozenset[str]:
    return frozenset(values or ())


def _read_subject(subject: Json) -> Matches:
    match subject.get("kind"):
        case "User":
            name = (subject.get("user") or {}).get("name") or ""
            return lambda user: name in ("*", user.name)
        case "Group":
            name = (subject.get("group") or {}).get("name") or ""
            return lambda user: name == "*" or name in user.groups
        case "ServiceAccount":
            account = subject.get("serviceAccount") or {}
            namespace, name = account.get("namespace") or "", account.get("name") or ""

            def is_account(user: User) -> bool:
                found = service_account_name(user.name)
                return found is not None and found[0] == namespace and name in ("*", found[1])

            return is_account
    return lambda user: False
