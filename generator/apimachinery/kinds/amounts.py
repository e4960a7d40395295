"""Amounts of resources that containers and pods request, as exact quantities."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from apimachinery.kinds.fields import Json, items, lookup
from apimachinery.meta.quantity import Quantity, parse_quantity


def is_huge_page(name: str) -> bool:
    """Whether a resource is pages of one size."""
    return name.startswith("hugepages-")


def parsed(value: Any) -> Quantity | None:
    """Parse an amount; None for anything that is not a quantity."""
    try:
        return parse_quantity(str(value))
    except ValueError:
        return None


def aggregate(spec: Json, key: str) -> dict[str, Quantity]:
    """What all containers ask for at once (``key`` is requests or limits), by resource: init containers run one by one,
    next to the sidecars before them."""
    total: dict[str, Fraction] = {}
    forms: dict[str, str] = {}

    def amounts(container: Json) -> dict[str, Fraction]:
        found = {}
        for name, text in (lookup(container, "resources", key) or {}).items():
            quantity = parsed(text)
            if quantity is not None:
                found[name] = quantity.value
                forms.setdefault(name, quantity.form)
        return found

    for container in items(spec, "containers"):
        for name, value in amounts(container).items():
            total[name] = total.get(name, Fraction(0)) + value
    sidecars: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for container in items(spec, "initContainers"):
        wanted = amounts(container)
        if container.get("restartPolicy") == "Always":
            for name, value in wanted.items():
                total[name] = total.get(name, Fraction(0)) + value
                sidecars[name] = sidecars.get(name, Fraction(0)) + value
            wanted = dict(sidecars)
        else:
            wanted = {
                name: wanted.get(name, Fraction(0)) + sidecars.get(name, Fraction(0))
                for name in {*wanted, *sidecars}
            }
        for name, value in wanted.items():
            most[name] = max(most.get(name, Fraction(0)), value)
    for name, value in most.items():
        total[name] = max(total.get(name, Fraction(0)), value)
    return {name: Quantity(value, forms[name]) for name, value in total.items()}
