"""The type checker: names are resolved, overloads chosen, every node gets its type.

The algorithm is cel-go's: types of arguments are unified with each overload's parameters; several fitting
overloads make the result dyn unless they agree; type variables left open at the end become dyn. Its messages
and the order in which it finds things are part of what users see, so both are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from apimachinery.cel.libraries.declarations import Function
from apimachinery.cel.syntax.ast import (
    CallNode,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from apimachinery.cel.values import types as t
from apimachinery.cel.values.types import Substitution, Type
from apimachinery.cel.values.values import Duration, Timestamp, Uint


class TypeProvider(Protocol):
    """What knows the fields of object types."""

    def field_type(self, type_name: str, field: str) -> Type | None:
        """The type of a field, or None if there is no such field."""
        ...

    def find_type(self, type_name: str) -> Type | None:
        """The object type of that name, or None."""
        ...


class NoTypes:
    """A provider that knows no object type."""

    def field_type(self, type_name: str, field: str) -> Type | None:
        """None."""
        return None

    def find_type(self, type_name: str) -> Type | None:
        """None."""
        return None


_LITERALS = {
    type(None): t.NULL,
    bool: t.BOOL,
    int: t.INT,
    Uint: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    Timestamp: t.TIMESTAMP,
    Duration: t.DURATION,
}


def qualified_name(node: Node) -> str | None:
    """``a.b.c`` of a chain of selects on an identifier, else None."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.ident)
    return ".".join(reversed(parts))


def candidates(container: str, name: str) -> Iterable[str]:
    """The names that ``name`` may stand for in ``container``, the innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    while container:
        yield f"{container}.{name}"
        container = container.rpartition(".")[0]
    yield name


class Checker:
    """Checks one tree; ``faults`` are (offset, message) in the order found."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        functions: Mapping[str, Function],
        provider: TypeProvider,
        container: str = "",
        mixed_literals: bool = False,
    ):
        self.variables = variables
        self.functions = functions
        self.provider = provider
        self.container = container
        self.mixed_literals = mixed_literals
        self.faults: list[tuple[int, str]] = []
        self.mapping: Substitution = {}
        self.scopes: list[dict[str, Type]] = []
        self.fresh = 0
        self.nodes: list[Node] = []

    def check(self, node: Node) -> Type:
        """Check the whole tree and return its type."""
        self.visit(node)
        for seen in self.nodes:
            if seen.type is not None and (seen.type.params or seen.type.kind == "param"):
                seen.type = t.substitute(self.mapping, seen.type, params_to_dyn=True)
        assert node.type is not None
        return node.type

    # Tools

    def fault(self, node: Node, message: str) -> None:
        self.faults.append((node.offset, message))

    def set(self, node: Node, of: Type) -> Type:
        node.type = of
        self.nodes.append(node)
        return of

    def variable(self) -> Type:
        self.fresh += 1
        return t.param(f"_var{self.fresh}")

    def agree(self, a: Type, b: Type) -> bool:
        mapping = dict(self.mapping)
        if t.assignable(mapping, a, b):
            self.mapping = mapping
            return True
        return False

    def local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    def lookup_ident(self, name: str) -> tuple[str, Type] | None:
        for candidate in candidates(self.container, name):
            found = self.variables.get(candidate)
            if found is not None:
                return candidate, found
            found = self.provider.find_type(candidate)
            if found is not None:
                return candidate, t.type_of(found)
        return None

    def lookup_function(self, name: str) -> Function | None:
        for candidate in candidates(self.container, name):
            found = self.functions.get(candidate)
            if found is not None:
                return found
        return None

    # Nodes

    def visit(self, node: Node) -> Type:
        if node.type is not None:
            return node.type  # macros may put one node in two places
        if isinstance(node, CallNode):
            return self.call(node)
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Ident):
            return self.ident(node)
        if isinstance(node, Literal):
            return self.set(node, _LITERALS.get(type(node.value), t.DYN))
        if isinstance(node, Comprehension):
            return self.comprehension(node)
        if isinstance(node, ListExpr):
            return self.list_literal(node)
        if isinstance(node, MapExpr):
            return self.map_literal(node)
        assert isinstance(node, StructExpr)
        return self.message(node)

    def ident(self, node: Ident) -> Type:
        local = self.local(node.ident)
        if local is not None:
            node.name = None
            return self.set(node, local)
        found = self.lookup_ident(node.ident)
        if found is None:
            name = node.ident.removeprefix(".")
            self.fault(node, f"undeclared reference to '{name}' (in container '{self.container}')")
            return self.set(node, t.ERROR)
        node.name = found[0]
        return self.set(node, found[1])

    def qualified(self, node: Node) -> str | None:
        """The qualified name of ``node`` if its head is not a local variable."""
        name = qualified_name(node)
        if name is None or self.local(name.partition(".")[0]) is not None:
            return None
        return name

    def select(self, node: Select) -> Type:
        if not node.test_only:
            name = self.qualified(node)
            found = self.lookup_ident(name) if name is not None else None
            if found is not None:
                node.name = found[0]
                return self.set(node, found[1])
        result = self.field(node, node.operand, node.field, False)
        return self.set(node, t.BOOL if node.test_only else t.substitute(self.mapping, result))

    def field(self, node: Node, operand: Node, field: str, optional: bool) -> Type:
        target = t.substitute(self.mapping, self.visit(operand))
        was_optional = t.is_optional(target)
        if was_optional:
            target = t.substitute(self.mapping, target.params[0])
        result = t.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "object":
            found = self.provider.field_type(target.name, field)
            if found is None:
                self.fault(node, f"undefined field '{field}'")
            else:
                result = found
        elif target.kind == "param":
            self.agree(t.DYN, target)
            result = t.DYN
        else:
            if not t.is_dyn(target):
                self.fault(node, f"type '{target}' does not support field selection")
            result = t.DYN
        return t.optional_of(result) if was_optional or optional else result

    def call(self, node: CallNode) -> Type:
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Literal)
            self.set(name, t.STRING)
            result = self.field(node, node.args[0], name.value, True)
            node.overloads = ("select_optional_field",)
            return self.set(node, t.substitute(self.mapping, result))
        for arg in node.args:
            self.visit(arg)
        function: Function | None
        if node.target is None:
            function = self.lookup_function(node.function)
        else:
            prefix = self.qualified(node.target)
            function = self.lookup_function(f"{prefix}.{node.function}") if prefix is not None else None
            if function is not None:
                node.target = None
                node.function = function.name
            else:
                self.visit(node.target)
                function = self.lookup_function(node.function)
        if function is None:
            name_text = node.function.removeprefix(".")
            self.fault(node, f"undeclared reference to '{name_text}' (in container '{self.container}')")
            return self.set(node, t.ERROR)
        node.function = function.name
        return self.set(node, self.resolve(node, function))

    def resolve(self, node: CallNode, function: Function) -> Type:
        args = ([node.target] if node.target is not None else []) + node.args
        given = [arg.type for arg in args]
        member = node.target is not None
        result: Type | None = None
        fitting: list[str] = []
        for overload in function.overloads:
            if overload.member != member or len(overload.params) != len(given):
                continue
            names: dict[str, Type] = {}

            def fresh(name: str, names: dict[str, Type] = names) -> Type:
                if name not in names:
                    names[name] = self.variable()
                return names[name]

            mapping = dict(self.mapping)
            wanted = [t.rename_params(p, fresh) for p in overload.params]
            if all(t.assignable(mapping, g or t.ERROR, w) for g, w in zip(given, wanted, strict=True)):
                self.mapping = mapping
                fitting.append(overload.id)
                this = t.substitute(mapping, t.rename_params(overload.result, fresh))
                if result is None:
                    result = this
                elif not t.is_dyn(result) and this != result:
                    result = t.DYN
        node.overloads = tuple(fitting)
        if result is not None:
            return result
        shown = [str(t.substitute(self.mapping, g or t.ERROR, params_to_dyn=True)) for g in given]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
        self.fault(node, f"found no matching overload for '{function.name}' applied to '{signature}'")
        return t.ERROR

    def join(self, node: Node, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.agree(previous, current):
            return t.most_general(previous, current)
        if self.mixed_literals:
            return t.DYN
        a, b = (t.substitute(self.mapping, x) for x in (previous, current))
        self.fault(node, f"expected type '{a}' but found '{b}'")
        return t.ERROR

    def unwrapped(self, node: Node) -> Type:
        """The type below the optional that a ``?`` element must be."""
        of = t.substitute(self.mapping, self.visit(node))
        if t.is_optional(of):
            return of.params[0]
        if not t.is_dyn(of):
            self.fault(node, f"expected type '{t.optional_of(of)}' but found '{of}'")
        return of

    def list_literal(self, node: ListExpr) -> Type:
        joined: Type | None = None
        for place, element in enumerate(node.elements):
            of = self.unwrapped(element) if place in node.optional else self.visit(element)
            joined = self.join(element, joined, of)
        return self.set(node, t.list_of(joined if joined is not None else self.variable()))

    def map_literal(self, node: MapExpr) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self.join(key, keys, self.visit(key))
            of = self.unwrapped(value) if optional else self.visit(value)
            values = self.join(value, values, of)
        if keys is None or values is None:
            keys, values = self.variable(), self.variable()
        return self.set(node, t.map_of(keys, values))

    def message(self, node: StructExpr) -> Type:
        found = None
        for candidate in candidates(self.container, node.message):
            found = self.provider.find_type(candidate)
            if found is not None:
                break
        if found is None:
            name = node.message.removeprefix(".")
            self.fault(node, f"undeclared reference to '{name}' (in container '{self.container}')")
            for _, value, _, _ in node.entries:
                self.visit(value)
            return self.set(node, t.ERROR)
        node.name = found.name
        for field, value, optional, offset in node.entries:
            of = self.unwrapped(value) if optional else self.visit(value)
            wanted = self.provider.field_type(found.name, field)
            if wanted is None:
                self.faults.append((offset, f"undefined field '{field}'"))
            elif not self.agree(wanted, of):
                text = f"expected type of field '{field}' is '{wanted}' but provided type is '{of}'"
                self.faults.append((offset, text))
        return self.set(node, found)

    def comprehension(self, node: Comprehension) -> Type:
        over = t.substitute(self.mapping, self.visit(node.range))
        accu = self.visit(node.init)
        self.scopes.append({node.accu: accu})
        first = second = t.DYN
        if over.kind == "list":
            first, second = (t.INT, over.params[0]) if node.var2 else (over.params[0], t.DYN)
        elif over.kind == "map":
            first, second = over.params
        elif t.is_dyn(over) or over.kind == "param":
            self.agree(t.DYN, over)
        else:
            text = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self.fault(node.range, text)
            first = second = t.ERROR
        self.scopes.append({node.var: first, **({node.var2: second} if node.var2 else {})})
        self.demand(node.condition, t.BOOL)
        self.demand(node.step, accu)
        self.scopes.pop()
        result = self.visit(node.result)
        self.scopes.pop()
        return self.set(node, t.substitute(self.mapping, result))

    def demand(self, node: Node, wanted: Type) -> None:
        of = self.visit(node)
        if not self.agree(wanted, of):
            a, b = (t.substitute(self.mapping, x) for x in (wanted, of))
            self.fault(node, f"expected type '{a}' but found '{b}'")
