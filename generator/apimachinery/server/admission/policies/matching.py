"""Whether an operation is one that a policy, a binding or a webhook is about: rules, scope, names, selectors.

Rules (admissionregistration.k8s.io/v1): a request matches if one of ``resourceRules`` (``rules`` of a webhook) does,
none of ``excludeResourceRules`` does, and both selectors select. A namespace selector is asked about the labels of the
object's namespace, or of the object itself for a Namespace; other cluster-scoped objects always pass it. An object
selector passes if the new or the old object passes. With ``matchPolicy: Equivalent`` a rule for another version of the
same stored resource matches too, and the object is then shown at that version.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from apimachinery.kinds.hooks import Json
from apimachinery.meta.selectors import LabelSelector, selector_of
from apimachinery.server.admission.interface import Operation
from apimachinery.server.admission.namespaces import NAMESPACES
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

Item = TypeVar("Item")
_POLICY_GROUP = "admissionregistration.k8s.io"
_POLICY_RESOURCES = frozenset(
    {
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    }
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The resource of a request, as rules name it."""

    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str

    @classmethod
    def of(cls, operation: Operation) -> Asked:
        """What an operation is about."""
        target = operation.target
        served = target.served
        return cls(
            served.group, served.version, served.plural, target.subresource, target.namespace, operation.name
        )


class MatchRules:
    """``resourceRules``: which operations on which resources."""

    def __init__(self, rules: Iterable[Mapping[str, Any]]) -> None:
        self._rules = tuple(rules)

    def match(self, verb: str, asked: Asked) -> bool:
        """Whether one of the rules is about it."""
        return any(
            _names_object(rule, asked.name) and _rule_matches(rule, verb, asked) for rule in self._rules
        )

    def match_some_name(self, verb: str, asked: Asked) -> bool:
        """Whether one of the rules is about an object of the resource, whatever its name."""
        return any(_rule_matches(rule, verb, asked) for rule in self._rules)


def _names_object(rule: Mapping[str, Any], name: str) -> bool:
    names = rule.get("resourceNames")
    return not names or name in names


def _rule_matches(rule: Mapping[str, Any], verb: str, asked: Asked) -> bool:
    return (
        _has(rule.get("operations"), verb)
        and _has(rule.get("apiGroups"), asked.group)
        and _has(rule.get("apiVersions"), asked.version)
        and any(_resource_matches(text, asked) for text in rule.get("resources") or ())
        and _scope_matches(rule.get("scope") or "*", asked)
    )


def _has(words: Any, word: str) -> bool:
    # An empty list matches nothing.
    return bool(words) and ("*" in words or word in words)


def _resource_matches(text: str, asked: Asked) -> bool:
    resource, _, subresource = text.partition("/")
    return resource in ("*", asked.resource) and (
        # "*" alone names resources, not their subresources.
        subresource == asked.subresource or (subresource == "*" and "/" in text)
    )


def _scope_matches(scope: str, asked: Asked) -> bool:
    if scope == "*":
        return True
    # A Namespace counts as cluster-scoped although requests for one carry its name as their namespace.
    namespaced = bool(asked.namespace) and asked.resource != "namespaces"
    return namespaced == (scope == "Namespaced")


def is_exempt(operation: Operation) -> bool:
    """Policies and webhooks never see their own configuration: a wrong one could not be taken away."""
    served = operation.target.served
    return served.group == _POLICY_GROUP and served.plural in _POLICY_RESOURCES


class MatchConstraints:
    """``matchConstraints`` of a policy, ``matchResources`` of a binding: compiled once."""

    def __init__(self, stated: Mapping[str, Any]) -> None:
        self.rules = MatchRules(stated.get("resourceRules") or ())
        self.has_rules = bool(stated.get("resourceRules"))
        self._excluded = MatchRules(stated.get("excludeResourceRules") or ())
        self._equivalent = stated.get("matchPolicy") != "Exact"
        self._namespaces = _selector(stated.get("namespaceSelector"))
        self._objects = _selector(stated.get("objectSelector"))

    def match(
        self,
        operation: Operation,
        labels_of_namespace: Callable[[Operation], Mapping[str, str] | None],
        versions: Iterable[Served],
    ) -> Served | None:
        """The resource at the version that a rule is about; None where the operation is not matched.

        ``versions`` are the other versions of the resource that the server knows.
        """
        asked = Asked.of(operation)
        if self._excluded.match(operation.verb, asked):
            return None
        served = operation.target.served
        # Without rules everything is matched: bindings need not repeat those of their policy.
        if self.has_rules and not self.rules.match(operation.verb, asked):
            other = self._other_version(operation.verb, asked, versions) if self._equivalent else None
            if other is None:
                return None
            served = other
        if self._namespaces is not None:
            labels = labels_of_namespace(operation)
            if labels is not None and not self._namespaces.matches(labels):
                return None
        # Old or new: a policy must see an object that is about to lose its label.
        if self._objects is not None and not any(
            self._objects.matches(_labels(obj)) for obj in (operation.obj, operation.old) if obj is not None
        ):
            return None
        return served

    def may_match(self, operation: Operation, versions: Iterable[Served]) -> bool:
        """Whether an operation on some object of the resource may be matched; asked once for a resource and verb, so
        that each request meets only the rules that may be about it."""
        if not self.has_rules:
            return True
        verb, asked = operation.verb, Asked.of(operation)
        if self.rules.match_some_name(verb, asked):
            return True
        return self._equivalent and any(
            self.rules.match_some_name(verb, _at_version(asked, served)) for served in versions
        )

    def _other_version(self, verb: str, asked: Asked, versions: Iterable[Served]) -> Served | None:
        for served in versions:
            other = _at_version(asked, served)
            # Exclusions hold at every version.
            if other != asked and self.rules.match(verb, other) and not self._excluded.match(verb, other):
                return served
        return None


class Candidates(Generic[Item]):
    """Of each resource, verb and subresource that was asked for, what may be about it of all that is in force: a
    request meets no other, however many there are."""

    def __init__(self, catalog: Catalog, constraints_of: Callable[[Item], MatchConstraints]) -> None:
        self._catalog = catalog
        self._constraints_of = constraints_of
        self._in_force: list[Item] = []
        self._found: dict[Hashable, list[Item]] = {}
        self._found_of = catalog.generation

    def replace(self, in_force: list[Item]) -> None:
        """Says what is in force from now on, in order."""
        self._in_force = in_force
        self._found.clear()

    def of(self, operation: Operation) -> list[Item]:
        """What may be about an operation, in order."""
        # New kinds and versions may fall under the rules.
        if self._found_of != self._catalog.generation:
            self._found.clear()
            self._found_of = self._catalog.generation
        target = operation.target
        asked = (operation.verb, target.served.number, target.subresource, bool(target.namespace))
        found = self._found.get(asked)
        if found is None:
            versions = [*self.versions(operation)]
            found = self._found[asked] = [
                each for each in self._in_force if self._constraints_of(each).may_match(operation, versions)
            ]
        return found

    def versions(self, operation: Operation) -> Iterator[Served]:
        """The resource of an operation at all its versions."""
        prefix = operation.target.served.prefix
        return (served for served in self._catalog if served.prefix == prefix)


def _at_version(asked: Asked, served: Served) -> Asked:
    return Asked(served.group, served.version, served.plural, asked.subresource, asked.namespace, asked.name)


def _selector(stated: Any) -> LabelSelector | None:
    selector = selector_of(stated) if isinstance(stated, Mapping) else None
    return selector if selector is not None and selector.requirements else None


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return labels


class NamespaceLabels:
    """The labels that namespace selectors are asked about."""

    def __init__(self, cache: WatchCache) -> None:
        self._namespaces = cache.resource(NAMESPACES)

    def of(self, operation: Operation) -> Mapping[str, str] | None:
        """None for cluster-scoped objects, which pass every namespace selector."""
        target = operation.target
        if target.served.prefix == NAMESPACES:
            obj = operation.obj if operation.obj is not None else operation.old
            return _labels(obj or {})
        if not target.served.namespaced:
            return None
        namespace = self.object(target.namespace)
        # A namespace that is gone counts as one without labels.
        return _labels(namespace) if namespace is not None else {}

    def object(self, name: str) -> Json | None:
        """The Namespace itself; None where there is none."""
        record = self._namespaces.get(NAMESPACES + name)
        if record is None:
            return None
        obj: Json = decode(record.value)
        return obj
