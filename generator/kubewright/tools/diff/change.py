"""One change between two states of an API, and how it is weighed.

A change has an impact: who may be broken by it. ``BREAKS_WRITERS``: a manifest that was accepted may be refused or
mean something else. ``BREAKS_READERS``: a client may meet what it does not expect. ``BREAKS_STORED``: objects
already stored may become unreadable or invalid. ``SAFE``: nobody. The deprecation policy then weighs it by the
stability level of the version it is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from kubewright.location import Location


class Impact(Enum):
    """Whom a change may break."""

    BREAKS_STORED = "breaks stored objects"
    BREAKS_WRITERS = "breaks writers"
    BREAKS_READERS = "breaks readers"
    SAFE = "safe"


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """One sort of change; codes are stable."""

    code: str
    name: str
    impact: Impact
    rule: str


@dataclass(frozen=True, slots=True)
class ApiChange:
    """One change: ``path`` reads ``widgets.example.com/v1: spec.size``, ``version`` is that it is in."""

    kind: ChangeKind
    path: str
    version: str
    message: str
    location: Location


_ONE: Final = "deprecation policy rule #1: elements are removed by a new version only"
_TWO: Final = "deprecation policy rule #2: objects convert between versions without loss"
_FOUR_A: Final = "deprecation policy rule #4a: versions live as long as their level promises"
_FOUR_B: Final = "deprecation policy rule #4b: the storage version moves after a release that serves both"
_COMPATIBLE: Final = "API changes: a change within a version is compatible"
_WIRE: Final = "API changes: a number of the protobuf form means one field of one type for ever"
_TOPOLOGY: Final = "KEP-555: merge topology decides who owns what"

W, R, S, N = Impact.BREAKS_WRITERS, Impact.BREAKS_READERS, Impact.BREAKS_STORED, Impact.SAFE

KINDS: Final[dict[str, ChangeKind]] = {
    code: ChangeKind(code, name, impact, rule)
    for code, name, impact, rule in (
        ("D101", "resource removed", W, _ONE),
        ("D102", "version removed", W, _FOUR_A),
        ("D103", "version no longer served", W, _FOUR_A),
        ("D104", "scope changed", S, _ONE),
        ("D105", "kind renamed", W, _ONE),
        ("D106", "storage version moved", R, _FOUR_B),
        ("D107", "storage version unknown to the release before", S, _FOUR_B),
        ("D108", "subresource removed", W, _ONE),
        ("D109", "scale path changed", W, _ONE),
        ("D110", "selectable field removed", R, _ONE),
        ("D111", "short name removed", R, _COMPATIBLE),
        ("D112", "category removed", R, _COMPATIBLE),
        ("D113", "verb removed", W, _ONE),
        ("D114", "printer column removed", N, _COMPATIBLE),
        ("D115", "subresource added that takes fields away", W, _COMPATIBLE),
        ("D116", "deprecated without a successor", R, "deprecation policy rule #3"),
        ("D117", "version removed in which objects are stored", S, _FOUR_A),
        ("D118", "list kind renamed", W, _ONE),
        ("D119", "singular name changed", R, _COMPATIBLE),
        ("D120", "object of a subresource changed", W, _ONE),
        ("D151", "resource added", N, ""),
        ("D152", "version added", N, ""),
        ("D153", "subresource added", N, ""),
        ("D154", "deprecated", N, ""),
        ("D155", "verb added", N, ""),
        ("D156", "selectable field added", N, ""),
        ("D157", "printer column added", N, ""),
        ("D158", "no longer deprecated", N, ""),
        ("D159", "printer column changed", N, ""),
        ("D201", "field removed", W, _ONE),
        ("D202", "type changed", S, _ONE),
        ("D203", "format changed", W, _COMPATIBLE),
        ("D204", "field became required", W, _COMPATIBLE),
        ("D205", "required field added", W, _COMPATIBLE),
        ("D206", "null no longer accepted", W, _COMPATIBLE),
        ("D207", "null accepted", R, _COMPATIBLE),
        ("D208", "default changed", W, _COMPATIBLE),
        ("D209", "default removed", W, _COMPATIBLE),
        ("D210", "default added", R, _COMPATIBLE),
        ("D211", "enum value removed", W, _COMPATIBLE),
        ("D212", "enum value added", R, _COMPATIBLE),
        ("D213", "enum added", W, _COMPATIBLE),
        ("D214", "bound tightened", W, _COMPATIBLE),
        ("D215", "pattern changed", W, _COMPATIBLE),
        ("D216", "pattern added", W, _COMPATIBLE),
        ("D217", "list type changed", W, _TOPOLOGY),
        ("D218", "list map keys changed", S, _TOPOLOGY),
        ("D219", "map type changed", W, _TOPOLOGY),
        ("D220", "patch strategy changed", W, _TOPOLOGY),
        ("D221", "patch merge key changed", W, _TOPOLOGY),
        ("D222", "unknown fields are pruned now", S, _COMPATIBLE),
        ("D223", "CEL rule added", W, _COMPATIBLE),
        ("D224", "CEL rule changed", W, _COMPATIBLE),
        ("D225", "became immutable", W, _COMPATIBLE),
        ("D226", "became a full object", W, _COMPATIBLE),
        ("D227", "logical rule changed", W, _COMPATIBLE),
        ("D228", "extension changed", R, _COMPATIBLE),
        ("D229", "additional fields no longer accepted", S, _COMPATIBLE),
        ("D230", "items became unique", W, _COMPATIBLE),
        ("D231", "no longer immutable", R, _COMPATIBLE),
        ("D232", "field no longer described, though kept", R, _ONE),
        ("D233", "type widened", R, _COMPATIBLE),
        ("D234", "default added that a rule reads", W, _COMPATIBLE),
        ("D235", "field described whose values were kept as they came", W, _COMPATIBLE),
        ("D236", "whole number limited to 32 bits", R, _COMPATIBLE),
        ("D251", "optional field added", N, ""),
        ("D252", "field became optional", R, _COMPATIBLE),
        ("D253", "bound loosened", N, ""),
        ("D254", "pattern removed", N, ""),
        ("D255", "enum removed", R, _COMPATIBLE),
        ("D256", "CEL rule removed", N, ""),
        ("D257", "unknown fields are kept now", N, ""),
        ("D258", "CEL message changed", N, ""),
        ("D259", "description changed", N, ""),
        ("D260", "additional fields accepted", N, ""),
        ("D261", "no longer read-only", N, ""),
        ("D262", "became read-only", W, _COMPATIBLE),
        ("D263", "field deprecated", N, ""),
        ("D264", "field no longer deprecated", N, ""),
        ("D265", "pattern loosened", N, ""),
        ("D266", "logical rule loosened", N, ""),
        ("D267", "CEL rule that refuses nothing more", N, ""),
        ("D268", "format that is not checked", N, ""),
        ("D301", "field of one served version has no place in another", S, _TWO),
        ("D302", "field of another type in another served version", S, _TWO),
        ("D303", "accepted in one served version, refused in another", R, _TWO),
        ("D304", "only the conversion webhook can keep a field of a served version", R, _TWO),
        ("D311", "protobuf number changed", S, _WIRE),
        ("D312", "protobuf number used again", S, _WIRE),
        ("D313", "type changed in the protobuf form", S, _WIRE),
        ("D314", "field left the protobuf form", W, _WIRE),
    )
}
