"""Paths of the rule files: how a rule says at which places of an object it speaks.

``spec.template.spec`` follows fields; ``[*]`` takes every item of a list, ``[name=web]`` those items whose field
``name`` is the string ``web`` (``true``/``false`` are booleans), ``{*}`` every value of a map, and
``["a.b/c"]`` one key that is not a plain name. The empty path is the object itself. ``$.`` in front means: from
the type the rule is under, not from the list item or map value it is about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

_TOKEN = re.compile(
    r"""(?P<key>[A-Za-z_$][A-Za-z0-9_$-]*)
    |\[(?P<star>\*)\]
    |\[(?P<item>[A-Za-z_][A-Za-z0-9_-]*)=(?P<value>[^\[\]"]*)\]
    |\["(?P<quoted>(?:[^"\\]|\\.)*)"\]
    |(?P<values>\{\*\})
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Key:
    """One field, or one key of a map."""

    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """Every item of a list; with ``field`` those only whose ``field`` equals ``value``."""

    field: str = ""
    value: str | bool = ""


@dataclass(frozen=True, slots=True)
class Values:
    """Every value of a map."""


Step: TypeAlias = Key | Items | Values


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path; ``absolute`` where it was written with ``$.``. ``text`` is what the rule file says."""

    steps: tuple[Step, ...]
    absolute: bool = False
    text: str = ""

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The names, if every step is a key; otherwise ``None``."""
        names = tuple(step.name for step in self.steps if isinstance(step, Key))
        return names if len(names) == len(self.steps) else None


def parse_path(text: str) -> Path:
    """The path that ``text`` says. Raises ``ValueError`` with the reason where it is none."""
    rest = text
    absolute = rest == "$" or rest.startswith("$.")
    if absolute:
        rest = rest[2:]
    steps: list[Step] = []
    position = 0
    while position < len(rest):
        if steps and rest[position] == ".":
            position += 1
        elif steps and rest[position] not in "[{":
            raise ValueError(f"expected '.', '[' or '{{' at {rest[position:]!r}")
        match = _TOKEN.match(rest, position)
        if match is None:
            raise ValueError(f"no field name or step at {rest[position:]!r}")
        steps.append(_step(match))
        position = match.end()
    return Path(tuple(steps), absolute, text)


def _step(match: re.Match[str]) -> Step:
    if (key := match["key"]) is not None:
        return Key(key)
    if (quoted := match["quoted"]) is not None:
        return Key(re.sub(r"\\(.)", r"\1", quoted))
    if match["item"] is not None:
        value = match["value"]
        return Items(match["item"], {"true": True, "false": False}.get(value, value))
    return Items() if match["star"] else Values()
