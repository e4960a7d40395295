"""Plans of classes, aliases and enums: what they are called, what they have, and which module they go to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubewright.emit.code.type_expr import (
    TypeExpr,
)
from kubewright.emit.code.unions import Tag
from kubewright.ir.types import (
    ABSENT,
    Absent,
    Definition,
    Json,
    Value,
)
from kubewright.ir.versions import join_api_version


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """One attribute. ``type`` is that of a value that is present; ``required`` (it must be sent), ``listed`` (the spec
    lists it as required) and ``nullable`` are left to the language. ``value`` is the IR's, for emitters that need more,
    ``default`` the one that readers should know of. ``factory`` is the
    expression of a function that gives the value of a field that is always written.
    """

    attribute: str
    wire_name: str
    type: TypeExpr
    required: bool
    listed: bool
    nullable: bool
    value: Value
    default: Json | Absent = ABSENT
    factory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPlan:
    """One class. ``kind`` is its GVK where it is a Kind; ``path`` says which part of the definition it is;
    ``is_open`` whether objects may hold fields besides the declared ones; ``rest`` is the field for these, in APIs
    without kinds. With ``keeps_origin`` a Kind may hold, anywhere inside, more than its model shows: unknown fields
    that are kept, or times of more digits. As a member of a union that has a discriminator it has a ``tag``: the
    field and its values."""

    name: str
    definition: Definition
    path: str
    doc: str
    fields: tuple[FieldPlan, ...]
    rest: tuple[FieldPlan, ...] = ()
    kind: tuple[str, str, str] | None = None
    is_list: bool = False
    is_open: bool = False
    keeps_origin: bool = False
    tag: Tag | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasPlan:
    """A name for a definition that is not an object."""

    name: str
    definition: Definition
    type: TypeExpr


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumPlan:
    """An enum as a class of its own: the name of each member, with its value."""

    name: str
    members: tuple[tuple[str, Json], ...]

    @property
    def root(self) -> str:
        """The class that it is made of."""
        return "StrEnum" if isinstance(self.members[0][1], str) else "IntEnum"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPlan:
    """An item of a list, or a value of a map, that has no fields and is a type of its own; ``value`` has its prose and
    its bounds."""

    name: str
    type: TypeExpr
    value: Value


@dataclass(slots=True, kw_only=True)
class ModulePlan:
    """One group-version. ``imports`` are the sub-packages whose models it names; ``foreign`` those of other packages:
    the name used here → package, sub-package. ``shared`` are the classes, as (sub-package, name), that it has in common
    with another version of its group, where they are."""

    group: str
    version: str
    name: str
    classes: list[ClassPlan] = field(default_factory=list)
    aliases: list[AliasPlan] = field(default_factory=list)
    enums: list[EnumPlan] = field(default_factory=list)
    items: list[ItemPlan] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    foreign: dict[str, tuple[str, str]] = field(default_factory=dict)
    shared: set[tuple[str, str]] = field(default_factory=set)

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone for the core group; empty where a document knows neither."""
        return join_api_version(self.group, self.version)

    @property
    def title(self) -> str:
        """What the module is called in its docstring."""
        return self.api_version or "this API"


@dataclass(slots=True)
class Layout:
    """The whole package. ``place`` gives module and class (or alias) name of each definition."""

    modules: list[ModulePlan]
    place: dict[str, tuple[str, str]]
