"""Audit policies: what is kept of which request (``audit.k8s.io/v1`` Policy).

Rules are tried in order; the first that matches says the level, and no rule means None. A rule matches where each of
its lists that is not empty has something of the request: its users, its groups, its verbs, its resources (in its
namespaces), or its paths. A rule with paths never matches a resource, one with resources or namespaces never a path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import yaml

from apimachinery.access.authorization import Attributes
from apimachinery.http.messages import User

VERSIONS = ("audit.k8s.io/v1",)
STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


class AuditLevel(IntEnum):
    """How much is kept."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS = {
    "None": AuditLevel.NONE,
    "Metadata": AuditLevel.METADATA,
    "Request": AuditLevel.REQUEST,
    "RequestResponse": AuditLevel.REQUEST_RESPONSE,
}
NAMES = {level: name for name, level in LEVELS.items()}


class PolicyError(ValueError):
    """A policy that cannot be used; the text names file, line and field of each fault."""


@dataclass(frozen=True, slots=True)
class AuditResources:
    """Resources of one group: ``pods``, ``pods/log``, ``pods/*``, ``*/scale``, ``*``; of all where there are none."""

    group: str
    resources: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()

    def match(self, attributes: Attributes) -> bool:
        """Whether a request for a resource is for one of these."""
        if self.group != attributes.group:
            return False
        if not self.resources:
            return True
        combined = attributes.resource
        if attributes.subresource:
            combined = f"{attributes.resource}/{attributes.subresource}"
        if self.names and attributes.name not in self.names:
            return False
        for resource in self.resources:
            if resource in ("*", combined):
                return True
            kind, _, subresource = resource.partition("/")
            if subresource and (
                (kind == "*" and subresource == attributes.subresource)
                or (subresource == "*" and kind == attributes.resource)
            ):
                return True
        return False


@dataclass(frozen=True, slots=True)
class AuditRule:
    """One rule. What is empty matches everything of its sort."""

    level: AuditLevel
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    resources: tuple[AuditResources, ...] = ()
    namespaces: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    omitted_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False

    def match(self, user: User, attributes: Attributes) -> bool:
        """Whether the rule is about a request of ``user``."""
        if self.users and user.name not in self.users:
            return False
        if self.groups and self.groups.isdisjoint(user.groups):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return attributes.is_resource and self._matches_resource(attributes)
        if self.paths:
            return not attributes.is_resource and any(_path_matches(p, attributes.path) for p in self.paths)
        return True

    def _matches_resource(self, attributes: Attributes) -> bool:
        if self.namespaces and attributes.namespace not in self.namespaces:
            return False
        return not self.resources or any(entry.match(attributes) for entry in self.resources)


def _path_matches(pattern: str, path: str) -> bool:
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a request."""

    level: AuditLevel
    omitted_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


NOTHING = Kept(AuditLevel.NONE)


@dataclass(frozen=True, slots=True)
class AuditPolicy:
    """The rules of a file, in order. The file's ``omitStages`` and ``omitManagedFields`` are in each of them."""

    rules: tuple[AuditRule, ...]

    def kept(self, user: User, attributes: Attributes) -> Kept:
        """What is kept of a request that ``user`` makes."""
        for rule in self.rules:
            if rule.match(user, attributes):
                return Kept(rule.level, rule.omitted_stages, rule.omit_managed_fields)
        return NOTHING

    def exposures(self) -> Iterable[str]:
        """Rules that keep contents of Secrets or tokens, as texts for the operator."""
        for number, rule in enumerate(self.rules):
            if rule.level < AuditLevel.REQUEST or rule.paths:
                continue
            for group, resource, subresource in (
                ("", "secrets", ""),
                ("", "serviceaccounts", "token"),
                ("authentication.k8s.io", "tokenreviews", ""),
            ):
                attributes = Attributes(
                    User("somebody"), "create", "", group, "v1", resource, subresource, "any", ""
                )
                caught = [r for r in self.rules[: number + 1] if _about(r, attributes)]
                if caught and caught[0] is rule:
                    shown = f"{resource}/{subresource}" if subresource else resource
                    yield f"rules[{number}] keeps the content of {shown}"


def _about(rule: AuditRule, attributes: Attributes) -> bool:
    """Whether a rule is about a resource, whoever asks, wherever."""
    if rule.paths:
        return False
    return not rule.resources or any(
        AuditResources(entry.group, entry.resources).match(attributes) for entry in rule.resources
    )


# Reading.

_TOP = frozenset({"apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"})
_RULE = frozenset(
    ("level users userGroups verbs resources namespaces nonResourceURLs omitStages omitManagedFields").split()
)
_RESOURCES = frozenset({"group", "resources", "resourceNames"})


def read_policy(path: Path) -> AuditPolicy:
    """The policy of a file. Raises PolicyError with every fault, OSError."""
    text = path.read_text(encoding="utf-8")
    return parse_policy(text, str(path))


def parse_policy(text: str, name: str) -> AuditPolicy:
    """The policy of a text in YAML or JSON; ``name`` is that of its file. Raises PolicyError."""
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
        value = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        mark = getattr(fault, "problem_mark", None)
        place = f"{name}:{mark.line + 1}" if mark is not None else name
        raise PolicyError(f"{place}: not YAML: {getattr(fault, 'problem', None) or fault}") from None
    reader = _Reader(name, node)
    policy = reader.policy(value)
    if reader.faults:
        raise PolicyError("\n".join(reader.faults))
    return policy


class _Reader:
    """Reads a policy and collects its faults, each with file, line and field."""

    def __init__(self, name: str, node: Any) -> None:
        self._name, self._node = name, node
        self.faults: list[str] = []

    def policy(self, value: Any) -> AuditPolicy:
        if not isinstance(value, dict):
            self._fault((), "an audit policy is an object with apiVersion, kind and rules")
            return AuditPolicy(())
        if value.get("kind") != "Policy" or value.get("apiVersion") not in VERSIONS:
            self._fault(
                ("kind",),
                f"is {value.get('apiVersion')!r}, {value.get('kind')!r}; "
                "an audit policy is apiVersion: audit.k8s.io/v1, kind: Policy",
            )
        self._known((), value, _TOP)
        rules = self._list((), value, "rules")
        if not rules:
            self._fault(
                ("rules",), "there is no rule, so nothing would be kept; add one, for example level: Metadata"
            )
        stages = self._stages((), value)
        omit = self._flag((), value, "omitManagedFields") or False
        return AuditPolicy(
            tuple(self._rule(("rules", i), rule, stages, omit) for i, rule in enumerate(rules))
        )

    def _rule(self, at: tuple[Any, ...], rule: Any, stages: frozenset[str], omit: bool) -> AuditRule:
        if not isinstance(rule, dict):
            self._fault(at, "a rule is an object with a level")
            return AuditRule(AuditLevel.NONE)
        self._known(at, rule, _RULE)
        level = rule.get("level")
        if level not in LEVELS:
            self._fault((*at, "level"), f"{level!r} is no level; use {', '.join(LEVELS)}")
        own = self._flag(at, rule, "omitManagedFields")
        paths = self._texts(at, rule, "nonResourceURLs")
        for number, path in enumerate(paths):
            if path != "*" and (not path.startswith("/") or "*" in path[:-1]):
                self._fault(
                    (*at, "nonResourceURLs", number),
                    f"{path!r}: a path begins with a slash and may have * at its end only",
                )
        resources = self._list(at, rule, "resources")
        namespaces = frozenset(self._texts(at, rule, "namespaces"))
        if paths and (resources or namespaces):
            self._fault((*at, "nonResourceURLs"), "a rule is about paths or about resources, not both")
        return AuditRule(
            LEVELS.get(level, AuditLevel.NONE) if isinstance(level, str) else AuditLevel.NONE,
            frozenset(self._texts(at, rule, "users")),
            frozenset(self._texts(at, rule, "userGroups")),
            frozenset(self._texts(at, rule, "verbs")),
            tuple(self._resources((*at, "resources", i), entry) for i, entry in enumerate(resources)),
            namespaces,
            tuple(paths),
            stages | self._stages(at, rule),
            omit if own is None else own,
        )

    def _resources(self, at: tuple[Any, ...], entry: Any) -> AuditResources:
        if not isinstance(entry, dict):
            self._fault(at, "an entry of resources is an object with a group")
            return AuditResources("")
        self._known(at, entry, _RESOURCES)
        group = entry.get("group") or ""
        if not isinstance(group, str) or "/" in group:
            self._fault((*at, "group"), f"{group!r} is no group; leave out the version")
            group = ""
        resources = tuple(self._texts(at, entry, "resources"))
        names = frozenset(self._texts(at, entry, "resourceNames"))
        if names and not resources:
            self._fault((*at, "resourceNames"), "names are of resources: say which")
        return AuditResources(group, resources, names)

    def _stages(self, at: tuple[Any, ...], value: dict[str, Any]) -> frozenset[str]:
        stages = self._texts(at, value, "omitStages")
        for number, stage in enumerate(stages):
            if stage not in STAGES:
                self._fault((*at, "omitStages", number), f"{stage!r} is no stage; use {', '.join(STAGES)}")
        return frozenset(stages)

    def _flag(self, at: tuple[Any, ...], value: dict[str, Any], key: str) -> bool | None:
        flag = value.get(key)
        if flag is not None and not isinstance(flag, bool):
            self._fault((*at, key), f"{flag!r} is neither true nor false")
            return None
        return flag

    def _list(self, at: tuple[Any, ...], value: dict[str, Any], key: str) -> list[Any]:
        items = value.get(key)
        if items is None:
            return []
        if not isinstance(items, list):
            self._fault((*at, key), "is no list")
            return []
        return items

    def _texts(self, at: tuple[Any, ...], value: dict[str, Any], key: str) -> list[str]:
        texts: list[str] = []
        for number, item in enumerate(self._list(at, value, key)):
            if isinstance(item, str):
                texts.append(item)
            else:
                self._fault((*at, key, number), f"{item!r} is no text")
        return texts

    def _known(self, at: tuple[Any, ...], value: dict[str, Any], names: frozenset[str]) -> None:
        for key in value:
            if key not in names:
                self._fault((*at, key), f"no such field; there are {', '.join(sorted(names))}")

    def _fault(self, at: tuple[Any, ...], text: str) -> None:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).lstrip(".")
        self.faults.append(f"{self._name}:{self._line(at)}: {path + ': ' if path else ''}{text}")

    def _line(self, at: tuple[Any, ...]) -> int:
        """The line of a field; of what is around it where it is not there."""
        node, line = self._node, 1
        for part in at:
            line = node.start_mark.line + 1 if node is not None else line
            below = None
            if isinstance(node, yaml.MappingNode):
                below = next((pair for pair in node.value if pair[0].value == part), None)
                if below is not None:
                    line, node = below[0].start_mark.line + 1, below[1]
                    continue
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                below = node = node.value[part]
                line = node.start_mark.line + 1
                continue
            return line
        return line
