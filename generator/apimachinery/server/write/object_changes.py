"""What the server itself puts into an object on its way to storage, or keeps out of it."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec

from apimachinery.http.messages import User
from apimachinery.kinds.hooks import Json
from apimachinery.server.catalog.served import Served

encode_sorted = msgspec.json.Encoder(order="deterministic").encode


def name_requester(obj: Json, user: User) -> None:
    """Writes who asks into ``spec``."""
    spec = obj.setdefault("spec", {})
    for key in ("username", "uid", "groups", "extra"):
        spec.pop(key, None)
    spec.update(user.info())


_Way: TypeAlias = tuple[tuple[str, str], ...]
"""The fields on a way, each with how its name ends: ``[*]`` goes through a list, ``{*}`` through a map; ``?`` goes
where nothing is left in it."""
_STEP_ENDS = re.compile(r"\[\*\]|\{\*\}|\?")


class _Gate(NamedTuple):
    """A gated field: whether it is looked for in the whole object (``$``) or in its spec, the way to it, its name."""

    whole: bool
    way: _Way
    field: str


def drop_gated(served: Served, new: Json, old: Json | None) -> None:
    """Drops the fields that the emulated release has switched off; what is stored stays."""
    for name in served.hooks.gated:
        whole, way, field = _gate(name)
        spec = new if whole else new.get("spec")
        holders = [each for each in _holders(spec, way) if field in each]
        if not holders:
            continue
        stored = (old or {}) if whole else (old or {}).get("spec") or {}
        if any(field in each for each in _holders(stored, way)):
            continue
        for holder in holders:
            del holder[field]
        if way and way[-1][1] == "?":
            kept = way[-1][0]
            for each in _holders(spec, way[:-1]):
                if each.get(kept) == {}:
                    del each[kept]


@cache
def _gate(name: str) -> _Gate:
    whole = name[0] == "$"
    *way, field = (name[2:] if whole else name).split(".")
    steps = tuple((_STEP_ENDS.sub("", step), step[-1]) for step in way)
    return _Gate(whole, steps, field)


def _holders(spec: Any, way: _Way) -> list[Json]:
    """The objects at the end of a way."""
    found: list[Any] = [spec]
    for key, end in way:
        found = [each[key] for each in found if isinstance(each, dict) and each.get(key)]
        if not found:
            return found
        if end == "]":
            found = [item for each in found if isinstance(each, list) for item in each]
        elif end == "}":
            found = [item for each in found if isinstance(each, dict) for item in each.values()]
    return [each for each in found if isinstance(each, dict)]


def copy_field(new: Json, old: Json, name: str) -> None:
    """Copies a field from ``old``, or removes it where ``old`` lacks it."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


_NOT_GENERATION = frozenset({"metadata", "status", "kind", "apiVersion"})


def differs_outside_status(new: Json, old: Json) -> bool:
    """Whether anything differs but metadata and status."""
    # A double is not the integer that it will be stored as, and a field that is null is not a missing one.
    return (new.keys() ^ old.keys()) - _NOT_GENERATION != frozenset() or any(
        new[key] != old[key] or encode_sorted(new[key]) != encode_sorted(old[key])
        for key in new.keys() - _NOT_GENERATION
    )


def differs_at(new: Json, old: Json, fields: tuple[str, ...]) -> bool:
    """Whether one of the fields differs."""
    return any(_at(new, field) != _at(old, field) for field in fields)


def _at(obj: Json, path: str) -> Any:
    value: Any = obj
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return None if value == [] else value  # Go's comparison takes an empty list for none


def drop_repeated_owners(metadata: Json, warnings: list[str], *, sent: bool = False) -> None:
    """Keeps the first of equal owner references, and tells; ``sent``: they are in a body, as it came."""
    owners = metadata.get("ownerReferences")
    if not owners:
        return
    counted = Counter(encode_sorted(owner) for owner in owners)
    if len(counted) != len(owners):
        first: dict[bytes, Any] = {}
        for owner in owners:
            first.setdefault(encode_sorted(owner), owner)
        metadata["ownerReferences"] = list(first.values())
        uids = dict.fromkeys(owner.get("uid", "") for key, owner in first.items() if counted[key] > 1)
        when = "" if sent else " after mutating admission happens"
        warnings.append(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            f"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            f"{', '.join(uids)}"
        )
