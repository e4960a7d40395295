"""What Python classes say of an API besides their types, for ``kubewright crd module:Class``.

``@kind`` makes a class the type of a kind; ``@rules`` gives a class rules in CEL. The other markers stand in
``Annotated[type, …]`` of a field. Bounds are those of ``msgspec.Meta``, ``annotated_types`` or pydantic's ``Field``
(``ge``, ``gt``, ``le``, ``lt``, ``multiple_of``, ``pattern``, ``min_length``, ``max_length``); a description is
``msgspec.Meta(description=…)``, or a line ``name: text`` below "Fields:" in the docstring of the class. What has no
word here goes into ``msgspec.Meta(extra_json_schema={…})``, in those of a CustomResourceDefinition.

    @kind(group="example.com", version="v1", columns=[Column("Size", ".spec.size", type="integer")])
    class Widget(msgspec.Struct):
        spec: WidgetSpec
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

C = TypeVar("C", bound=type)
KIND: Final = "__kubewright_kind__"
RULES: Final = "__kubewright_rules__"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``."""

    name: str
    json_path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The subresource ``scale``: where its numbers are."""

    spec_replicas_path: str = ".spec.replicas"
    status_replicas_path: str = ".status.replicas"
    label_selector_path: str = ""


@dataclass(frozen=True, slots=True)
class CelRule:
    """A rule in CEL (``x-kubernetes-validations``): of a field in ``Annotated``, of a class in ``@rules``."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True, slots=True)
class ListMerge:
    """How a list merges; the ``keys`` of a map list tell its items apart. A ``set`` of Python is a set without it."""

    type: Literal["atomic", "set", "map"]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MapMerge:
    """How an object or a map merges."""

    type: Literal["atomic", "granular"]


@dataclass(frozen=True, slots=True)
class FormatName:
    """The ``format`` of a text or a number, such as ``int32``."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Default:
    """What the server fills in, where that is not the default of the field in Python."""

    # Types are hashed with their markers, and a value may be a list: each is equal to itself alone.

    value: Any


@dataclass(frozen=True, slots=True)
class PreserveUnknown:
    """Fields that no class declares are kept."""


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """A whole object of Kubernetes: it has apiVersion, kind and metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindMarker:
    """What ``@kind`` says of a class. Empty names are made of the kind, as people mostly make them; ``status`` is there
    if the class has such a field, unless it says otherwise."""

    group: str
    version: str
    kind: str = ""
    plural: str = ""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"
    scale: ScalePaths | None = None
    columns: tuple[Column, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    served: bool = True
    storage: bool = True
    deprecated: bool = False
    deprecation_warning: str = ""
    status: bool | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    conversion: Mapping[str, Any] | None = None
    extra_json_schema: Mapping[str, Any] | None = None


def kind(
    *,
    group: str,
    version: str,
    kind: str = "",
    plural: str = "",
    singular: str = "",
    list_kind: str = "",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    scope: Literal["Namespaced", "Cluster"] = "Namespaced",
    scale: ScalePaths | None = None,
    columns: Sequence[Column] = (),
    selectable_fields: Sequence[str] = (),
    served: bool = True,
    storage: bool = True,
    deprecated: bool = False,
    deprecation_warning: str = "",
    status: bool | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conversion: Mapping[str, Any] | None = None,
    extra_json_schema: Mapping[str, Any] | None = None,
) -> Callable[[C], C]:
    """Makes a class the type of a kind, called as the class unless ``kind`` says otherwise.

    ``labels``, ``annotations`` and ``conversion`` are those of the definition. ``extra_json_schema`` is added to the
    schema of the whole object, its ``properties`` to those of ``apiVersion``, ``kind`` and ``metadata``.
    """

    def mark(cls: C) -> C:
        said = KindMarker(
            group=group,
            version=version,
            kind=kind,
            plural=plural,
            singular=singular,
            list_kind=list_kind,
            short_names=tuple(short_names),
            categories=tuple(categories),
            scope=scope,
            scale=scale,
            columns=tuple(columns),
            selectable_fields=tuple(selectable_fields),
            served=served,
            storage=storage,
            deprecated=deprecated,
            deprecation_warning=deprecation_warning,
            status=status,
            labels=labels,
            annotations=annotations,
            conversion=conversion,
            extra_json_schema=extra_json_schema,
        )
        setattr(cls, KIND, said)
        return cls

    return mark


def rules(*given: CelRule) -> Callable[[C], C]:
    """Gives a class rules in CEL; ``self`` is an object of it."""

    def mark(cls: C) -> C:
        setattr(cls, RULES, given)
        return cls

    return mark
