"""The CEL expressions that select devices.

Variables (KEP-4381): ``device`` with ``driver``, ``attributes`` and ``capacity`` by domain and name, and
``allowMultipleAllocations``. An attribute is of any type, so an expression may end in one. How much there can be of
each is what the API allows a device to have; from that comes the estimate of what an expression costs.
"""

from __future__ import annotations

from functools import cache

from apimachinery.cel.cost.estimate import estimate_cost
from apimachinery.cel.environment import Environment
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError, CompileError
from apimachinery.cel.values.ranges import Range
from apimachinery.cel.values.types import Type
from apimachinery.kinds.checks import Errors
from apimachinery.meta.field_errors import forbidden, invalid_value
from apimachinery.meta.release import RELEASE, current_release

MOST_COST = 1_000_000
_DEVICE = t.object_type("DRADevice")
_ANY = Type("dyn", "any")
_QUANTITY = t.object_type("kubernetes.Quantity")
_FIELDS = {
    "driver": t.STRING,
    "attributes": t.map_of(t.STRING, t.map_of(t.STRING, _ANY)),
    "capacity": t.map_of(t.STRING, t.map_of(t.STRING, _QUANTITY)),
    "allowMultipleAllocations": t.BOOL,
}
_MOST_ATTRIBUTES = 32
_LONGEST_DOMAIN = 63
_LONGEST_NAME = 32
_LONGEST_TEXT = 64


class _Devices:
    """The one type that an expression about devices knows."""

    def find_type(self, type_name: str) -> Type | None:
        return _DEVICE if type_name == _DEVICE.name else None

    def field_type(self, type_name: str, field: str) -> Type | None:
        return _FIELDS.get(field) if type_name == _DEVICE.name else None


@cache
def environment(release: str = RELEASE) -> Environment:
    """Where selectors are compiled."""
    return Environment.kubernetes(release).extend(variables={"device": _DEVICE}, provider=_Devices())


def device_expression(source: str, path: str) -> Errors:
    """An expression compiles, gives true or false as far as one can tell, and does not cost too much."""
    env = environment(current_release())
    try:
        node = env.check(source)
        result = node.type or t.DYN
        if result != t.BOOL and result != _ANY:
            detail = f"must evaluate to bool or the unknown type, not {result}"
            yield invalid_value(path, source, detail)
            return
        env.plan(source, node)
    except CompileError as error:
        yield invalid_value(path, source, f"compilation failed: {error}")
        return
    except CelError as error:
        yield invalid_value(path, source, f"program instantiation failed: {error}")
        return
    if estimate_cost(node, _size).high > MOST_COST:
        yield forbidden(path, "too complex, exceeds cost limit")


def _size(path: tuple[str, ...], of: Type) -> Range | None:
    """How large what ``path`` leads to can be."""
    del of
    match path:
        case ("device", "driver"):
            return Range(0, _LONGEST_DOMAIN)
        case ("device", "attributes" | "capacity"):
            return Range(0, _MOST_ATTRIBUTES)
        case ("device", "attributes" | "capacity", "@keys"):
            return Range(0, _LONGEST_DOMAIN)
        case ("device", "attributes" | "capacity", "@values"):
            return Range(0, _MOST_ATTRIBUTES)
        case ("device", "attributes" | "capacity", "@values", "@keys"):
            return Range(0, _LONGEST_NAME)
        case ("device", "attributes", "@values", "@values"):
            return Range(0, _LONGEST_TEXT)
    return None
