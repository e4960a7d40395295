"""Where each class is used. What all of its uses say alike is said once, at the type: there alone can be markers of
what is an item of a list or a value of a map."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kubewright.emit.code.class_plans import Layout
from kubewright.emit.code.type_expr import ListOfExpr, MapOfExpr, NamedExpr, OrNull, TypeExpr
from kubewright.ir.merge import MapType
from kubewright.ir.types import NO_CONSTRAINTS, Constraints, ListOf, MapOf, Value


@dataclass(slots=True)
class ClassUses:
    """The uses of one class: as a field, and as an item of a list or a value of a map."""

    fields: list[Value] = field(default_factory=list)
    items: list[Value] = field(default_factory=list)

    @property
    def constraints(self) -> Constraints:
        """Those that every use has."""
        every = [*self.fields, *self.items]
        same = every and all(value.constraints == every[0].constraints for value in every)
        return every[0].constraints if same else NO_CONSTRAINTS

    @property
    def is_atomic(self) -> bool:
        """Whether every use replaces the object as a whole, and an item is among them."""
        return bool(self.items) and all(
            v.merge.map_type is MapType.ATOMIC for v in (*self.fields, *self.items)
        )

    @property
    def doc(self) -> str:
        """The description of items, most of them: fields have their own."""
        return _most_common(self.items)

    @property
    def field_doc(self) -> str:
        """The description of fields, most of them."""
        return _most_common(self.fields)

    @property
    def are_described(self) -> bool:
        """Whether each use has a description of its own."""
        return not self.items and all(value.doc for value in self.fields)


def _most_common(values: list[Value]) -> str:
    docs = Counter(value.doc for value in values)
    return docs.most_common(1)[0][0] if docs else ""


def uses_of(layout: Layout) -> dict[tuple[str, str], ClassUses]:
    """The uses of each class, by its module and name."""
    found: dict[tuple[str, str], ClassUses] = {}
    for plan in layout.modules:
        for entry in plan.classes:
            for each in entry.fields:
                _collect(plan.name, each.type, each.value, found, is_item=False)
        for item in plan.items:
            _collect(plan.name, item.type, item.value, found, is_item=True)
    return found


def _collect(
    home: str, expr: TypeExpr, value: Value, found: dict[tuple[str, str], ClassUses], *, is_item: bool
) -> None:
    if isinstance(expr, OrNull):
        _collect(home, expr.inner, value, found, is_item=is_item)
    elif isinstance(expr, ListOfExpr) and isinstance(value.type, ListOf):
        _collect(home, expr.items, value.type.items, found, is_item=True)
    elif isinstance(expr, MapOfExpr) and isinstance(value.type, MapOf):
        _collect(home, expr.values, value.type.values, found, is_item=True)
    elif isinstance(expr, NamedExpr):
        uses = found.setdefault((expr.module or home, expr.name), ClassUses())
        (uses.items if is_item else uses.fields).append(value)
