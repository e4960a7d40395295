"""CEL rules of one place, held against each other by what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kubewright.ir.merge import ListType
from kubewright.ir.types import Absent, EmbeddedObject, Rule, Struct, Value
from kubewright.tools.diff.meaning import TRUE, Term, assuming, is_implied, meaning

Change: TypeAlias = tuple[str, str, str]
"""Code, path below the place, message."""

_DISTINCT: Final = (
    "self.all(x, self.exists_one(y, x == y))",
    "self.all(x, size(self.filter(y, x == y)) == 1)",
    "size(self.filter(x, size(self.filter(y, x == y)) > 1)) == 0",
    "!self.exists(x, size(self.filter(y, x == y)) > 1)",
)
"""That no two items of a list are equal, as people write it."""
_OLD: Final = re.compile(r"oldSelf(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


def rules(old: Value, new: Value, follow: Callable[[Value], Value]) -> Iterator[Change]:
    """What changed from the rules of ``old`` to those of ``new``. ``follow`` resolves references of the old state."""
    before = {meaning(r.rule): r for r in old.constraints.rules}
    after = {meaning(r.rule): r for r in new.constraints.rules}
    gone = {term: rule for term, rule in before.items() if term not in after}
    held = _DISTINCT if old.merge.list_type is ListType.SET else ()
    for term, rule in after.items():
        if term not in before and meaning(rule.rule) in map(meaning, held):
            yield "D267", "", f"rule added: {rule.rule} (a list of type set refused that too)"
        elif term not in before:
            yield from _added(rule, term, before, gone, _OldObjects(old, follow))
        elif replace(rule, rule=before[term].rule) != before[term]:
            is_other = rule.optional_old_self != before[term].optional_old_self
            said = "rule is asked at other times" if is_other else "rule answers otherwise"
            yield ("D224" if is_other else "D258"), "", f"{said}: {rule.rule}"
    for rule in gone.values():
        thawed = _frozen(rule.rule)
        if thawed is not None:
            yield "D231", thawed, "may be changed now"
        else:
            yield "D256", "", f"rule removed: {rule.rule}"


def _added(
    rule: Rule,
    term: Term,
    before: dict[Term, Rule],
    gone: dict[Term, Rule],
    objects: _OldObjects,
) -> Iterator[Change]:
    """``gone`` loses the rule that this one replaces."""
    frozen = _frozen(rule.rule)
    if frozen is not None:
        yield "D225", frozen, "cannot be changed any more once set"
        return
    twin = next((t for t, other in gone.items() if other.message and other.message == rule.message), None)
    replaced = gone.pop(twin) if twin is not None else None
    told = f"rule changed from {replaced.rule} to {rule.rule}" if replaced else f"rule added: {rule.rule}"
    same_times = [t for t, other in before.items() if other.optional_old_self == rule.optional_old_self]
    if is_implied(term, same_times):
        yield "D267", "", f"{told} (it refuses nothing that passed)"
    elif assuming(term, objects) == TRUE:
        yield "D267", "", f"{told} (it speaks of what only new fields and values can hold)"
    else:
        yield ("D224" if replaced else "D223"), "", told


@dataclass(frozen=True, slots=True)
class _OldObjects:
    """The objects of ``value``'s schema; ``follow`` resolves references of its state."""

    value: Value
    follow: Callable[[Value], Value]

    def is_there(self, path: tuple[str, ...]) -> bool | None:
        """Whether objects of the old state have the field at ``path``; ``None`` where some may."""
        found, always = self._field(path)
        return False if found is None and always else True if found is not None and always else None

    def never_is(self, path: tuple[str, ...], term: Term) -> bool:
        """Whether all of them have the field, and its enum lacks a constant."""
        found, always = self._field(path)
        if found is None or not always or term[0] != "constant":
            return False
        words = self.follow(found).constraints.enum or found.constraints.enum
        return bool(words) and term not in {meaning(json.dumps(word)) for word in words}

    def _field(self, path: tuple[str, ...]) -> tuple[Value | None, bool]:
        """The field, and whether all have it, or, if there is none, whether nobody does."""
        always, value = True, self.value
        for name in path:
            kind = self.follow(value).type
            body = kind.body if isinstance(kind, EmbeddedObject) else kind
            if not isinstance(body, Struct) or body.preserve_unknown or body.extra is not None:
                return None, False
            found = next((f for f in body.fields if f.wire_name == name), None)
            if found is None:
                return None, True
            always = always and found.required and not found.value.nullable
            always = always or (not isinstance(found.value.default, Absent) and len(path) == 1)
            value = found.value
        return value, always


def _frozen(rule: str) -> str | None:
    """Of a rule that forbids every change of a value: the path below ``self``; ``None`` of any other."""
    sides = rule.split("==")
    if len(sides) != 2:
        return None
    left, right = sorted(side.strip() for side in sides)
    is_frozen = _OLD.match(left) is not None and left.removeprefix("oldSelf") == right.removeprefix("self")
    return left.removeprefix("oldSelf") if is_frozen else None
