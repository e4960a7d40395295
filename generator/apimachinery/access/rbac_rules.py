"""RBAC's rules: what one allows, whether some cover another, and how a missing right is printed.

A rule allows what its verbs, API groups, resources and names all match; ``*`` matches everything, ``*/scale`` a
subresource of every resource, a path ending in ``*`` all that begin like it. An empty list of names matches every
name. Rules only ever add up.

``RuleTable`` is many rules made ready for questions: they go into one dict by verb, group and resource (and one by name
too), so a question is at most twelve look-ups in each (each of the three may be ``*``, the resource also ``*/SUB``),
however many rules there are. A table has a most number of entries; rules that would make more are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from apimachinery.access.authorization import Attributes
from apimachinery.access.malformed import decoded
from apimachinery.meta.printing import go_quote

Source = TypeVar("Source")
EXPANDED = 4096
"""A rule that would make more entries than this is looked at as it is: a role may list a thousand of each."""
ENTRIES = 100_000
"""What a table has at most, whatever its rules multiply to."""
LONG_WORDS = 10_000
"""From so many words on that are looked at one by one a question takes long."""
MANY_HELD = 50
"""From so many rules on a table of them answers faster what they cover."""
ATOMS = 20_000
"""The most atoms that a rule is taken apart into."""


class RbacRule(msgspec.Struct, frozen=True, gc=False):
    """One rule of a role."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = msgspec.field(default=(), name="apiGroups")
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = msgspec.field(default=(), name="resourceNames")
    paths: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def allows(self, attributes: Attributes) -> bool:
        """Whether this rule alone allows a request."""
        if "*" not in self.verbs and attributes.verb not in self.verbs:
            return False
        if not attributes.is_resource:
            return any(path_matches(path, attributes.path) for path in self.paths)
        if "*" not in self.groups and attributes.group not in self.groups:
            return False
        # Names count for create and deletecollection too, which have none: such rules never allow them.
        if self.names and attributes.name not in self.names:
            return False
        if "*" in self.resources:
            return True
        # Resource "pods" does not include "pods/log"; "*" does.
        if not attributes.subresource:
            return attributes.resource in self.resources
        return (
            f"{attributes.resource}/{attributes.subresource}" in self.resources
            or f"*/{attributes.subresource}" in self.resources
        )

    def shown(self) -> str:
        """On one line, as an escalation is reported."""
        parts = [
            (name, values)
            for name, values in (
                ("APIGroups", self.groups),
                ("Resources", self.resources),
                ("NonResourceURLs", self.paths),
                ("ResourceNames", self.names),
                ("Verbs", self.verbs),
            )
            if values
        ]
        texts = [f"{name}:[{' '.join(map(go_quote, values))}]" for name, values in parts]
        return "{" + ", ".join(texts) + "}"


FULL_AUTHORITY = (
    RbacRule(verbs=("*",), groups=("*",), resources=("*",)),
    RbacRule(verbs=("*",), paths=("*",)),
)


def path_matches(pattern: str, path: str) -> bool:
    """Whether a rule's URL matches a path."""
    # As Go's TrimRight: several stars count as one.
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def read_rules(value: Any) -> tuple[RbacRule, ...]:
    """The rules of a role as JSON; what is not a rule is left out."""
    rules = value if isinstance(value, list) else ()
    return tuple(_read(rule) for rule in rules if isinstance(rule, dict))


class _Role(msgspec.Struct):
    rules: tuple[RbacRule, ...] | None = ()


_decode_role = msgspec.json.Decoder(_Role).decode


def decode_rules(role: bytes, report: Callable[[str], None]) -> tuple[RbacRule, ...]:
    """The rules of a role as it is stored: as ``read_rules``, in a tenth of the time. ``report`` is told what is
    malformed."""
    try:
        return _decode_role(role).rules or ()
    except (msgspec.MsgspecError, RecursionError) as fault:
        report(str(fault))
        obj = decoded(role)
        return read_rules(obj.get("rules") if isinstance(obj, dict) else None)


def _read(rule: dict[str, Any]) -> RbacRule:
    return RbacRule(
        _texts(rule.get("verbs")),
        _texts(rule.get("apiGroups")),
        _texts(rule.get("resources")),
        _texts(rule.get("resourceNames")),
        _texts(rule.get("nonResourceURLs")),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


class RuleTable(Generic[Source]):
    """Rules of many sources, ready for questions. The answer is the source of a rule that allows, or None."""

    __slots__ = ("_named", "_paths", "_plain", "_rest", "entries", "words")

    def __init__(self, sources: Iterable[tuple[Source, Sequence[RbacRule]]]) -> None:
        self._plain: dict[tuple[str, str, str], Source] = {}
        self._named: dict[tuple[str, str, str, str], Source] = {}
        self._rest: list[tuple[Source, RbacRule]] = []
        self._paths: list[tuple[Source, RbacRule]] = []
        self.words = 0
        self.entries = 0
        for source, rules in sources:
            for rule in rules:
                self._add(source, rule)

    def _add(self, source: Source, rule: RbacRule) -> None:
        if rule.paths:
            self._paths.append((source, rule))
            self.words += len(rule.verbs) + len(rule.paths)
        size = entries_of(rule)
        if size > EXPANDED or self.entries + size > ENTRIES:
            self._rest.append((source, rule))
            self.words += len(rule.verbs) + len(rule.groups) + len(rule.resources) + len(rule.names)
            return
        self.entries += size
        for verb in rule.verbs:
            for group in rule.groups:
                for resource in rule.resources:
                    if not rule.names:
                        # setdefault: the first source that allows is the one named as the reason.
                        self._plain.setdefault((verb, group, resource), source)
                    for name in rule.names:
                        self._named.setdefault((verb, group, resource, name), source)

    @property
    def is_slow(self) -> bool:
        """Whether a question takes long."""
        return self.words > LONG_WORDS

    def find(self, attributes: Attributes) -> Source | None:
        """The source of a rule that allows a request."""
        if not attributes.is_resource:
            for source, rule in self._paths:
                if rule.allows(attributes):
                    return source
            return None
        get, verb, group, resource = self._plain.get, attributes.verb, attributes.group, attributes.resource
        resources: tuple[str, ...] = (resource, "*")
        if attributes.subresource:
            resources = (f"{resource}/{attributes.subresource}", "*", f"*/{attributes.subresource}")
        for asked in resources:
            found = (
                get((verb, group, asked))
                or get((verb, "*", asked))
                or get(("*", group, asked))
                or get(("*", "*", asked))
            )
            if found is not None:
                return found
        if self._named and (found := self._by_name(verb, group, resources, attributes.name)) is not None:
            return found
        for source, rule in self._rest:
            if rule.allows(attributes):
                return source
        return None

    def _by_name(self, verb: str, group: str, resources: tuple[str, ...], name: str) -> Source | None:
        get = self._named.get
        for asked in resources:
            for at in ((verb, group), (verb, "*"), ("*", group), ("*", "*")):
                if (found := get((*at, asked, name))) is not None:
                    return found
        return None

    def covers(self, atom: RbacRule) -> bool:
        """Whether one of the rules alone covers an atom (see ``uncovered``)."""
        verb = atom.verbs[0]
        if atom.paths:
            return any(_covers(rule, atom) for _, rule in self._paths)
        group, resource = atom.groups[0], atom.resources[0]
        _, found, subresource = resource.partition("/")
        resources = (resource, "*", f"*/{subresource}") if found else (resource, "*")
        for asked in resources:
            for at in ((verb, group), (verb, "*"), ("*", group), ("*", "*")):
                if (*at, asked) in self._plain:
                    return True
        if atom.names and self._by_name(verb, group, resources, atom.names[0]) is not None:
            return True
        return any(_covers(rule, atom) for _, rule in self._rest)


def entries_of(rule: RbacRule) -> int:
    """How many entries a rule makes in a table."""
    return len(rule.verbs) * len(rule.groups) * len(rule.resources) * max(len(rule.names), 1)


# Escalation: whether the rules that somebody holds cover those he wants to give.


def uncovered(held: Sequence[RbacRule], wanted: Iterable[RbacRule]) -> list[RbacRule]:
    """The atoms of ``wanted`` (one verb on one resource or path) that no rule of ``held`` covers alone.

    A rule of more than ``ATOMS`` atoms is not taken apart, a body of 3 MiB can spell 10^17 of them: it counts as
    covered where one rule of ``held`` covers all of it, else as missing as it is.
    """
    missing: list[RbacRule] = []
    # Making a table pays off only if there is much to compare.
    table = RuleTable([(True, held)]) if len(held) > MANY_HELD else None
    for rule in wanted:
        if _size(rule) > ATOMS:
            missing += () if any(_covers_whole(own, rule) for own in held) else (rule,)
        elif table is not None:
            missing += (atom for atom in _atoms(rule) if not table.covers(atom))
        else:
            missing += (atom for atom in _atoms(rule) if not any(_covers(own, atom) for own in held))
    return missing


def _size(rule: RbacRule) -> int:
    each = len(rule.groups) * len(rule.resources) * max(len(rule.names), 1) + len(rule.paths)
    return each * len(rule.verbs)


def _covers_whole(own: RbacRule, rule: RbacRule) -> bool:
    return (
        _contains(own.verbs, rule.verbs)
        and _contains(own.groups, rule.groups)
        and _contains(own.resources, rule.resources)
        and (not own.names or (bool(rule.names) and set(rule.names) <= set(own.names)))
        and ("*" in own.paths or set(rule.paths) <= set(own.paths))
    )


def _contains(own: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return "*" in own or set(wanted) <= set(own)


def _atoms(rule: RbacRule) -> Iterator[RbacRule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                if rule.names:
                    for name in rule.names:
                        yield RbacRule((verb,), (group,), (resource,), (name,))
                else:
                    yield RbacRule((verb,), (group,), (resource,))
    for path in rule.paths:
        for verb in rule.verbs:
            yield RbacRule((verb,), paths=(path,))


def _covers(own: RbacRule, atom: RbacRule) -> bool:
    if "*" not in own.verbs and atom.verbs[0] not in own.verbs:
        return False
    if atom.paths:
        return any(_path_covers(path, atom.paths[0]) for path in own.paths)
    if "*" not in own.groups and atom.groups[0] not in own.groups:
        return False
    if own.names and (not atom.names or atom.names[0] not in own.names):
        return False
    resource = atom.resources[0]
    if "*" in own.resources or resource in own.resources:
        return True
    _, found, subresource = resource.partition("/")
    return bool(found) and f"*/{subresource}" in own.resources


def _path_covers(own: str, path: str) -> bool:
    return own == path or (own.endswith("*") and path.startswith(own.rstrip("*")))


def compacted(atoms: Iterable[RbacRule]) -> list[RbacRule]:
    """Atoms on the same resource, or the same named object, as one rule with all their verbs."""
    verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    others = []
    for atom in atoms:
        if atom.paths or len(atom.groups) != 1 or len(atom.resources) != 1 or len(atom.names) > 1:
            others.append(atom)
        else:
            verbs.setdefault((atom.groups[0], atom.resources[0], atom.names), []).append(atom.verbs[0])
    return [
        *others,
        *(
            RbacRule(tuple(held), (group,), (resource,), names)
            for (group, resource, names), held in verbs.items()
        ),
    ]
