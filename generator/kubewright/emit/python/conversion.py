"""Conversions between versions as plain functions: ``<group_version of the hub>/conversion.py``.

Two functions for each spoke, one step a line, in the order of ``ir.conversion_steps``. ``CONVERSIONS`` names the
spokes; the runtime makes one function for every ordered pair of versions of them. Versions of a kind that no rule file
speaks of and that have the same shape are converted by their names alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kubewright.emit.code import names
from kubewright.emit.code.render import docstring, literal, module_of
from kubewright.emit.interface import Options
from kubewright.ir.api import Api, Emitter, File, Resource
from kubewright.ir.conversion_steps import ConversionStep, steps_of
from kubewright.ir.rules import Conversion, ConversionRule
from kubewright.ir.shape import shape_of
from kubewright.ir.types import ABSENT, Json
from kubewright.ir.versions import join_api_version


def emitter(options: Options) -> Emitter:
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
            api_version = f"{group}/{version}".lstrip("/")
            writer = _Module()
            kinds: dict[str, list[Conversion]] = {}
            for conversion in conversions:
                kinds.setdefault(conversion.hub_kind, []).append(conversion)
            for kind in sorted(kinds):
                writer.kind(kinds[kind])
            yield File(
                f"{modules[group, version]}/conversion.py",
                module_of(
                    "conversion",
                    self.options.origins,
                    f"Conversions over the hub {api_version}.",
                    imports="\n".join(writer.imports()),
                    functions="\n\n\n".join(writer.functions),
                    hub=literal(api_version),
                    spokes=writer.spokes,
                ),
            )


def plain_conversions(api: Api, declared: Iterable[Conversion]) -> Iterator[Conversion]:
    """Conversions by name alone: of kinds without rules whose versions have one shape. The hub is the version
    objects are stored in, else the first."""
    spoken = {(c.hub_kind, c.hub.rpartition("/")[0]) for c in declared}
    spoken |= {(c.spoke_kind, c.spoke.rpartition("/")[0]) for c in declared}
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
                    hub_location=hub.location,
                )


def _api_version(resource: Resource) -> str:
    return join_api_version(resource.group, resource.version)


def _room(module: str) -> str:
    """Which package of the runtime has ``module``: functions that only conversions call are not among the rules."""
    return "conversion" if module in {"moves", "converters", "migrations", "structural"} else "kinds"


def _import_lines(homes: dict[str, set[str]]) -> list[str]:
    return [
        f"from {home} import {', '.join(sorted(homes[home], key=names.import_order))}"
        for home in sorted(homes)
        if homes[home]
    ]


@dataclass(slots=True)
class _Module:
    functions: list[str] = field(default_factory=list)
    spokes: list[str] = field(default_factory=list)
    moves: set[str] = field(default_factory=set)
    converters: set[tuple[str, str]] = field(default_factory=set)

    def imports(self) -> list[str]:
        runtime = {
            "apimachinery.conversion.versions": {"Spoke", "Table", "begin", "through_hub"},
            "apimachinery.kinds.fields": {"Json"},
            "apimachinery.conversion.moves": self.moves,
        }
        own: dict[str, set[str]] = {}
        for home, function in self.converters:
            homes, module_name = (
                (own, home) if "." in home else (runtime, f"apimachinery.{_room(home)}.{home}")
            )
            homes.setdefault(module_name, set()).add(function)
        return [*_import_lines(runtime), *([""] if own else []), *_import_lines(own)]

    def kind(self, conversions: list[Conversion]) -> None:
        """Adds the functions and the spokes of one kind."""
        for conversion in conversions:
            to_hub = self._function(conversion, forward=True)
            to_spoke = self._function(conversion, forward=False)
            arguments = [literal(conversion.spoke_kind), literal(conversion.spoke), to_hub, to_spoke]
            if conversion.hub_kind != conversion.spoke_kind:
                arguments.append(f"hub_kind={literal(conversion.hub_kind)}")
            if conversion.annotate and conversion.rules:
                arguments.append("keep=True")
            self.spokes.append(f"Spoke({', '.join(arguments)})")

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
        return [line for step in steps_of(rules, forward) for line in self._step(step, forward)]

    def _step(self, step: ConversionStep, forward: bool) -> Iterator[str]:
        rule, here, there = step.rule, step.here, step.there
        match rule.action:
            case "move":
                words = dict(rule.values)
                inverse = {hub: spoke for spoke, hub in rule.values}
                if words and not forward:
                    yield self._call("map_words", here[0], inverse)
                if here != there:
                    yield self._call("move", here[0], there[0])
                if words and forward:
                    yield self._call("map_words", there[0], words)
            case "wrap":
                yield self._call("wrap" if forward else "unwrap", here[0], there[0])
            case "split" | "join":
                if (rule.action == "split") == forward:
                    yield self._call("split", here[0], there, rule.separator)
                else:
                    yield self._call("join", here, there[0], rule.separator)
            case "seconds":
                to_number = (rule.side == "spoke") == forward
                yield self._call(
                    "duration_to_seconds" if to_number else "seconds_to_duration", here[0], there[0]
                )
            case "group":
                if forward:
                    yield self._call("version_to_group", here[0], there[0])
                else:
                    yield self._call("group_to_version", here[0], there[0], rule.version)
            case "keyed":
                to_list = (rule.side == "spoke") == forward
                function = "map_to_list" if to_list else "list_to_map"
                yield self._call(function, here[0], there[0], rule.key, rule.field)
            case "default":
                value = rule.spoke_value if forward else rule.hub_value
                if value is not ABSENT:
                    yield self._call("make_explicit", here[0], value)
            case "constant":
                if forward:
                    yield self._call("put", there[0], rule.hub_value)
                else:
                    yield self._call("drop", here[0])
            case "keep" | "lose":
                yield self._call("drop", here[0])
            case _:
                home, _, word = rule.function.rpartition(".")
                function = f"{word}_to_{'hub' if forward else 'spoke'}"
                self.converters.add((home or "converters", function))
                yield f"{function}(new)"

    def _call(self, function: str, *arguments: Json) -> str:
        self.moves.add(function)
        return f"{function}(new, {', '.join(map(literal, arguments))})"


def _word(api_version: str, same_group: bool) -> str:
    group, _, version = api_version.rpartition("/")
    word = version if same_group else f"{group.partition('.')[0] or 'core'}_{version}"
    return "".join(char if char.isalnum() else "_" for char in word.lower())
