"""Which class is in which module, in which order, and of which types its fields are.

One module per group-version. Objects that a schema declares inline are hoisted to classes of their own whose
name says where they belong: an item of ``spec.rules`` of HTTPRoute is an ``HTTPRouteSpecRule``; a name that would
be longer than ``MAX_NAME`` says less of the way. Types of installed packages (``Api.external``) are imported. A field
with a default may be left out, but its default never becomes a Python value: only the server knows the current one.
Enums of Kubernetes' own definitions stay open, those of other specs are ``Literal``.
Order is that of a newspaper: each kind, its spec, its status, their parts as they are met, what no kind reaches,
lists, then names for types that are not objects. Other modules are imported whole under their own name
(``core_v1.PodSpec``), so that no two classes of one name ever meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kubewright.emit.code import names
from kubewright.emit.code.class_order import (
    aliases_in_order,
    head_first,
    is_class,
    is_list,
    is_open,
    kind_of,
    newspaper_order,
    reached_through_aliases,
)
from kubewright.emit.code.class_plans import (
    AliasPlan,
    ClassPlan,
    EnumPlan,
    FieldPlan,
    ItemPlan,
    Layout,
    ModulePlan,
)
from kubewright.emit.code.names import PYTHON, Naming
from kubewright.emit.code.presence import PRESERVE, Presence
from kubewright.emit.code.type_expr import (
    ANY,
    BytesExpr,
    ForeignExpr,
    ListOfExpr,
    Literals,
    MapOfExpr,
    NamedExpr,
    OneOf,
    PlainExpr,
    TypeExpr,
    or_null,
)
from kubewright.emit.code.unions import Unions
from kubewright.ir.api import Api, External
from kubewright.ir.check import resolve
from kubewright.ir.packages import is_built_in
from kubewright.ir.types import (
    NO_CONSTRAINTS,
    Definition,
    EmbeddedObject,
    Field,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    Primitive,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.ir.words import singular
from kubewright.location import NOWHERE

MAX_NAME = 72
REST, REST_ATTRIBUTE = "additionalProperties", "additional_properties"
"""What the field of undeclared fields is called; a class that declares one of these has none."""
_NOBODY = Definition(name="", group="", version="", value=Value(type=RawJson(), location=NOWHERE))


def lay_out(api: Api, *, enums: bool = False, naming: Naming = PYTHON) -> Layout:
    """The layout of ``api``, its enums as classes where that is wanted. Equal inputs give equal layouts."""
    return _Planner(api, enums=enums, naming=naming).plan()


class Outside:
    """Types for code outside the modules of models. ``module`` collects what it has to import."""

    def __init__(self, api: Api) -> None:
        self._planner = _Planner(api)

    def type_of(self, value: Value, module: ModulePlan) -> TypeExpr:
        """The type of a value that holds no inline class."""
        return self._planner.value_type(module, value)

    def items_of(self, value: Value, name: str, module: ModulePlan) -> TypeExpr | None:
        """The type of the items of a list, or of the list that is the field ``name`` of an object; ``None`` where they
        are objects that are written out there: those have no name outside."""
        table = self._planner.table
        owner = value
        while isinstance(owner.type, Ref) and owner.type.name in table:
            owner = table[owner.type.name].value
        if name:
            fields = owner.type.fields if isinstance(owner.type, Struct) else ()
            owner = next((field.value for field in fields if field.wire_name == name), value)
            while isinstance(owner.type, Ref) and owner.type.name in table:
                owner = table[owner.type.name].value
        if not isinstance(owner.type, ListOf) or is_class(owner.type.items.type):
            return None
        return self.type_of(owner.type.items, module)


def definition_class_names(api: Api, naming: Naming = PYTHON) -> dict[str, str]:
    """Definition name → class name; unique within a group-version.

    The last component of the definition's name; where two of one group-version share it, the later in order
    gets what tells it apart put before (``PkgApisFooBar``), or a number where nothing does.
    """
    chosen: dict[str, str] = {}
    used: dict[tuple[str, str], set[str]] = {}
    for definition in api.definitions:
        taken = used.setdefault((definition.group, definition.version), set())
        parts = definition.name.split(".")
        name = plain = names.class_name(parts[-1], naming.reserved)
        for start in range(len(parts) - 2, -1, -1):
            if name not in taken:
                break
            name = names.class_name(".".join(parts[start:]), naming.reserved)
        count = 2
        while name in taken:
            name = numbered(plain, count)
            count += 1
        taken.add(name)
        chosen[definition.name] = name
    return chosen


class _Planner:
    def __init__(self, api: Api, *, enums: bool = False, naming: Naming = PYTHON) -> None:
        self.api = api
        self.naming = naming
        self.enums: dict[tuple[object, ...], EnumPlan] | None = {} if enums else None
        self.items: dict[tuple[object, ...], ItemPlan] = {}
        self.external = {external.definition: external for external in api.external}
        self.table = {definition.name: definition for definition in api.definitions} | {
            name: Definition(
                name=name, group="", version="", value=Value(type=external.type, location=NOWHERE)
            )
            for name, external in self.external.items()
        }
        self.crds = {(r.group, r.version) for r in api.resources if r.manifest is not None}
        self.class_names = definition_class_names(api, naming)
        pairs = {(d.group, d.version) for d in api.definitions} | {
            (r.group, r.version) for r in api.resources
        }
        self.module_names = names.module_names(pairs)
        self.modules = {
            pair: ModulePlan(group=pair[0], version=pair[1], name=self.module_names[pair])
            for pair in sorted(pairs)
        }
        self.used: dict[tuple[str, str], set[str]] = {pair: set() for pair in pairs}
        for definition in api.definitions:
            self.used[definition.group, definition.version].add(self.class_names[definition.name])
        self.presence = Presence(self.table, self.crds, interface=api.interface)
        operations = api.interface.operations if api.interface else ()
        self.unions = Unions(self.table, [value for each in operations for value in each.values()])
        # Decoders of kinds (``typed.scheme``) know no unions, and no kind has one.
        self.has_unions = not any(definition.kinds for definition in api.definitions)
        self.forms = api.interface.forms if api.interface else frozenset()
        aliases = {_foreign_name(external, self.module_names) for external in api.external}
        self.reserved = frozenset(self.module_names.values()) | aliases

    def plan(self) -> Layout:
        for pair, module in self.modules.items():
            own = [d for d in self.api.definitions if (d.group, d.version) == pair]
            self._plan_module(module, own)
        place = {
            d.name: (self.module_names[d.group, d.version], self.class_names[d.name])
            for d in self.api.definitions
        }
        return Layout(sorted(self.modules.values(), key=lambda m: m.name), place)

    def _plan_module(self, module: ModulePlan, definitions: list[Definition]) -> None:
        for definition in newspaper_order(definitions):
            if is_class(definition.value.type):
                module.classes.extend(self._plan_definition(module, definition))
        aliases = {
            d.name: AliasPlan(
                name=self.class_names[d.name],
                definition=d,
                type=self._alias_type(module, d),
            )
            for d in definitions
            if not is_class(d.value.type)
        }
        module.aliases.extend(aliases_in_order(aliases))

    def _plan_definition(self, module: ModulePlan, definition: Definition) -> Iterator[ClassPlan]:
        kind = kind_of(definition)
        pending: list[tuple[str, str, Value]] = [(self.class_names[definition.name], "", definition.value)]
        while pending:
            name, path, value = pending.pop(0)
            found: list[tuple[str, str, Value]] = []
            fields, rest = self._plan_fields(module, definition, name, path, value, found)
            yield ClassPlan(
                name=name,
                definition=definition,
                path=path,
                doc=value.doc,
                fields=fields,
                rest=rest,
                kind=None if path else kind,
                is_list=not path and is_list(definition),
                is_open=is_open(value.type),
                tag=None if path else self.unions.tags.get(definition.name),
                keeps_origin=bool(kind and not path and self.presence.keeps_origin(definition)),
            )
            pending = found + pending

    def _plan_fields(
        self,
        module: ModulePlan,
        definition: Definition,
        owner: str,
        path: str,
        value: Value,
        found: list[tuple[str, str, Value]],
    ) -> tuple[tuple[FieldPlan, ...], tuple[FieldPlan, ...]]:
        struct = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
        assert isinstance(struct, Struct)
        attributes = self.naming.members([member.wire_name for member in struct.fields], self.reserved)

        def type_of(inner: Value, word: str, place: str) -> TypeExpr:
            node = inner.type
            is_named = self.naming.item_types and _says_more(inner, place)
            if isinstance(node, Struct | EmbeddedObject | RawJson) and (is_class(node) or is_named):
                name = self._inline_name(module, definition, owner, word)
                found.append((name, place, _as_struct(inner)))
                return NamedExpr("", name, is_open=self.keeps_undeclared(node))
            expr = unnamed(inner, word, place)
            if is_named and not isinstance(expr, NamedExpr):
                return NamedExpr("", self._item(module, definition, owner, word, expr, inner))
            return expr

        def unnamed(inner: Value, word: str, place: str) -> TypeExpr:
            node = inner.type
            if isinstance(node, ListOf):
                items = opened(node.items) if (PRESERVE, True) in inner.extensions else node.items
                return ListOfExpr(maybe_null(items, singular(word), place + "[]"))
            if isinstance(node, MapOf):
                return MapOfExpr(maybe_null(node.values, singular(word), place + "{}"))
            if definition.name in self.forms and isinstance(node, Scalar) and node.format == "binary":
                return BytesExpr()
            if isinstance(node, Scalar) and (members := _members(inner, definition)):
                if self.enums is not None:
                    return NamedExpr("", self._enum(module, definition, owner, word, members))
                return Literals(members)
            if inner.alternatives and self.has_unions:
                return self._union(module, inner)
            return self.type_of(module, node)

        def maybe_null(inner: Value, word: str, place: str) -> TypeExpr:
            expr = type_of(inner, word, place)
            return or_null(expr) if self.is_nullable(inner) else expr

        plans = []
        for member in head_first(struct.fields, is_kind=not path and kind_of(definition) is not None):
            expr = type_of(member.value, member.wire_name, f"{path}.{member.wire_name}")
            plans.append(self._field(definition, member, attributes[member.wire_name], expr))
        if not self.keeps_undeclared(struct) or struct.extra is None:
            return tuple(plans), ()
        values = MapOfExpr(maybe_null(struct.extra, "value", f"{path}{{}}"))
        undeclared = Field(wire_name=REST, required=False, value=struct.extra)
        rest = replace(
            self._field(definition, undeclared, REST_ATTRIBUTE, values), factory="dict", nullable=False
        )
        return tuple(plans), (rest,)

    def _field(self, definition: Definition, member: Field, attribute: str, expr: TypeExpr) -> FieldPlan:
        return FieldPlan(
            attribute=attribute,
            wire_name=member.wire_name,
            type=expr,
            required=self.presence.must_be_sent(definition, member),
            listed=member.required,
            nullable=self.is_nullable(member.value),
            value=member.value,
            default=self.presence.known_default(definition, member),
        )

    def _inline_name(self, module: ModulePlan, definition: Definition, owner: str, word: str) -> str:
        """A free name for the class of the field ``word`` of the class ``owner``."""
        taken = self.used[module.group, module.version]
        suffix = _suffix(word)
        suggestion = owner.rstrip("_") + suffix
        if len(suggestion) > MAX_NAME:
            suggestion = self.class_names[definition.name].rstrip("_") + suffix
            if len(suggestion) > MAX_NAME or suggestion in taken:
                suggestion = suffix[:MAX_NAME]
        name, count = suggestion, 2
        while name in taken or name in self.naming.reserved:
            name = numbered(suggestion, count)
            count += 1
        taken.add(name)
        return name

    def _enum(
        self, module: ModulePlan, definition: Definition, owner: str, word: str, members: tuple[Json, ...]
    ) -> str:
        """The class of an enum; one for all fields of a module that have one name and the same members."""
        assert self.enums is not None
        key = (module.name, word, members)
        plan = self.enums.get(key)
        if plan is None:
            plan = self.enums[key] = EnumPlan(
                name=self._inline_name(module, definition, owner, word), members=_enum_members(members)
            )
            module.enums.append(plan)
        return plan.name

    def _item(
        self, module: ModulePlan, definition: Definition, owner: str, word: str, expr: TypeExpr, value: Value
    ) -> str:
        """The name of the type of an item; one for all scalars of a module that have one name and say the same."""
        if isinstance(value.type, Scalar):
            key = (module.name, word, expr, value.doc, repr(value.constraints))
            if (plan := self.items.get(key)) is not None:
                return plan.name
            name = self._inline_name(module, definition, owner, word)
            plan = self.items[key] = ItemPlan(name=name, type=expr, value=value)
        else:
            holder = "Items" if isinstance(value.type, ListOf) else "Values"
            name = self._inline_name(module, definition, owner, word + holder)
            plan = ItemPlan(name=name, type=expr, value=value)
        module.items.append(plan)
        return plan.name

    def type_of(self, module: ModulePlan, node: Type) -> TypeExpr:
        """A type that holds no inline class."""
        if isinstance(node, Ref):
            return self._reference(module, node)
        if isinstance(node, ListOf):
            return ListOfExpr(self.type_of(module, node.items.type))
        if isinstance(node, MapOf):
            return MapOfExpr(self.type_of(module, node.values.type))
        if isinstance(node, Struct | EmbeddedObject):
            return PlainExpr(RawJson(object_only=True))
        return PlainExpr(node)

    def is_nullable(self, value: Value) -> bool:
        """Whether a value may be null: by what is said at its place, at its definition or at an alternative."""
        return value.nullable or (self.has_unions and self.unions.is_nullable(value))

    def value_type(self, module: ModulePlan, value: Value) -> TypeExpr:
        """The type of a value that holds no inline class, or null."""
        expr = self._value_type(module, value)
        return or_null(expr) if self.is_nullable(value) else expr

    def _value_type(self, module: ModulePlan, value: Value) -> TypeExpr:
        node = value.type
        if isinstance(node, ListOf):
            return ListOfExpr(self.value_type(module, node.items))
        if isinstance(node, MapOf):
            return MapOfExpr(self.value_type(module, node.values))
        if isinstance(node, Scalar) and (members := _members(value, _NOBODY)):
            return Literals(members)
        return self._union(module, value) if value.alternatives else self.type_of(module, node)

    def _union(self, module: ModulePlan, value: Value) -> TypeExpr:
        """The type of a value that has alternatives: any value, where one of them says nothing."""
        if not self.has_unions or self.unions.is_open(value):
            return ANY
        members = tuple(dict.fromkeys(self._value_type(module, each) for each in value.alternatives))
        is_tried = self.unions.overlap(value) or any(isinstance(m, NamedExpr) and m.is_open for m in members)
        return OneOf(members, is_tried) if len(members) > 1 else members[0]

    def keeps_undeclared(self, node: Type) -> bool:
        """Whether a class has a field for what its schema allows beside the fields that it declares."""
        return (
            self.has_unions
            and isinstance(node, Struct)
            and bool(node.fields and node.extra is not None)
            and not {REST, REST_ATTRIBUTE} & {member.wire_name for member in node.fields}
        )

    def _reference(self, module: ModulePlan, node: Ref) -> TypeExpr:
        target = self.table.get(node.name)
        if target is None:
            return ANY
        meaning = resolve(node, self.table)
        if isinstance(meaning, IntOrString):
            return PlainExpr(meaning)
        if isinstance(meaning, RawJson) and (not self.has_unions or self.unions.is_open(target.value)):
            return PlainExpr(meaning)
        if (external := self.external.get(node.name)) is not None:
            alias = _foreign_name(external, self.module_names)
            module.foreign[alias] = (external.package, external.module)
            return ForeignExpr(alias, external.class_name, node.name)
        home, name = self.module_names[target.group, target.version], self.class_names[target.name]
        is_open = self.keeps_undeclared(meaning)
        if home == module.name:
            return NamedExpr("", name, target.name, is_open)
        module.imports.add(home)
        if target.group == module.group and not target.kinds:
            module.shared.add((home, name))
        return NamedExpr(home, name, target.name, is_open)

    def _alias_type(self, module: ModulePlan, definition: Definition) -> TypeExpr:
        if definition.name in reached_through_aliases(definition, self.table):
            return ANY
        if definition.value.alternatives:
            return self._union(module, definition.value)
        return self.type_of(module, definition.value.type)


def _foreign_name(external: External, own: Mapping[tuple[str, str], str]) -> str:
    """What a module of another package is called here: by its own name where this package has none of that name."""
    return f"kubernetes_{external.module}" if external.module in own.values() else external.module


def _members(value: Value, definition: Definition) -> tuple[Json, ...]:
    """The members of an enum that becomes a ``Literal``: all strings, or all whole numbers."""
    members = value.constraints.enum
    if value.nullable:
        members = tuple(member for member in members if member is not None)
    if is_built_in(definition.name) or not isinstance(value.type, Scalar):
        return ()
    wanted = {Primitive.STRING: str, Primitive.INTEGER: int}.get(value.type.primitive)
    return members if wanted and members and all(type(member) is wanted for member in members) else ()


def _says_more(value: Value, place: str) -> bool:
    """Whether an item, or a value of a map, says more than can be said of it at the field that holds it. Those of types
    that each language has functions for (times, quantities, any JSON) stay as they are."""
    node = value.type
    if isinstance(node, Scalar):
        is_fit = not (node.is_moment or node.format == "byte")
    else:
        is_fit = isinstance(node, ListOf | MapOf | Struct) or node == RawJson(object_only=True)
    in_map = place.endswith("{}")
    return (
        is_fit
        and place.endswith(("[]", "{}"))
        and bool(value.doc or (in_map and value.constraints != NO_CONSTRAINTS))
    )


def _as_struct(value: Value) -> Value:
    """An object of any fields as an object without declared ones that keeps others."""
    if isinstance(value.type, RawJson):
        return replace(value, type=Struct(fields=(), preserve_unknown=True))
    return value


def _enum_members(members: tuple[Json, ...]) -> tuple[tuple[str, Json], ...]:
    """Each member with its name: ``never-ever`` is ``NEVER_EVER``, ``4x`` ``VALUE_4X``, the empty string ``EMPTY``."""
    named = {str(member): member for member in members}
    found = {}
    for text, attribute in names.attribute_names(named).items():
        word = attribute.strip("_")
        if word.startswith("field") and not text.lower().startswith("field"):
            word = f"value{word.removeprefix('field')}" if text else "empty"
        found[word.replace("__", "_").upper()] = named[text]
    return tuple(sorted(found.items(), key=lambda each: members.index(each[1])))


def opened(items: Value) -> Value:
    """The items of a list that keeps unknown fields: theirs are kept."""
    if not isinstance(items.type, Struct):
        return items
    return replace(items, type=replace(items.type, preserve_unknown=True))


def numbered(name: str, count: int) -> str:
    """``name`` with a number behind it, no longer than names are."""
    return f"{name[: MAX_NAME - len(str(count))]}{count}"


def _suffix(wire_name: str) -> str:
    return names.class_name(wire_name).rstrip("_")
