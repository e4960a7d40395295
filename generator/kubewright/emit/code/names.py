"""Names of types and modules in generated code of every language, and every other name of Python's; decided once.

Attributes are snake case. Acronyms stay together: ``podIP`` is ``pod_ip``, ``clusterIPs`` is ``cluster_ips``,
``HTTPRoute`` is ``http_route``. A name Python reserves, or that would hide a name used in annotations inside the
class body, gets a trailing underscore. msgspec's own camel-case rename recovers most wire names; where it does
not (``camel(attribute) != wire name``) the emitter writes the wire name out.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api
from kubewright.ir.types import EmbeddedObject, Struct
from kubewright.ir.walk import values

_WORD_ENDS = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])"  # pod|IP
    r"|(?<=[A-Z])(?=[A-Z][a-z])"  # HTTP|Route
    r"|(?<=[A-Z])(?=V[0-9])"  # API|V3
)
_PLURAL_ACRONYM = re.compile(r"([A-Z]{2,})s(?=[A-Z]|$)")
_NOT_NAME = re.compile(r"[^A-Za-z0-9_]+")

RESERVED_ATTRIBUTES = frozenset(keyword.kwlist) | {
    # used in annotations and defaults inside class bodies
    "bool",
    "bytes",
    "dict",
    "field",
    "float",
    "int",
    "list",
    "str",
    "datetime",
    "property",
    # what instances already have
    "mro",
    "self",
}
RESERVED_CLASSES = frozenset(keyword.kwlist) | {
    "Any",
    "BaseModel",
    "ClassVar",
    "ConfigDict",
    "Field",
    "Literal",
    "NotRequired",
    "Object",
    "Part",
    "TypeAlias",
    "TypedDict",
    "UNSET",
    "UnsetType",
    "Untagged",
    "Open",
    "OpenPart",
    "datetime",
    "field",
    *(name for name in dir(__import__("builtins")) if name[0].isupper()),
}


@cache
def attribute_name(wire_name: str) -> str:
    """The Python attribute of a JSON key, by itself; ``attribute_names`` settles clashes."""
    plain = _PLURAL_ACRONYM.sub(lambda m: m.group(1).capitalize() + "s", wire_name)
    words = _WORD_ENDS.sub("_", plain)
    name = _NOT_NAME.sub("_", words).strip("_").lower()
    name = re.sub(r"__+", "_", name)
    if not name or not name[0].isalpha():
        name = f"field_{name}" if name else "field_"
    return name + "_" if name in RESERVED_ATTRIBUTES else name


def attribute_names(wire_names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Wire name → attribute, unique within one class and apart from ``taken``.

    Where two keys give the same name, those that come later in order of their wire names get ``_2``, ``_3``, ….
    """
    used = set(taken)
    names = {}
    for wire_name in sorted(wire_names):
        name = plain = attribute_name(wire_name)
        count = 2
        while name in used:
            name = f"{plain}_{count}"
            count += 1
        used.add(name)
        names[wire_name] = name
    return names


@cache
def camel(attribute: str) -> str:
    """What msgspec's ``rename="camel"`` makes of an attribute."""
    head, *rest = attribute.strip("_").split("_")
    return head + "".join(part.title() for part in rest)


def class_name(text: str, reserved: Collection[str] = RESERVED_CLASSES) -> str:
    """``text`` (a kind, a definition's last component, a property name) as the name of a class."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", ascii_text) if part]
    name = "".join(part[0].upper() + part[1:] for part in parts)
    if not name or not name[0].isalpha():
        name = f"Type{name}"
    return name + "_" if name in reserved else name


@dataclass(frozen=True, slots=True)
class Naming:
    """What a language says about names: ``reserved`` are those that no type may have; ``members`` gives the name of
    each member of one type by its wire name, apart from those of the modules. With ``item_types``, items of lists and
    values of maps that say more than which scalar they are have types of their own."""

    reserved: frozenset[str]
    members: Callable[[Iterable[str], Collection[str]], dict[str, str]]
    item_types: bool = False


def _attributes(wire_names: Iterable[str], modules: Collection[str]) -> dict[str, str]:
    return {
        wire_name: f"{name}_" if name in modules else name
        for wire_name, name in attribute_names(wire_names).items()
    }


PYTHON = Naming(RESERVED_CLASSES, _attributes)


def module_names(group_versions: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """(group, version) → the sub-package it is emitted in: ``core_v1``, ``apps_v1``, ``rbac_v1``.

    The first label of the group stands for it. Where two groups share one, Kubernetes' own (``*.k8s.io`` or
    without a dot) keeps it and the others are written in full. ``meta.k8s.io`` always has its label: every kind refers
    to it, some emitters see its types folded into those of ``kubernetes_api``, and names must not depend on that.
    """
    pairs = sorted(set(group_versions))
    labels: dict[str, list[str]] = {}
    for group in sorted({_META, *(group for group, _ in pairs)}):
        labels.setdefault(_label(group), []).append(group)
    names = {}
    for group, version in pairs:
        rivals = labels[_label(group)]
        own = [rival for rival in rivals if "." not in rival or rival.endswith(".k8s.io")]
        short = len(rivals) == 1 or own[:1] == [group]
        stem = _label(group) if short else _module_word(group)
        if not group and not version:
            stem = "models"  # of a document that knows no groups
        names[group, version] = f"{stem}_{_module_word(version)}" if version else stem
    return names


_META = "meta.k8s.io"


def _label(group: str) -> str:
    return _module_word(group.partition(".")[0]) if group else "core"


def _module_word(text: str) -> str:
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return word if word and not word[0].isdigit() else f"g{word}"


SortKey = tuple[int, list[tuple[bool, int | str]], str]


def import_order(name: str) -> SortKey:
    """The key that sorts imported names as isort and ruff do: constants, classes, the rest; numbers by value."""
    return _sort_key(name, name.lower())


def export_order(name: str) -> SortKey:
    """The key that sorts ``__all__``: as imports, but capitals come before small letters."""
    return _sort_key(name, name)


def _sort_key(name: str, text: str) -> SortKey:
    rank = 0 if len(name) > 1 and name.isupper() else 1 if name[:1].isupper() else 2
    parts = [part for part in re.split(r"(\d+)", text) if part]
    return rank, [(not part.isdigit(), int(part) if part.isdigit() else part) for part in parts], name


def find_clashes(wire_names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of wire names that would have had the same attribute."""
    first: dict[str, str] = {}
    clashes = []
    for wire_name in sorted(wire_names):
        plain = attribute_name(wire_name)
        if plain in first:
            clashes.append((first[plain], wire_name))
        first.setdefault(plain, wire_name)
    return clashes


_UNSUPPORTED = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')


def check_names(api: Api, diagnostics: Diagnostics, models: str) -> None:
    """Warns of names that meet when turned into Python, for the emitters then number them. Refuses those of fields that
    msgspec takes for no name of a field."""
    for definition in api.definitions:
        for value in values(definition.value):
            body = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
            if not isinstance(body, Struct):
                continue
            for member in body.fields if models == "msgspec" else ():
                if match := _UNSUPPORTED.search(member.wire_name):
                    diagnostics.error(
                        "K302",
                        f"the field {member.wire_name!r} has {match.group()!r} in its name",
                        member.value.location,
                        "rename it, or generate models of another kind (--models)",
                    )
            chosen = attribute_names(member.wire_name for member in body.fields)
            for first, second in find_clashes(chosen):
                place = next(m.value.location for m in body.fields if m.wire_name == second)
                name = attribute_name(second)
                diagnostics.warning(
                    "K301",
                    f"fields {first!r} and {second!r} both become the attribute {name!r}",
                    place,
                    f"{second!r} becomes {chosen[second]!r}; rename one of the two",
                )
