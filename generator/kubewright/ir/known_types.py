"""Which inline objects are copies of types that an installed package has: PodSpec, LabelSelector, Condition, ….

A CRD is made from Go types and carries whole copies of those of Kubernetes, of whatever release its author built
with. A shape is taken for a copy where every field of it is one of the known type, of the same form all the way down,
must be sent where the known type's must and only there (what has a default need not be), and may be null where that
may. Else users could leave out what the CRD requires, or would send zeros where it wants nothing. All fields are
there, or most of a large type: releases add some. Small shapes look alike, so their prose or the name of their field
must agree too.

Shapes say nothing of meaning: conditions of autoscalers and of daemon sets are alike. So what only a status holds, and
what is named after a kind outside the core group, is that kind's alone; ``Condition`` of meta/v1 is everybody's.
What one core kind alone holds (ports of Endpoints, taints of Nodes) is taken where it is large, or the field's name
begins as the type's does: ``port`` is anybody's. Where two types fit equally well there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from kubewright.ir.api import Api, External
from kubewright.ir.types import (
    ABSENT,
    Definition,
    Duration,
    EmbeddedObject,
    Field,
    IntOrString,
    ListOf,
    MapOf,
    MicroTime,
    Quantity,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Time,
    Type,
    Value,
)
from kubewright.ir.walk import referenced

_PACKAGES = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.",
    "io.k8s.api.core.v1.",
    "io.k8s.api.apps.v1.",
    "io.k8s.api.batch.v1.",
    "io.k8s.api.autoscaling.v2.",
)
_META, _CORE = _PACKAGES[:2]
_CONDITION = f"{_META}Condition"
_OBJECT_META = f"{_META}ObjectMeta"
_MIN_SHARE = 0.6
"""How much of a type's fields a copy has at least: those of releases of five years ago have more."""
_LARGE = 4
"""From so many fields on a shape is told by its fields alone."""


class KnownTypes:
    """The types of ``api``, the API of the package ``package``; ``places`` says where its definitions are emitted.

    With ``strictly``, which finds exact copies, others count too: they may require other fields, be null elsewhere, and
    be of what a status holds. The known type cannot be used in their place, but whoever copied it did not write it.
    """

    def __init__(
        self,
        api: Api,
        package: str,
        places: Mapping[str, tuple[str, str]],
        *,
        strictly: KnownTypes | None = None,
    ) -> None:
        self._given = (api, package, places)
        self._strictly = strictly
        self._loosely = strictly is not None
        self._table = {definition.name: definition for definition in api.definitions}
        self._package = package
        self._places = places
        self._by_field: dict[str, set[str]] = {}
        self._of_one_kind: set[str] = set()
        shared = {d.name for d in api.definitions if not d.kinds} if strictly else self._shared(api)
        for definition in api.definitions:
            node = definition.value.type
            if definition.name in shared and isinstance(node, Struct):
                for member in node.fields:
                    self._by_field.setdefault(member.wire_name, set()).add(definition.name)

    def loosely(self) -> KnownTypes:
        """The same types, of which more shapes are taken for copies."""
        return KnownTypes(*self._given, strictly=self)

    def _shared(self, api: Api) -> set[str]:
        """The definitions that are no kind's alone; notes those that one core kind holds alone."""
        kinds = [d for d in api.definitions if d.kinds and d.name.startswith(_PACKAGES)]
        holders = Counter(name for kind in kinds for name in self._reached(kind))
        self._of_one_kind = {name for name, count in holders.items() if count == 1 and name.startswith(_CORE)}
        own = [kind.name.rpartition(".")[2] for kind in kinds if not kind.name.startswith((_META, _CORE))]
        metas = {name for name in self._table if name.startswith(_META)}
        return {
            name
            for name in (holders.keys() | metas)
            if name.startswith(_PACKAGES)
            and not any(kind in name.rpartition(".")[2] for kind in own)
            and not self._table[name].kinds
            and (name == _CONDITION or not name.endswith("Condition"))
        }

    def _reached(self, kind: Definition) -> set[str]:
        """The definitions, kinds left out, that a kind holds anywhere but in its status."""
        reached: set[str] = set()
        pending = list(_held(kind, but="status"))
        while pending:
            name = pending.pop()
            if name in self._table and name not in reached and not self._table[name].kinds:
                reached.add(name)
                pending += referenced(self._table[name].value)
        return reached

    def external(self, name: str) -> External | None:
        """The definition called ``name``, where the package has it."""
        if name not in self._places:
            return None
        module, class_name = self._places[name]
        definition = self._table[name]
        return External(
            definition=name,
            package=self._package,
            module=module,
            class_name=class_name,
            type=definition.value.type,
        )

    def find(self, struct: Struct, word: str, value: Value) -> External | None:
        """The type that ``struct``, met under the field ``word``, is a copy of."""
        if self._strictly is not None and (exact := self._strictly.find(struct, word, value)) is not None:
            return exact
        if struct.preserve_unknown or struct.extra is not None:
            return None
        if word == "metadata" and not struct.fields:
            return self.external(_OBJECT_META)
        names = {member.wire_name for member in struct.fields}
        if len(names) < 2 or not names <= self._by_field.keys():
            return None
        candidates = set.intersection(*(self._by_field[name] for name in names))
        if _CONDITION in candidates and self._score(struct, names, _CONDITION, word) > 0:
            return self.external(_CONDITION)
        scores = {name: self._score(struct, names, name, word) for name in candidates}
        best = [name for name, score in scores.items() if score == max(scores.values()) > 0]
        return self.external(best[0]) if len(best) == 1 or (best and self._loosely) else None

    def _score(self, struct: Struct, names: set[str], name: str, word: str) -> float:
        """How well a shape fits a type; nothing where it does not."""
        target = self._table[name].value.type
        assert isinstance(target, Struct)
        share = len(names) / len(target.fields)
        whole = len(names) == len(target.fields)
        if share < (_MIN_SHARE if len(target.fields) >= 2 * _LARGE else 1):
            return 0
        if not self._fits_struct(struct, target, ()):
            return 0
        short = name.rpartition(".")[2]
        if name in self._of_one_kind and len(names) < 2 * _LARGE and not _begins_alike(word, short):
            return 0
        same_prose = _same_prose(struct, target)
        hinted = _sounds_like(word, short)
        if len(names) >= _LARGE and (whole or same_prose or hinted or len(names) >= 2 * _LARGE):
            return share + same_prose + hinted
        if whole and (same_prose or (hinted and not self._loosely)):
            return share + same_prose + hinted
        return 0

    def _fits_struct(self, struct: Struct, target: Struct, above: tuple[str, ...]) -> bool:
        if struct.preserve_unknown or struct.extra is not None:
            return False
        given = {member.wire_name: member for member in struct.fields}
        declared = {member.wire_name: member for member in target.fields}
        if not given.keys() <= declared.keys():
            return False
        for wire_name, wanted in declared.items():
            member = given.get(wire_name)
            if member is None:
                if wanted.required and not self._loosely:
                    return False
            elif not (self._loosely or _agree(member, wanted)) or not self._fits(
                member.value, wanted.value.type, wire_name, above
            ):
                return False
        return True

    def _fits(self, value: Value, target: Type, word: str, above: tuple[str, ...]) -> bool:
        node = value.type
        if isinstance(target, Ref):
            if (
                word == "metadata"
                and target.name == _OBJECT_META
                and isinstance(node, Struct)
                and not node.fields
            ):
                return not node.preserve_unknown
            if isinstance(node, Ref):
                return node.name == target.name
            definition: Definition | None = self._table.get(target.name)
            if definition is None or target.name in above:
                return False
            return self._fits(value, definition.value.type, word, (*above, target.name))
        if isinstance(target, Struct):
            return isinstance(node, Struct) and bool(node.fields) and self._fits_struct(node, target, above)
        if isinstance(target, ListOf):
            return isinstance(node, ListOf) and self._fits(node.items, target.items.type, word, above)
        if isinstance(target, MapOf):
            return isinstance(node, MapOf) and self._fits(node.values, target.values.type, word, above)
        if isinstance(target, Scalar):
            return isinstance(node, Scalar) and node.primitive is target.primitive
        if isinstance(target, Time | MicroTime):
            return isinstance(node, Scalar) and node.format == "date-time"
        if isinstance(target, IntOrString | Quantity):
            return isinstance(node, IntOrString | Quantity)
        if isinstance(target, Duration):
            return isinstance(node, Scalar | Duration)
        if isinstance(target, RawJson):
            return isinstance(node, RawJson | MapOf | EmbeddedObject) or (
                isinstance(node, Struct) and not node.fields
            )
        return False


def _held(kind: Definition, *, but: str) -> Iterator[str]:
    """The definitions that a kind refers to, not counting one of its fields."""
    node = kind.value.type
    assert isinstance(node, Struct)
    for member in node.fields:
        if member.wire_name != but:
            yield from referenced(member.value)


def _agree(member: Field, wanted: Field) -> bool:
    """Whether a field must be sent, and may be null, where that of the known type must and may."""
    given = member.value.default
    must_be_sent = member.required and (given is ABSENT or given is None)
    return must_be_sent == wanted.required and member.value.nullable == wanted.value.nullable


def _same_prose(struct: Struct, target: Struct) -> bool:
    """Whether fields are described in the same words, at least half of those described."""
    ours = {m.wire_name: m.value.doc for m in struct.fields if m.value.doc}
    if not ours:
        return False
    theirs = {m.wire_name: m.value.doc for m in target.fields}
    same = sum(_begin(doc) == _begin(theirs.get(name, "")) for name, doc in ours.items())
    return same * 2 >= len(ours)


def _begin(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())[:24]


def _begins_alike(word: str, short: str) -> bool:
    """Whether a field's name has the first word of a type's: ``externalEndpoints`` and EndpointAddress."""
    return re.findall("[A-Z][a-z]*", short)[0].lower() in word.lower()


def _sounds_like(word: str, short: str) -> bool:
    """Whether a field's name says the type: ``configMapKeyRef`` a ConfigMapKeySelector, ``labelSelector`` …"""
    plain = word.lower().removesuffix("ref").removesuffix("s")
    return len(plain) > 2 and (plain in short.lower() or short.lower() in word.lower())
