"""Fields that releases after the emulated one added: defaults are those of the newest release, which fill them in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = dict[str, Any]
_REF = "#/definitions/"


class LaterFields:
    """The fields of a package's definitions that came after a release. ``definitions`` may be without them."""

    def __init__(self, definitions: Mapping[str, Any], later: Mapping[str, frozenset[str]]) -> None:
        self._later = later
        inner = {name: list(_inner(schema)) for name, schema in definitions.items()}
        reaching, before = set(later), 0
        while len(reaching) > before:
            before = len(reaching)
            reaching |= {name for name, ways in inner.items() if any(way[1] in reaching for way in ways)}
        self._ways = {name: [way for way in inner.get(name, ()) if way[1] in reaching] for name in reaching}

    def without(self, definition: str, default: Callable[[Json], None]) -> Callable[[Json], None]:
        """A kind's defaults without those of later fields."""
        if definition not in self._ways:
            return default

        def default_known(obj: Json) -> None:
            default(obj)
            self._drop(definition, obj)

        return default_known

    def _drop(self, definition: str, value: Json) -> None:
        for field in self._later.get(definition, ()):
            value.pop(field, None)
        for field, to, holder in self._ways[definition]:
            held = value.get(field)
            items = [held]
            if holder is not None:
                items = _items(held) if isinstance(held, holder) else []
            for item in items:
                if isinstance(item, dict):
                    self._drop(to, item)


def _items(held: Any) -> list[Any]:
    return list(held.values()) if isinstance(held, dict) else list(held)


def _inner(schema: Json) -> Iterator[tuple[str, str, type | None]]:
    """The fields of a definition that hold objects of another one: the field, the other, and the list or map around."""
    for field, value in schema.get("properties", {}).items():
        for inner, holder in (
            (value, None),
            (value.get("items"), list),
            (value.get("additionalProperties"), dict),
        ):
            if isinstance(inner, dict) and "$ref" in inner:
                yield field, inner["$ref"].removeprefix(_REF), holder
