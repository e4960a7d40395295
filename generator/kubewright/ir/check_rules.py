"""Checks declared rules against the linked API: what they speak of is there, and no conversion loses data silently.

Codes K167, K168 and K185 (rules that speak of nothing), K175-K177, K180, K183 and K184 (conversions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api
from kubewright.ir.conversion_steps import covers, lists_of, steps_of
from kubewright.ir.entering import enters, held_types, types_with_rules
from kubewright.ir.rules import CheckRule, Conversion, ConversionRule, TypeChecks
from kubewright.ir.shape import shape_of, type_at
from kubewright.ir.types import Definition
from kubewright.ir.versions import version_priority
from kubewright.location import Location


def check_rules(api: Api, diagnostics: Diagnostics) -> None:
    """Adds a diagnostic for every rule that cannot be right."""
    table = {definition.name: definition for definition in api.definitions}
    named = {(d.group, d.version, d.name.rpartition(".")[2]): d for d in api.definitions}
    _check_types(api, table, named, diagnostics)
    _check_into(api, named, diagnostics)
    _check_versions(api, diagnostics)
    for conversion in api.fact("conversions") or ():
        _check_conversion(conversion, table, named, diagnostics)


def _check_versions(api: Api, diagnostics: Diagnostics) -> None:
    """Conversions lead between versions that the API has; a spoke may be one that says when it was removed."""
    versions: dict[tuple[str, str], list[str]] = {}
    for resource in sorted(api.resources, key=lambda each: version_priority(each.version)):
        if resource.manifest is not None:  # of built-in kinds a release has some versions, rules are of all
            versions.setdefault((resource.group, resource.kind), []).append(resource.version)
    hubs: set[tuple[str, str, str]] = set()
    for conversion in api.fact("conversions") or ():
        for api_version, kind, is_hub in (
            (conversion.hub, conversion.hub_kind, True),
            (conversion.spoke, conversion.spoke_kind, False),
        ):
            group, version = _split(api_version)
            there = versions.get((group, kind))
            if there is None or version in there or (not is_hub and conversion.removed_in):
                continue
            if not is_hub:
                diagnostics.error(
                    "K184",
                    f"{kind} has no version {version} to convert: {_listed(there)}",
                    conversion.location,
                    "correct the version; of one that is gone say so: `removed: RELEASE`",
                )
            elif (conversion.location.file, api_version, kind) not in hubs:
                hubs.add((conversion.location.file, api_version, kind))
                diagnostics.error(
                    "K183",
                    f"the hub of the conversions of {kind} is {version}, which it does not have: {_listed(there)}",
                    conversion.hub_location,
                    "put the version back, or make another one the hub first: "
                    f"kubewright scaffold version {there[-1]} --kind {kind} --hub",
                )


def _listed(versions: Sequence[str]) -> str:
    return f"there is {', '.join(versions)}"


def _check_types(
    api: Api,
    table: Mapping[str, Definition],
    named: Mapping[tuple[str, str, str], Definition],
    diagnostics: Diagnostics,
) -> None:
    """Types exist in one version at least of those a file names; paths exist in the versions that have the type."""
    known = {(d.group, d.version) for d in api.definitions}
    found: dict[tuple[Location, str], bool] = {}
    for fact in ("defaults", "validation"):
        for entry in api.fact(fact) or ():
            definition = named.get((entry.group, entry.version, entry.type_name))
            spot = (entry.location, entry.type_name)
            if (entry.group, entry.version) in known:
                found[spot] = found.get(spot, False) or definition is not None
            if definition is None:
                continue
            rules = entry.rules if fact == "defaults" else _all_checks(entry)
            for rule in rules:
                if type_at(definition.value.type, rule.target.steps, table) is None:
                    diagnostics.error(
                        "K168",
                        f"{entry.type_name} has no {rule.target.text!r}",
                        rule.location,
                        "the path of a rule must exist in the type it stands under",
                    )
    for (location, name), is_there in found.items():
        if not is_there:
            diagnostics.error(
                "K167",
                f"no type is called {name!r} in this version",
                location,
                "correct the name, or remove the rules",
            )


def _all_checks(entry: TypeChecks) -> tuple[CheckRule, ...]:
    return (*entry.of_objects, *_of_subresources(entry))


def _of_subresources(entry: TypeChecks) -> list[CheckRule]:
    return [rule for _, rules in entry.on_subresource for rule in rules]


def _check_into(api: Api, named: Mapping[tuple[str, str, str], Definition], diagnostics: Diagnostics) -> None:
    """Lines that go into a type find rules there, in one version at least, and say what those ask for."""
    own = {
        definition.name: entry
        for entry in api.fact("validation") or ()
        if (definition := named.get((entry.group, entry.version, entry.type_name))) is not None
    }
    with_rules = types_with_rules(api.definitions, own, enters)
    faults: dict[Location, str] = {}
    right: set[Location] = set()
    for definition in api.definitions:
        entry = own.get(definition.name)
        if entry is None:
            continue
        held = dict(held_types(definition.value.type))
        for rule in entry.of_objects:
            if not rule.is_into:
                continue
            name = held.get(rule.target.steps)
            asked = own[name].given if name in own else ()
            if name not in with_rules:
                faults[rule.location] = (
                    f"the rules of {entry.type_name} do not lead into {rule.target.text!r}"
                )
            elif sorted(key for key, _ in rule.arguments) != list(asked):
                faults[rule.location] = (
                    f"{rule.target.text!r} is gone into `with` {', '.join(asked) or 'nothing'}"
                )
            else:
                right.add(rule.location)
        lines = {rule.target.steps for rule in entry.of_objects if rule.is_into}
        for steps, name in held.items():
            if name in own and own[name].given and steps not in lines and enters(entry, steps):
                faults[own[name].location] = (
                    f"{entry.type_name} goes into {own[name].type_name} without `with`"
                )
        if entry.given and entry.remembered:
            faults[entry.location] = "what is wrong with a value that is remembered does not depend on `with`"
        for rule in (*entry.on_create, *entry.on_update, *_of_subresources(entry)):
            if any(condition.given for condition in (*rule.when, *rule.unless)):
                faults[rule.location] = "only lines of `checks` are told something by `with`"
        for rule in _of_subresources(entry):
            if rule.is_into and (rule.target.steps or rule.arguments or rule.made_by or rule.when):
                faults[rule.location] = "a subresource's rules go into the whole object: `into: ''`"
    for location, fault in faults.items():
        if location not in right:
            diagnostics.error(
                "K185",
                fault,
                location,
                "name a field of the type itself whose type has rules, and what their conditions ask for",
            )


def _check_conversion(
    conversion: Conversion,
    table: Mapping[str, Definition],
    named: Mapping[tuple[str, str, str], Definition],
    diagnostics: Diagnostics,
) -> None:
    """No silent data loss. A version that the API does not define cannot be looked at."""
    if conversion.complete:
        _check_lists(conversion, diagnostics)
    hub = named.get((*_split(conversion.hub), conversion.hub_kind))
    spoke = named.get((*_split(conversion.spoke), conversion.spoke_kind))
    if hub is None or spoke is None or not conversion.complete:
        return
    hub_shape, spoke_shape = shape_of(hub, table), shape_of(spoke, table)
    for rule in conversion.rules:
        for paths, shape, version in (
            (rule.spoke, spoke_shape, conversion.spoke),
            (rule.hub, hub_shape, conversion.hub),
        ):
            for spoken in paths:
                if not any(covers(spoken.text, known) for known in shape):
                    diagnostics.error(
                        "K177",
                        f"{conversion.hub_kind} of {version} has no {spoken.text!r}",
                        rule.location,
                        "paths of the spoke stand first, those of the hub after `to`",
                    )
    for here, there, one, other, forward in (
        (spoke_shape, hub_shape, conversion.spoke, conversion.hub, True),
        (hub_shape, spoke_shape, conversion.hub, conversion.spoke, False),
    ):
        for path, kind in here.items():
            target = destination(path, conversion.rules, forward)
            if target is None:
                continue
            if target not in there:
                diagnostics.error(
                    "K175",
                    f"{conversion.hub_kind}: {path} of {one} has no place in {other}, and no rule speaks of it",
                    conversion.location,
                    "add a rule: move it, `keep` it in an annotation, or `lose` it with the reason",
                )
            elif there[target] != kind:
                diagnostics.error(
                    "K176",
                    f"{conversion.hub_kind}: {path} of {one} is {kind}, {target} of {other} is {there[target]}",
                    conversion.location,
                    "add a rule that makes one of the other",
                )


def _split(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def destination(path: str, rules: Iterable[ConversionRule], forward: bool) -> str | None:
    """Where the value at ``path`` goes, in words of the other version; ``None`` where a rule answers for it.

    Of several rules about it or about what it lies in, the one with the longest path counts, and of those with one
    path the first.
    """
    closest: tuple[str, ConversionRule] | None = None
    for rule in rules:
        if rule.action == "default":
            continue
        for source in rule.spoke if forward else rule.hub:
            if covers(source.text, path) and (closest is None or len(source.text) > len(closest[0])):
                closest = source.text, rule
    if closest is None:
        return path
    source_text, rule = closest
    if rule.action != "move":
        return None
    return (rule.hub if forward else rule.spoke)[0].text + path[len(source_text) :]


def _check_lists(conversion: Conversion, diagnostics: Diagnostics) -> None:
    """Checks that a rule leads through the same lists on both sides, or through one that another rule moves."""
    for forward in (True, False):
        for step in steps_of(conversion.rules, forward):
            if step.rule.action in _THROUGH_LISTS and step.here and step.there:
                here, there = lists_of(step.here[0]), lists_of(step.there[0])
                if step.rule.action == "wrap":
                    here, there = (here, there[:-1]) if forward else (here[:-1], there)
                if here != there:
                    diagnostics.error(
                        "K180",
                        f"{step.rule.action!r} leads out of one list into another: {step.here[0]} to {step.there[0]}",
                        step.rule.location,
                        "move the list itself by a rule of its own, then rules for its items may follow",
                    )
                    return


_THROUGH_LISTS = frozenset({"move", "wrap", "split", "join", "seconds", "group", "keyed"})
