"""Conversions between versions as plain functions: ``<group_version of the hub>/conversion.py``.

Two functions for each spoke, one step a line; ``CONVERSIONS`` has one function for every ordered pair of versions,
those between spokes going over the hub. Versions of a kind that no rule file speaks of and that have the same shape
are converted by their names alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kubewright.emit.code import names
from kubewright.emit.code.render import docstring, header, literal, module, render
from kubewright.emit.registry import Options
from kubewright.ir.api import Api, Emitter, File, Resource
from kubewright.ir.paths import Path
from kubewright.ir.rules import Conversion, ConversionRule
from kubewright.ir.shape import shape_of
from kubewright.ir.types import ABSENT


def emitter(options: Options) -> Emitter:
    """The emitter of ``conversion.py``."""
    return Conversions(options)


@dataclass(frozen=True, slots=True)
class Conversions:
    """One module for each group-version that is the hub of a kind."""

    options: Options
    name: str = "conversion"

    def emit(self, api: Api) -> Iterable[File]:
        """``conversion.py`` of each hub's group-version."""
        pairs = {(d.group, d.version) for d in api.definitions} | {
            (r.group, r.version) for r in api.resources
        }
        modules = names.module_names(pairs)
        declared: list[Conversion] = list(api.fact("conversions") or ())
        hubs: dict[tuple[str, str], list[Conversion]] = {}
        for conversion in (*declared, *plain_conversions(api, declared)):
            group, _, version = conversion.hub.rpartition("/")
            if (group, version) in modules:
                hubs.setdefault((group, version), []).append(conversion)
        for (group, version), conversions in sorted(hubs.items()):
            writer = _Module()
            kinds: dict[str, list[Conversion]] = {}
            for conversion in conversions:
                kinds.setdefault(conversion.hub_kind, []).append(conversion)
            for kind in sorted(kinds):
                writer.kind(kinds[kind])
            yield File(
                f"{modules[group, version]}/conversion.py",
                module(
                    render(
                        "conversion",
                        header=header(self.options.origins),
                        docstring=docstring(f"Conversions over the hub {f'{group}/{version}'.lstrip('/')}."),
                        imports="\n".join(writer.imports()),
                        functions="\n\n\n".join(writer.functions),
                        table=writer.table,
                    )
                ),
            )


def plain_conversions(api: Api, declared: Iterable[Conversion]) -> Iterator[Conversion]:
    """Conversions by name alone: of kinds without rules whose versions have one shape. The hub is the version
    objects are stored in, else the first."""
    spoken = {(c.hub_kind, c.hub.rpartition("/")[0]) for c in declared}
    table = {definition.name: definition for definition in api.definitions}
    kinds: dict[tuple[str, str], list[Resource]] = {}
    for resource in api.resources:
        kinds.setdefault((resource.kind, resource.group), []).append(resource)
    for key in sorted(kinds):
        versions = kinds[key]
        if len(versions) < 2 or key in spoken or any(r.definition not in table for r in versions):
            continue
        hub = next((r for r in versions if r.storage), versions[0])
        wanted = shape_of(table[hub.definition], table)
        for resource in versions:
            if resource is not hub and shape_of(table[resource.definition], table) == wanted:
                yield Conversion(
                    hub_kind=key[0],
                    hub=_api_version(hub),
                    spoke_kind=key[0],
                    spoke=_api_version(resource),
                    rules=(),
                    annotate=False,
                    location=resource.location,
                )


def _api_version(resource: Resource) -> str:
    return f"{resource.group}/{resource.version}" if resource.group else resource.version


def _room(module: str) -> str:
    """Which package of the runtime has ``module``: functions that only conversions call are not among the rules."""
    return "conversion" if module in {"moves", "converters", "migrations"} else "rules"


@dataclass(slots=True)
class _Module:
    functions: list[str] = field(default_factory=list)
    table: list[tuple[str, str]] = field(default_factory=list)
    moves: set[str] = field(default_factory=set)
    runtime: set[str] = field(default_factory=set)
    converters: set[tuple[str, str]] = field(default_factory=set)

    def imports(self) -> list[str]:
        lines = [
            f"from apimachinery.conversion.versions import {', '.join(['Table', *sorted(self.runtime | {'begin'})])}"
        ]
        homes = {"fields": {"Json"}, "moves": self.moves}
        for home, function in self.converters:
            homes.setdefault(home, set()).add(function)
        lines += [
            f"from apimachinery.{_room(home)}.{home} import {', '.join(sorted(homes[home]))}"
            for home in sorted(homes)
            if homes[home]
        ]
        return sorted(lines)

    def kind(self, conversions: list[Conversion]) -> None:
        """The functions and the table lines of one kind."""
        ways: dict[str, tuple[str, str]] = {}
        for conversion in conversions:
            to_hub = self._function(conversion, forward=True)
            to_spoke = self._function(conversion, forward=False)
            if conversion.annotate and conversion.rules:
                self.runtime.add("lossless")
                spoke, hub = literal(conversion.spoke), literal(conversion.hub)
                ways[conversion.spoke] = (
                    f"lossless({to_hub}, {to_spoke}, {spoke}, {hub})",
                    f"lossless({to_spoke}, {to_hub}, {hub}, {spoke})",
                )
            else:
                ways[conversion.spoke] = (to_hub, to_spoke)
        kinds = {c.spoke: c.spoke_kind for c in conversions}
        hub, kind = conversions[0].hub, conversions[0].hub_kind
        for spoke, (to_hub, to_spoke) in ways.items():
            self._row(kinds[spoke], spoke, hub, to_hub)
            self._row(kind, hub, spoke, to_spoke)
        for one, (to_hub, _) in ways.items():
            for other, (_, to_spoke) in ways.items():
                if one != other:
                    self.runtime.add("chained")
                    self._row(kinds[one], one, other, f"chained({to_hub}, {to_spoke})")

    def _row(self, kind: str, source: str, target: str, function: str) -> None:
        self.table.append((f"({literal(kind)}, {literal(source)}, {literal(target)})", function))

    def _function(self, conversion: Conversion, forward: bool) -> str:
        source, target = conversion.spoke, conversion.hub
        kind = conversion.hub_kind
        if not forward:
            source, target, kind = target, source, conversion.spoke_kind
        same_group = conversion.spoke.rpartition("/")[0] == conversion.hub.rpartition("/")[0]
        name = (
            f"{names.attribute_name(conversion.hub_kind)}"
            f"_{_word(source, same_group)}_to_{_word(target, same_group)}"
        )
        lines = self._lines(conversion.rules, forward)
        text = docstring(f"A {kind} of {source} as {target}.", 4)
        opening = f"begin(obj, {literal(target)}, {literal(kind)})"
        body = [f"    new = {opening}", *(f"    {line}" for line in lines), "    return new"]
        if not lines:
            body = [f"    return {opening}"]
        self.functions.append("\n".join([f"def {name}(obj: Json) -> Json:", f"    {text}", *body]))
        return name

    def _lines(self, rules: tuple[ConversionRule, ...], forward: bool) -> list[str]:
        """Defaults are said first, and what has no place is dropped last, when the rest has found its own."""
        said: list[str] = []
        steps: list[str] = []
        dropped: list[str] = []
        for rule in rules if forward else reversed(rules):
            phase = {"default": said, "keep": dropped, "lose": dropped}.get(rule.action, steps)
            phase.extend(self._step(rule, forward))
        return [*said, *steps, *dropped]

    def _step(self, rule: ConversionRule, forward: bool) -> Iterator[str]:
        here, there = (rule.spoke, rule.hub) if forward else (rule.hub, rule.spoke)
        match rule.action:
            case "move":
                words = dict(rule.values)
                inverse = {hub: spoke for spoke, hub in rule.values}
                if words and not forward:
                    yield self._call("map_words", _text(here[0]), literal(inverse))
                if here != there:
                    yield self._call("move", _text(here[0]), _text(there[0]))
                if words and forward:
                    yield self._call("map_words", _text(there[0]), literal(words))
            case "wrap":
                yield self._call("wrap" if forward else "unwrap", _text(here[0]), _text(there[0]))
            case "split" | "join":
                many = literal(
                    tuple(path.text for path in (rule.hub if rule.action == "split" else rule.spoke))
                )
                one = _text(rule.spoke[0] if rule.action == "split" else rule.hub[0])
                if (rule.action == "split") == forward:
                    yield self._call("split", one, many, literal(rule.separator))
                else:
                    yield self._call("join", many, one, literal(rule.separator))
            case "default":
                value = rule.spoke_value if forward else rule.hub_value
                if value is not ABSENT:
                    yield self._call("make_explicit", _text(here[0]), literal(value))
            case "constant":
                if forward:
                    yield self._call("put", _text(there[0]), literal(rule.hub_value))
                else:
                    yield self._call("drop", _text(here[0]))
            case "keep" | "lose":
                for path in here:
                    yield self._call("drop", _text(path))
            case _:
                home, _, word = rule.function.rpartition(".")
                function = f"{word}_to_{'hub' if forward else 'spoke'}"
                self.converters.add((home or "converters", function))
                yield f"{function}(new)"

    def _call(self, function: str, *arguments: str) -> str:
        self.moves.add(function)
        return f"{function}(new, {', '.join(arguments)})"


def _text(path: Path) -> str:
    return literal(path.text)


def _word(api_version: str, same_group: bool) -> str:
    group, _, version = api_version.rpartition("/")
    word = version if same_group else f"{group.partition('.')[0] or 'core'}_{version}"
    return "".join(char if char.isalnum() else "_" for char in word.lower())
