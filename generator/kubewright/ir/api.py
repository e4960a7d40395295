"""The whole of what was read: definitions and resources, before and after linking.

A ``Source`` yields a ``Fragment``, which may refer to types it does not define; ``link`` joins fragments
like object files into one ``Api``. Tuples in an ``Api`` are sorted, so equal inputs give equal output.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kubewright.diagnostics import Diagnostics
from kubewright.ir.operations import Interface
from kubewright.ir.types import Definition, Json, Type
from kubewright.location import Document, Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PrinterColumn:
    """A column of the Table form. ``json_path`` is empty for built-in kinds, whose cells are computed;
    ``implied`` is the one that a CRD without columns gets."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = ""
    implied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    """A subresource of a resource: ``status``, ``scale``, ``eviction``, … ``group``, ``version`` and
    ``kind`` name the object it takes and gives. The three paths are those of a CRD's scale. ``introduced`` is the first
    release that has it, where its resource is older."""

    name: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""
    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str = ""
    introduced: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """An API group as discovery lists it: ``versions`` preferred first, groups by falling ``priority``, then
    by name. 1000 is the priority kube-apiserver gives to groups of CustomResourceDefinitions."""

    name: str
    versions: tuple[str, ...]
    priority: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of one version. ``definition`` names its object's ``Definition``; ``served`` says whether
    a server serves it without being told to, ``stored`` that objects are known to be stored in this version,
    perhaps from before. The last four but one are life-cycle facts of built-in kinds: releases such as ``1.36``, and
    the GVK to use instead. ``manifest`` is there only if the source is a CustomResourceDefinition: the labels,
    annotations and conversion that it has."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    definition: str
    location: Location
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    printer_columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    served: bool = True
    storage: bool = True
    stored: bool = False
    deprecated: bool = False
    deprecation_warning: str = ""
    introduced: str = ""
    deprecated_in: str = ""
    removed_in: str = ""
    replacement: str = ""
    manifest: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """What one source read: may refer to definitions of other fragments."""

    origin: str
    definitions: tuple[Definition, ...] = ()
    resources: tuple[Resource, ...] = ()
    groups: tuple[Group, ...] = ()
    interface: Interface | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A definition that another, installed package has: its ``type``, and where its class is."""

    definition: str
    package: str
    module: str
    class_name: str
    type: Type = field(compare=False, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything of a run, linked and checked: every ``Ref`` resolves, names are unique, order is fixed
    (definitions by group, version, name; resources by group, version, plural). ``facts`` are the declared
    rules no schema holds (defaults, conversions, …), one entry a file of the facts folder, by its stem. ``borrowed``
    names the definitions that no source brought: those of apimachinery that some referred to; ``folded`` those that
    stand for equal inline objects. ``external`` holds what references may name besides ``definitions``. ``interface``
    has the operations of ordinary documents."""

    name: str
    definitions: tuple[Definition, ...]
    resources: tuple[Resource, ...]
    groups: tuple[Group, ...] = ()
    facts: tuple[tuple[str, Json], ...] = ()
    borrowed: frozenset[str] = frozenset()
    folded: frozenset[str] = frozenset()
    external: tuple[External, ...] = ()
    interface: Interface | None = None

    @property
    def has_kinds(self) -> bool:
        """Whether there are kinds or resources: an ordinary document has neither."""
        ordinary = self.interface is not None and not self.resources
        return not ordinary or any(definition.kinds for definition in self.definitions)

    def fact(self, name: str) -> Json:
        """The declared facts of that name (a file of the facts folder, such as ``defaults``), or ``None``."""
        return dict(self.facts).get(name)


class Source(Protocol):
    """Reads one kind of spec. One file each, in ``source/``."""

    def read(self, document: Document, diagnostics: Diagnostics) -> Fragment:
        """Turns a parsed document into a fragment; every problem goes into ``diagnostics``."""


@dataclass(frozen=True, slots=True)
class File:
    """One file to write: ``path`` relative to the output folder, with forward slashes."""

    path: str
    content: str


class Emitter(Protocol):
    """Writes one kind of file. Pure: no disk, no reading of another emitter's output."""

    @property
    def name(self) -> str:
        """What ``--only`` calls it."""

    def emit(self, api: Api) -> Iterable[File]:
        """The files of ``api``, in any order; paths are unique over all emitters."""
