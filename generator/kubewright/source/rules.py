"""Reads rule files: declared defaults, and how typed structs write zero values.

A file that cannot be understood is never half applied: every problem is a diagnostic at its line, and the rules
that were understood still go on, so that one run tells all. Codes K160-K169 are of this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from kubewright.diagnostics import Diagnostics
from kubewright.ir.rules import (
    CheckRule,
    DefaultRule,
    FieldNumber,
    FieldNumbers,
    GoTypes,
    StrategyRules,
    TypeChecks,
    TypeRules,
    ZeroValues,
)
from kubewright.ir.types import ABSENT, Json
from kubewright.location import Document, escape_pointer
from kubewright.source.check_functions import check_function
from kubewright.source.conversions import read_conversions
from kubewright.source.published import read_published
from kubewright.source.rule_reader import RuleReader
from kubewright.source.text import read_single

ACTIONS = ("default", "set", "default-entries", "remove", "call")
_OPTIONS = frozenset(
    {"value", "copy", "from", "text", "lower", "collect", "create", "zero", "when", "function"}
)
_GO_FIELD = re.compile(r"<[\w.]+>|[\w$-]+(=[\w$-]+)?\?? [*{}\[\]]*[\w.]+")
_SOURCES = ("value", "copy", "text", "collect")


def read_rules(
    folder: FilePath, diagnostics: Diagnostics, only: tuple[str, ...] = ()
) -> tuple[tuple[str, Json], ...]:
    """All rule files below ``folder``: the name of each folder (or of ``zero_values.yaml``) → what was read; with
    ``only`` those of some names."""
    readers: dict[str, Callable[[Document, Diagnostics], tuple[Any, ...]]] = {
        "defaults": read_default_rules,
        "strategies": read_strategies,
        "zero_values": read_zero_values,
        "protobuf": read_protobuf,
        "go_types": read_go_types,
        "since": read_since,
        "published": read_published,
        "validation": read_validation,
        "conversions": read_conversions,
    }
    found: list[tuple[str, Json]] = []
    for name, read in readers.items():
        if only and name not in only:
            continue
        files = rule_files(folder, name)
        rules: list[Any] = []
        for path in files:
            document = read_single(path, diagnostics, modern=True)
            if document is not None:
                rules += read(document, diagnostics)
        if files:
            found.append((name, tuple(rules)))
    return tuple(found)


def rule_files(folder: FilePath, name: str = "*") -> list[FilePath]:
    """The rule files below ``folder`` that have this name, or are in a folder of this name."""
    single = folder / f"{name}.yaml"
    return [
        *sorted(folder.glob(f"{name}/*.yaml")),
        *(sorted(folder.glob("*.yaml")) if name == "*" else [single] if single.is_file() else []),
    ]


def read_default_rules(document: Document, diagnostics: Diagnostics) -> tuple[TypeRules, ...]:
    """The rules of one file of ``defaults/``, once for each version it names."""
    reader = RuleReader(document, diagnostics)
    head = reader.head()
    if head is None:
        return ()
    group, versions, types = head
    found: list[TypeRules] = []
    for type_name, lines in types.items():
        pointer = f"/types/{escape_pointer(type_name)}"
        rules = tuple(
            rule
            for index, line in enumerate(reader.list_of(lines, pointer))
            if (rule := _default_rule(reader, line, f"{pointer}/{index}")) is not None
        )
        found.extend(
            TypeRules(
                group=group, version=version, type_name=type_name, rules=rules, location=document.at(pointer)
            )
            for version in versions
        )
    return tuple(found)


def read_validation(document: Document, diagnostics: Diagnostics) -> tuple[TypeChecks, ...]:
    """The checks of one file of ``validation/``, once for each version it names."""
    reader = RuleReader(document, diagnostics)
    head = reader.head()
    if head is None:
        return ()
    group, versions, types = head
    found: list[TypeChecks] = []
    for type_name, entry in types.items():
        pointer = f"/types/{escape_pointer(type_name)}"
        fields = entry if isinstance(entry, dict) else {"checks": entry}
        reader.only(
            fields, {"checks", "on_create", "on_update", "on_subresource", "skip", "remember"}, pointer
        )
        place = f"{pointer}/checks" if fields is entry else pointer
        checks = _checks(reader, fields.get("checks", []), place)
        on_create = _checks(reader, fields.get("on_create", []), f"{pointer}/on_create")
        on_update = _checks(reader, fields.get("on_update", []), f"{pointer}/on_update", stored=True)
        below = f"{pointer}/on_subresource"
        on_subresource = tuple(
            (str(name), _checks(reader, lines, f"{below}/{escape_pointer(str(name))}", stored=True))
            for name, lines in reader.mapping(fields.get("on_subresource", {}), below).items()
        )
        skipped = tuple(str(name) for name in reader.list_of(fields.get("skip", []), f"{pointer}/skip"))
        found.extend(
            TypeChecks(
                group=group,
                version=version,
                type_name=type_name,
                checks=_of_version(checks, version),
                on_create=_of_version(on_create, version),
                on_update=_of_version(on_update, version),
                on_subresource=tuple((name, _of_version(rules, version)) for name, rules in on_subresource),
                skipped=skipped,
                remembered=fields.get("remember") is True,
                location=document.at(pointer),
            )
            for version in versions
        )
    return tuple(found)


def _of_version(rules: tuple[CheckRule, ...], version: str) -> tuple[CheckRule, ...]:
    return tuple(rule for rule in rules if not rule.versions or version in rule.versions)


def _checks(reader: RuleReader, lines: Json, pointer: str, *, stored: bool = False) -> tuple[CheckRule, ...]:
    found = []
    for index, line in enumerate(reader.list_of(lines, pointer)):
        place = f"{pointer}/{index}"
        fields = reader.mapping(line, place)
        if not fields:
            continue
        into = "into" in fields
        if into:
            reader.only(fields, _OF_INTO, place)
        check = "into" if into else fields.get("check")
        if not isinstance(check, str) or not _CHECK_NAME.fullmatch(check):
            reader.error("K165", "a line names one check, or a field to go into", place, "see docs/rules.md")
            continue
        at = fields["into"] if into else fields.get("at", "")
        targets = [reader.path(each, place) for each in (at if isinstance(at, list) and not into else [at])]
        beside = reader.path(fields["beside"], f"{place}/beside") if "beside" in fields else None
        if beside is not None and beside.keys is None:
            reader.error("K163", f"{beside.text!r} must lead to one value: fields only", f"{place}/beside")
            continue
        given = reader.mapping(fields.get("with", {}), f"{place}/with") if into else fields
        arguments = tuple((name, value) for name, value in given.items() if into or name not in _OF_CHECKS)
        for name, _ in arguments:
            if not name.isidentifier():
                reader.error("K162", f"{name!r} is no name of an argument", place)
        made_by = str(fields.get("as", "")) if into else ""
        function = None if into else check_function(check)
        if (function is None and not into) or (made_by and check_function(made_by) is None):
            reader.error("K169", f"no check is called {made_by or check!r}", place, "see apimachinery.kinds")
        words = [name for name, _ in arguments if name.isidentifier()]
        if function and (fault := function.misfit(words, beside=beside is not None, stored=stored)):
            reader.error("K169", f"{check} {fault}", place, "see the function in apimachinery.kinds")
        when = reader.conditions(fields.get("when", {}), f"{place}/when")
        unless = reader.conditions(fields.get("unless", {}), f"{place}/unless")
        versions = tuple(map(str, reader.list_of(fields.get("versions", []), f"{place}/versions")))
        found += [
            CheckRule(
                takes_old=stored and function is not None and function.takes_old,
                of_missing=function.of_missing if function else fields.get("missing") is True,
                check=check,
                target=target,
                location=reader.document.at(place),
                arguments=arguments,
                made_by=made_by,
                beside=beside,
                when=when,
                unless=unless,
                versions=versions,
            )
            for target in targets
            if target is not None
        ]
    return tuple(found)


_OF_CHECKS = ("check", "at", "when", "unless", "beside", "versions")
_OF_INTO = frozenset({"into", "as", "with", "missing", "when", "unless", "versions"})
_CHECK_NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*){0,2}")
_PHASES = ("admit", "create", "update")
_FACTS = {
    "generation": list,
    "status": dict,
    "keeps_status_on_create": bool,
    "create_on_update": bool,
    "unconditional_update": bool,
    "requester": bool,
    "name": str,
}


def read_strategies(document: Document, diagnostics: Diagnostics) -> tuple[StrategyRules, ...]:
    """The facts of one file of ``strategies/``, once for each version it names."""
    reader = RuleReader(document, diagnostics)
    head = reader.head()
    if head is None:
        return ()
    group, versions, kinds = head
    found: list[StrategyRules] = []
    for kind, entry in kinds.items():
        pointer = f"/types/{escape_pointer(kind)}"
        fields = reader.mapping(entry, pointer)
        reader.only(fields, {*_FACTS, *_PHASES}, pointer)
        for name, wanted in _FACTS.items():
            if name in fields and not isinstance(fields[name], wanted):
                reader.error("K161", f"{name!r} takes a {wanted.__name__}", f"{pointer}/{name}")
        phases = tuple(
            (
                phase,
                tuple(
                    rule
                    for index, line in enumerate(reader.list_of(fields[phase], f"{pointer}/{phase}"))
                    if (rule := _default_rule(reader, line, f"{pointer}/{phase}/{index}")) is not None
                ),
            )
            for phase in _PHASES
            if phase in fields
        )
        facts = tuple((name, fields[name]) for name in _FACTS if name in fields)
        found.extend(
            StrategyRules(
                group=group,
                version=version,
                kind=kind,
                facts=facts,
                phases=phases,
                location=document.at(pointer),
            )
            for version in versions
        )
    return tuple(found)


def read_zero_values(document: Document, diagnostics: Diagnostics) -> tuple[ZeroValues, ...]:
    """The facts of ``zero_values.yaml``."""
    reader = RuleReader(document, diagnostics)
    found = []
    for definition, pointer, entry in _by_definition(reader, document):
        fields = reader.mapping(entry, pointer)
        reader.only(fields, {"written", "kept", "keyed"}, pointer)
        written = reader.mapping(fields.get("written", {}), f"{pointer}/written")
        kept = reader.list_of(fields.get("kept", []), f"{pointer}/kept")
        keyed = reader.mapping(fields.get("keyed", {}), f"{pointer}/keyed")
        found.append(
            ZeroValues(
                definition=definition,
                written=tuple(sorted(written.items())),
                kept=tuple(sorted(kept)),
                keyed=tuple(sorted(keyed.items())),
            )
        )
    return tuple(found)


def read_protobuf(document: Document, diagnostics: Diagnostics) -> tuple[FieldNumbers, ...]:
    """The facts of ``protobuf.yaml``."""
    reader = RuleReader(document, diagnostics)
    return tuple(
        FieldNumbers(
            definition=definition,
            fields=_field_numbers(reader, reader.mapping(entry, pointer), pointer),
        )
        for definition, pointer, entry in _by_definition(reader, document)
    )


def _by_definition(reader: RuleReader, document: Document) -> Iterator[tuple[str, str, Any]]:
    """The facts of a file by definition, with the place of each. ``same`` maps a group-version to another one: what is
    not there of its own definitions is as of those."""
    entries = dict(reader.mapping(document.value, ""))
    same = reader.mapping(entries.pop("same", {}), "/same")
    for name, entry in entries.items():
        yield name, f"/{escape_pointer(name)}", entry
    for version, other in same.items():
        for name, entry in entries.items():
            own = f"{version}.{name.rpartition('.')[2]}"
            if name.rpartition(".")[0] == other and own not in entries:
                yield own, f"/{escape_pointer(name)}", entry


def read_go_types(document: Document, diagnostics: Diagnostics) -> tuple[GoTypes, ...]:
    """The facts of ``go_types.yaml``."""
    reader = RuleReader(document, diagnostics)
    sections = reader.mapping(document.value, "")
    reader.only(sections, {"structs", "names", "moved"}, "")
    found: list[GoTypes] = []
    for name, text in reader.mapping(sections.get("structs", {}), "/structs").items():
        fields = text.split(", ") if isinstance(text, str) and text else []
        pointer = f"/structs/{escape_pointer(name)}"
        wrong = next((each for each in fields if _GO_FIELD.fullmatch(each) is None), None)
        if not isinstance(text, str) or wrong is not None:
            what = f"{name}: {wrong or text!r} is no field of a struct"
            reader.error("K182", what, pointer, "Name type, or <Struct>")
        else:
            found.append(GoTypes(name=name, struct=text))
    for name, entry in reader.mapping(sections.get("names", {}), "/names").items():
        pairs = reader.mapping(entry, f"/names/{escape_pointer(name)}")
        found.append(GoTypes(name=name, fields=tuple((key, str(each)) for key, each in pairs.items())))
    for name, entry in reader.mapping(sections.get("moved", {}), "/moved").items():
        pairs = reader.mapping(entry, f"/moved/{escape_pointer(name)}")
        found.append(GoTypes(name=name, moved=tuple((key, str(each)) for key, each in pairs.items())))
    return tuple(found)


def read_since(document: Document, diagnostics: Diagnostics) -> tuple[tuple[str, Json], ...]:
    """The facts of ``since.yaml``: definition → field → the release that added it."""
    reader = RuleReader(document, diagnostics)
    return tuple(
        (name, {field: str(release) for field, release in reader.mapping(fields, pointer).items()})
        for name, fields in reader.mapping(document.value, "").items()
        for pointer in [f"/{escape_pointer(name)}"]
    )


def _field_numbers(reader: RuleReader, entries: Mapping[str, Any], pointer: str) -> tuple[FieldNumber, ...]:
    found: list[FieldNumber] = []
    taken: dict[int, str] = {}
    for name, entry in entries.items():
        place = f"{pointer}/{escape_pointer(name)}"
        inline: tuple[FieldNumber, ...] = ()
        number = entry
        if isinstance(entry, dict):
            reader.only(entry, {"number", "inline"}, place)
            number = entry.get("number")
            inline = _field_numbers(
                reader, reader.mapping(entry.get("inline"), f"{place}/inline"), f"{place}/inline"
            )
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**29:
            reader.error("K178", f"{name} needs a field number", place, "a whole number from 1 to 536870911")
        elif number in taken:
            reader.error("K179", f"{name} has the number of {taken[number]}", place)
        else:
            taken[number] = name
            found.append(FieldNumber(name=name, number=number, inline=inline))
    return tuple(found)


def _default_rule(reader: RuleReader, line: Json, pointer: str) -> DefaultRule | None:
    fields = reader.mapping(line, pointer)
    if not fields:
        return None
    action = next((name for name in ACTIONS if name in fields), None)
    if action is None:
        reader.error(
            "K165", "a rule says what it does: one of " + ", ".join(ACTIONS), pointer, "see docs/rules.md"
        )
        return None
    reader.only(fields, _OPTIONS | {action}, pointer)
    target = reader.path(fields[action], f"{pointer}/{action}")
    sources = [name for name in _SOURCES if name in fields]
    wants = {"default": 1, "set": 1}.get(action, 0)
    if len(sources) != wants:
        said = ", ".join(sources) or "none"
        reader.error(
            "K166",
            f"{action!r} takes {'exactly one' if wants else 'none'} of {', '.join(_SOURCES)}; here: {said}",
            pointer,
        )
        return None
    extra: dict[str, tuple[str, Callable[[], bool]]] = {
        "default-entries": ("from", lambda: "from" in fields),
        "call": ("function", lambda: isinstance(fields.get("function"), str)),
    }
    if action in extra and not extra[action][1]():
        reader.error("K166", f"{action!r} needs {extra[action][0]!r}", pointer)
        return None
    copied = fields.get("copy", fields.get("from"))
    copy = reader.path(copied, f"{pointer}/copy") if copied is not None else None
    if copy is not None and copy.keys is None:
        reader.error("K163", f"{copy.text!r} must lead to one value: fields only", f"{pointer}/copy")
        return None
    collect = reader.path(fields["collect"], f"{pointer}/collect") if "collect" in fields else None
    if target is None:
        return None
    return DefaultRule(
        action=action,
        target=target,
        location=reader.document.at(pointer),
        value=fields.get("value", ABSENT),
        copy=copy,
        text=str(fields.get("text", "")),
        lower=bool(fields.get("lower", False)),
        collect=collect,
        function=str(fields.get("function", "")),
        create=bool(fields.get("create", False)),
        zero=bool(fields.get("zero", False)),
        when=reader.conditions(fields.get("when", {}), f"{pointer}/when"),
    )
