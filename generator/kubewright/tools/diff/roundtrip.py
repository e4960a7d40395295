"""Rule #2 of the deprecation policy: objects travel between the served versions of a kind without loss.

Versions of a resource that a server serves at the same time are compared pair by pair and both ways, as the schemas of
one version before and after a change are. A field that the other version lacks must be carried by a declared
conversion rule (docs/rules.md); a rule that lets it go by decision counts as said. Without rules a server
converts by names alone; where a webhook converts, what it does is not known, and such a field is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final

from kubewright.ir.api import Api, Resource
from kubewright.ir.check_rules import destination
from kubewright.ir.rules import Conversion
from kubewright.ir.shape import shape_of
from kubewright.ir.types import Definition
from kubewright.ir.versions import join_api_version, version_priority
from kubewright.location import Location
from kubewright.tools.diff.change import KINDS, ApiChange
from kubewright.tools.diff.schemas import Comparison

_REFUSALS: Final = frozenset(
    {"D203", "D204", "D205", "D206", "D211", "D213", "D214", "D215", "D216", "D223", "D225", "D226"}
    | {"D224", "D227", "D229", "D230", "D236"}
)
"""What a version refuses that another accepts: the changes that break writers without losing a value."""


def compare_roundtrips(old: Api, new: Api) -> Iterator[ApiChange]:
    """The losses that ``new`` has and ``old`` had not; none where nobody knows what ``old`` had."""
    if old.fact("conversions") is None and any(r.introduced for r in old.resources):
        return
    known = {(loss.kind.code, loss.path, loss.message) for loss in find_losses(old)}
    for loss in find_losses(new):
        if (loss.kind.code, loss.path, loss.message) not in known:
            yield loss


def find_losses(api: Api) -> Iterator[ApiChange]:
    """Every field of a served version that another one cannot carry, or would not accept."""
    table = {d.name: d for d in api.definitions}
    conversions: dict[tuple[str, str], Conversion] = {}
    for conversion in api.fact("conversions") or ():
        conversions[conversion.spoke, conversion.spoke_kind] = conversion
    kinds: dict[tuple[str, str], list[Resource]] = {}
    is_told = api.fact("conversions") is not None
    for resource in api.resources:
        # A server converts its built-in kinds by code; what it does is known where the catalog says it.
        if resource.introduced and not is_told:
            continue
        if (resource.served or resource.storage or resource.introduced) and resource.definition in table:
            kinds.setdefault((resource.group, resource.plural), []).append(resource)
    for versions in kinds.values():
        for one, other in permutations(versions, 2):
            yield from _Pair(one, other, table, _Route.between(one, other, conversions)).losses()


@dataclass(frozen=True, slots=True)
class _Route:
    """The rules from one version to another, over the hub."""

    known: bool
    to_hub: Conversion | None
    from_hub: Conversion | None

    @classmethod
    def between(
        cls, one: Resource, other: Resource, conversions: Mapping[tuple[str, str], Conversion]
    ) -> _Route:
        to_hub, from_hub = (conversions.get((api_version_of(r), r.kind)) for r in (one, other))
        return cls(to_hub is not None or from_hub is not None, to_hub, from_hub)

    def end(self, path: str) -> str | None:
        """Where the value at ``path`` arrives; ``None`` where a rule answers for it."""
        there = destination(path, self.to_hub.rules, forward=True) if self.to_hub else path
        if there is not None and self.from_hub:
            return destination(there, self.from_hub.rules, forward=False)
        return there

    def paths(self) -> Iterator[str]:
        """All paths that rules on the way speak of."""
        for conversion in (self.to_hub, self.from_hub):
            for rule in conversion.rules if conversion else ():
                yield from (path.text for path in (*rule.spoke, *rule.hub))


@dataclass(slots=True)
class _Pair:
    """Objects of ``one`` read and written as ``other``."""

    one: Resource
    other: Resource
    table: Mapping[str, Definition]
    route: _Route
    _shapes: dict[str, dict[str, str]] = field(default_factory=dict)

    def losses(self) -> Iterator[ApiChange]:
        here, there = self.table[self.one.definition], self.table[self.other.definition]
        unknown = not self.route.known and _is_converted_by_webhook(self.one)
        for code, path, message, location in Comparison(self.table, self.table).values(
            "", here.value, there.value
        ):
            if code == "D201":
                for lost in self._lost(path):
                    said = f"has no place in {self.other.version}, which is served too"
                    yield self._change("D304" if unknown else "D301", lost, said, location)
            elif code == "D202" and self._lost(path):
                was, _, now = message.removeprefix("type changed from ").partition(" to ")
                said = f"is {was}; in {self.other.version}, which is served too, it is {now}"
                yield self._change("D304" if unknown else "D302", path, said, location)
            elif code in _REFUSALS and not self._is_spoken_of(code, path):
                said = f"{self.other.version} refuses what is accepted here: {message}"
                yield self._change("D303", path, said, location)

    def _lost(self, path: str) -> list[str]:
        """Of a field that the other version lacks or has in another type: itself, or what below it no rule carries."""
        if not self.route.known:
            return [path]
        here, there = self._shape(self.one.definition), self._shape(self.other.definition)
        wanted = _as_rule(path)
        leaves = [leaf for leaf in here if _is_at(leaf, wanted)] or [wanted]
        ends = {leaf: self.route.end(leaf) for leaf in leaves}
        lost = [
            leaf
            for leaf, end in ends.items()
            if end is not None and (end not in there or there[end] != here.get(leaf, ""))
        ]
        return [path] if len(lost) == len(ends) else [_as_path(leaf) for leaf in lost]

    def _is_spoken_of(self, code: str, path: str) -> bool:
        """Whether a rule leads to a place, or through it. Where rules move fields, CEL expressions cannot be held
        against each other as texts."""
        if not self.route.known:
            return False
        wanted = _as_rule(path)
        return code == "D223" or any(
            _is_at(spoken, wanted) or _is_at(wanted, spoken) for spoken in self.route.paths()
        )

    def _shape(self, name: str) -> dict[str, str]:
        if name not in self._shapes:
            self._shapes[name] = shape_of(self.table[name], self.table)
        return self._shapes[name]

    def _change(self, code: str, path: str, message: str, location: Location) -> ApiChange:
        level = min(self.one.version, self.other.version, key=lambda v: version_priority(v)[0])
        return ApiChange(KINDS[code], f"{resource_path(self.one)}: {path}", level, message, location)


def _is_converted_by_webhook(resource: Resource) -> bool:
    conversion = (resource.manifest or {}).get("conversion")
    return isinstance(conversion, dict) and conversion.get("strategy") == "Webhook"


def api_version_of(resource: Resource) -> str:
    """``example.com/v1``; ``v1`` of the core group."""
    return join_api_version(resource.group, resource.version)


def resource_path(resource: Resource) -> str:
    """``widgets.example.com/v1``; ``pods/v1`` of the core group."""
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.plural}{group}/{resource.version}"


def _is_at(path: str, place: str) -> bool:
    """Whether a path of a rule is that place or below it."""
    return path == place or path.startswith((f"{place}.", f"{place}[", f"{place}{{"))


def _as_rule(path: str) -> str:
    """A path of a change in the words of rule files."""
    return path.replace("[]", "[*]").replace("{}", "{*}")


def _as_path(rule: str) -> str:
    return rule.replace("[*]", "[]").replace("{*}", "{}")
