"""One document judged: every fault of every object in it, with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from apimachinery.meta.field_errors import ROOT, FieldError, Reason
from apimachinery.meta.json import Json
from apimachinery.meta.names import NAME_RULES
from apimachinery.meta.object_meta import validate_object_meta
from apimachinery.meta.strategies import Strategy
from apimachinery.wire import json as wire_json
from apimachinery.wire.json import DecodeFault
from apimachinery.wire.strict import duplicate_fields
from kubewright.diagnostics import Diagnostic, Diagnostics, NamedObject, Severity
from kubewright.location import Location
from kubewright.source.text import parse_documents
from kubewright.tools.inputs.kustomize import is_kustomization
from kubewright.tools.inputs.projects import source_of
from kubewright.tools.validate import hints, kustomization
from kubewright.tools.validate.inputs import DOCUMENTS, Chunk
from kubewright.tools.validate.kinds import BuiltinKind, Kinds
from kubewright.tools.validate.misspelt import Misspelling, meant_by
from kubewright.tools.validate.places import Places, pointer_of
from kubewright.tools.validate.refusals import of_moved, of_refusal, of_unknown
from kubewright.tools.validate.typed import Steps, type_faults, without
from kubewright.tools.validate.unusable import UnusableSchema

if TYPE_CHECKING:
    from apimachinery.schema.node import SchemaNode
    from kubewright.tools.validate.custom import CustomKind

CODES = {
    "V001": "the document cannot be read as an object",
    "V002": "no schema for the kind",
    "V003": "the kind's own CRD is refused",
    "V010": "a value of a wrong type",
    "V011": "an unknown field",
    "V012": "a key twice in one object",
    "V020": "a value that the API server refuses",
    "V021": "a warning of the API server",
    "V030": "a CustomResourceDefinition that the API server refuses",
    "V040": "a part of the input that is not judged",
    "V041": "a kustomization that kustomize refuses",
    "V042": "a patch that does not fit its target",
}
"""Code → what it says, for reports."""

_UID = "00000000-0000-0000-0000-000000000000"
_LINE = re.compile(r"line (\d+): ")


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How strict the judgement is."""

    strict: bool = False
    ignore_missing_schemas: bool = False
    lists_subjects: bool = False
    """Whether objects without findings are wanted too: to know where each begins, its text is read once more."""


@dataclass(slots=True)
class Judgement:
    """What one document gave: its findings, how many objects it held, and the kinds nobody describes."""

    findings: list[Diagnostic] = field(default_factory=list)
    objects: int = 0
    subjects: list[tuple[Location, NamedObject]] = field(default_factory=list)
    """Each object that was judged, and its place, where they are wanted."""
    missing: set[tuple[str, str]] = field(default_factory=set)
    misspelt: list[Misspelling] = field(default_factory=list)


def judge(chunk: Chunk, kinds: Kinds, options: CheckOptions) -> Judgement:
    """All findings of one document. Raises nothing for any input."""
    found = Judgement()
    value, duplicates = _decode(chunk, found)
    if found.findings or value is None:
        return found
    places = Places(chunk, value)
    level = Severity.ERROR if options.strict else Severity.WARNING
    for message, place in duplicates:
        at = places.at(place) if isinstance(place, str) else _at_line(chunk, place)
        found.findings.append(Diagnostic("V012", level, message, at, "keep one; the last one counts"))
    judging = _Judge(kinds, options, places, found, source_of(chunk.content))
    if is_kustomization(value, chunk.file):
        judging.kustomization(value, chunk.file)
    else:
        judging.document(value, "", {})
    found.findings.sort(key=lambda f: (f.location.line, f.location.column))
    return found


def is_clean(judged: Judgement) -> bool:
    """Whether there is nothing to say of a document but how many objects it held."""
    return not (judged.findings or judged.subjects or judged.missing or judged.misspelt)


def copied(value: Any) -> Any:
    """A copy that shares nothing with ``value``; the detour over text is several times faster than walking."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (OverflowError, UnicodeEncodeError, RecursionError, msgspec.MsgspecError):
        return deepcopy(value)


def _at_line(chunk: Chunk, line: int) -> Location:
    lines = chunk.content.decode("utf-8-sig", "replace").splitlines()  # YAML breaks lines at more than \n
    text = lines[line - 1] if line <= len(lines) else ""
    return Location(chunk.file, "", chunk.line + line, len(text) - len(text.lstrip(" -")) + 1)


def _decode(chunk: Chunk, found: Judgement) -> tuple[Any, list[tuple[str, str | int]]]:
    """The value and its duplicate keys; findings where it cannot be read."""
    content = chunk.content
    try:
        if content.lstrip()[:1] == b"{":
            try:
                value = wire_json.decode(content)
                names = duplicate_fields(content, value)
                return value, [(f'duplicate field "{name}"', name) for name in names]
            except DecodeFault:
                if chunk.file.endswith(".json"):
                    raise
        value, texts = DOCUMENTS.read(content, again=False)
        said: list[tuple[str, str | int]] = []
        for text in texts:
            line = _LINE.match(text)
            said.append((text[line.end() :], int(line.group(1))) if line else (text, 1))
        return value, said
    except (DecodeFault, RecursionError, ValueError) as fault:
        diagnostics = Diagnostics()
        parse_documents(content, chunk.file, diagnostics)
        for item in diagnostics:
            place = item.location
            hint = item.hint
            if place.line:
                texts = ["", *content.decode("utf-8-sig", "replace").split("\n"), ""]
                at = min(place.line, len(texts) - 1)
                hint = hint or hints.of_broken(item.message, texts[at], texts[at - 1])
                place = replace(place, line=place.line + chunk.line)
            found.findings.append(replace(item, location=place, hint=hint))
        if not diagnostics.has_errors:
            said_so = str(fault) or "nested too deep"
            place = Location(chunk.file, "", chunk.line + 1, 1)
            found.findings.append(Diagnostic("V001", Severity.ERROR, said_so, place))
        return None, []


@dataclass(slots=True)
class _Judge:
    kinds: Kinds
    options: CheckOptions
    places: Places
    found: Judgement
    source: str = ""
    subject: NamedObject | None = None

    def document(self, value: Any, below: str, outer: Json) -> None:
        """Judges an object at the pointer ``below``; those within it where it is a list of objects."""
        self.subject = None
        if not isinstance(value, dict):
            self.add("V001", Severity.ERROR, "an object is wanted, with apiVersion and kind", "", below)
            return
        given = {**outer, **value} if outer else value
        self.subject = subject_of(given, self.source)
        api_version, kind = given.get("apiVersion"), given.get("kind")
        lacking = [
            name for name in ("apiVersion", "kind") if not isinstance(given.get(name), str) or not given[name]
        ]
        if lacking or not isinstance(api_version, str) or not isinstance(kind, str):
            names = " and ".join(lacking)
            hint = hints.of_lacking(given, lacking, self.kinds.versions_of)
            self.add("V001", Severity.ERROR, f"{names} must be set to a string", lacking[0], below, hint)
            return
        items = value.get("items")
        if (
            kind.endswith("List")
            and isinstance(items, list)
            and (
                (api_version == "v1" and kind == "List") or self.kinds.versions_of(kind.removesuffix("List"))
            )
        ):
            inner = {} if kind == "List" else {"apiVersion": api_version, "kind": kind.removesuffix("List")}
            for index, item in enumerate(items):
                self.document(item, f"{below}/items/{index}", inner)
            return
        if self.kinds.is_configuration(api_version, kind):
            said = f"{kind} of {api_version} is the configuration of a program, not an object: not judged"
            self.add("V040", Severity.NOTE, said, "", below)
            return
        self.found.objects += 1
        if self.options.lists_subjects:
            self.found.subjects.append((self.places.at("", below), self.subject))
        try:
            known = self.kinds.find(api_version, kind)
        except UnusableSchema as unusable:
            said = f"{api_version} {kind} cannot be judged: {unusable}"
            self.add("V003", Severity.ERROR, said, "kind", below, "mend the CRD first")
            return
        if known is None:
            self.missing(api_version, kind, below)
        elif isinstance(known, BuiltinKind):
            self.built_in(known, copied(given) if outer else given, below, kind, api_version)
        else:
            self.custom(known, self.kinds.other_definitions(api_version, kind), given, below)

    def add(self, code: str, severity: Severity, message: str, path: str, below: str, hint: str = "") -> None:
        place = self.places.at("" if path == ROOT else path, below)
        said = f"{path}: {message}" if path and path != ROOT else message
        self.found.findings.append(Diagnostic(code, severity, said, place, hint, self.subject))

    def kustomization(self, value: Json, file: str) -> None:
        """Judges a kustomization or a component."""
        self.found.objects += 1
        self.subject = NamedObject(str(value.get("kind", "Kustomization")))
        if self.options.lists_subjects:
            self.found.subjects.append((self.places.at(""), self.subject))
        for path, message, hint in kustomization.faults(value, file):
            self.add(kustomization.REFUSED, Severity.ERROR, message, path, "", hint)

    def missing(self, api_version: str, kind: str, below: str) -> None:
        self.found.missing.add((api_version, kind))
        versions = self.kinds.versions_of(kind)
        hint = hints.of_kind(api_version, kind, self.kinds.names(api_version), self.kinds.versions_of)
        hint = hint or "give its CRD by --crds, or pass over such objects by --ignore-missing-schemas"
        severity = Severity.NOTE if self.options.ignore_missing_schemas else Severity.ERROR
        said = f"no schema for {kind} in {api_version}"
        self.add("V002", severity, said, "kind" if versions == [] else "apiVersion", below, hint)

    def unknown(self, paths: list[str], original: Json, below: str, node: SchemaNode) -> None:
        severity = Severity.ERROR if self.options.strict else Severity.WARNING
        for path in paths:
            place = self.places.at(path, below)
            hint = "" if self.options.strict else "a server drops it; --strict makes this an error"
            moved = of_moved(path)
            known = None if moved else meant_by(path, original, node)
            if known is not None:
                hint = f"did you mean {known[1]}? --fix renames it"
                self.found.misspelt.append(Misspelling(place.file, place.line, place.column, *known))
            else:
                name = path.rpartition(".")[2]
                hint = moved or hints.of_level(path, name, node) or of_unknown(name) or hint
            said = f'unknown field "{path}"'
            self.found.findings.append(Diagnostic("V011", severity, said, place, hint, self.subject))

    def faults(self, faults: list[FieldError], below: str, code: str = "V020") -> None:
        told: set[tuple[str, str]] = set()
        for fault in faults:
            if (fault.field, fault.body) not in told:
                told.add((fault.field, fault.body))
                hint = hints.of_fault(fault.body, None) or of_refusal(fault.field, fault.body)
                self.add(code, Severity.ERROR, fault.body, fault.field, below, hint)

    def custom(self, known: CustomKind, others: Iterable[CustomKind], obj: Json, below: str) -> None:
        """Judges a custom resource by its definition, unless another one has nothing against it."""
        judged = Judgement()
        replace(self, found=judged).custom_by(known, obj, below)
        if not judged.findings:
            return
        for other in others:
            found = Judgement()
            replace(self, found=found).custom_by(other, obj, below)
            if not found.findings:
                return
        self.found.findings += judged.findings
        self.found.misspelt += judged.misspelt

    def custom_by(self, known: CustomKind, obj: Json, below: str) -> None:
        """Judges a custom resource by one definition."""
        work = copied(obj)
        broken = known.schema.decode_fault(work)
        if broken is not None:
            self.add("V010", Severity.ERROR, broken, "metadata", below)
            return
        self.unknown(known.schema.prune(work), obj, below, known.schema.node)
        if known.drops_status:
            work.pop("status", None)
        known.schema.default(work)
        _settle_metadata(work, known.namespaced)
        judged = known.validate(work)
        self.faults(judged.faults, below)
        for warning in judged.warnings:
            self.add("V021", Severity.WARNING, warning, "", below)

    def built_in(self, known: BuiltinKind, obj: Json, below: str, kind: str, api_version: str) -> None:
        work = copied(obj)
        broken, unknown = known.schema.read(work)
        taken: list[str] = []
        emptied: list[Steps] = []
        if broken is not None:
            work = copied(obj)
            for fault in type_faults(known.schema.node, work, known.inner_schema):
                hint = hints.of_fault(fault.message, _value_at(work, fault.steps))
                hint = hint or of_refusal(fault.path, fault.message)
                self.add("V010", Severity.ERROR, fault.message, fault.path, below, hint)
                taken.append(fault.path)
                if fault.steps:
                    without(work, fault.steps)
                    emptied.append(fault.steps)
            if not taken:
                self.add("V010", Severity.ERROR, broken, "", below)
            if not taken or "" in taken:
                return
            unknown = known.schema.prune(work)
        if unknown:
            self.unknown(unknown, obj, below, known.schema.node)
        if kind == "CustomResourceDefinition" and api_version == "apiextensions.k8s.io/v1":
            if not taken:
                from kubewright.tools.validate.custom import judge_crd

                self.crd(judge_crd(work), obj, below)
            return
        if not known.is_resource:
            return
        _drop_empty(work)
        faults = [] if known.namespaced is None else self._metadata(known, work)
        faults += [f for f in self._rules(known, work, emptied) if not _allocated(f)]
        if taken:
            faults = [f for f in faults if not _concerns(f.field, taken) and not _defaulted(f, obj, taken)]
        self.faults(faults, below)

    def _metadata(self, known: BuiltinKind, work: Json) -> list[FieldError]:
        _settle_metadata(work, bool(known.namespaced))
        metadata = work["metadata"]
        if not known.is_stored:
            # A review needs no name, and its own rules refuse one: only the check of metadata gets to see it.
            metadata = {"name": "unnamed", **metadata}
        rule = NAME_RULES[known.strategy.name] if known.strategy is not None else None
        return validate_object_meta(
            metadata, namespaced=bool(known.namespaced), name_rule=rule, plain_finalizers=True
        )

    def _rules(self, known: BuiltinKind, work: Json, emptied: list[Steps]) -> list[FieldError]:
        if known.typed_form is not None:
            known.typed_form(work)
            for steps in emptied:
                # The form reads an empty item as an object of zero values, which nobody wrote.
                with suppress(LookupError, TypeError):
                    without(work, steps)
        if known.default is not None:
            known.default(work)
        _prepare(known.strategy, work)
        return known.validate(work, None) if known.validate is not None else []

    def crd(self, faults: list[FieldError], obj: Json, below: str) -> None:
        """Faults of a CRD. A server tells them of a form where what all versions share is once: the place
        looked for is that of the first version then."""
        for fault in faults:
            place = self.places.at(_crd_path(fault.field, obj), below)
            self.found.findings.append(
                Diagnostic(
                    "V030", Severity.ERROR, f"{fault.field}: {fault.body}", place, subject=self.subject
                )
            )


def subject_of(obj: Any, source: str) -> NamedObject:
    """What an object calls itself."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    kind = obj.get("kind") if isinstance(obj, dict) else ""
    texts = [each if isinstance(each, str) else "" for each in (kind, metadata.get("namespace"), name)]
    return NamedObject(texts[0], texts[1], texts[2], source)


def _value_at(value: Any, steps: Steps) -> Any:
    with suppress(LookupError, TypeError):
        for step in steps:
            value = value[step]
        return value
    return None


def _settle_metadata(work: Json, namespaced: bool) -> None:
    """Writes into metadata what a server does before it judges it."""
    metadata = work.get("metadata")
    if not isinstance(metadata, dict):
        metadata = work["metadata"] = {}
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = f"{metadata['generateName']}xxxxx"
    if namespaced:
        metadata.setdefault("namespace", "default")
    else:
        metadata.pop("namespace", None)


def _prepare(strategy: Strategy | None, work: Json) -> None:
    """Does what a server does between defaults and rules: built-in admission, an empty status, the kind's own step."""
    if strategy is None:
        return
    if strategy.admit is not None:
        strategy.admit(work)
    if strategy.status is not None and not strategy.keeps_status_on_create:
        work["status"] = copied(strategy.status)
    if strategy.prepare_create is not None:
        # Metadata of a wrong type was taken out.
        work.setdefault("metadata", {})["uid"] = _UID
        strategy.prepare_create(work)


def _drop_empty(work: Json) -> None:
    for name in ("metadata", "spec", "status"):
        if name in work and work[name] is None:
            del work[name]


def _concerns(path: str, taken: list[str]) -> bool:
    """Whether a fault at ``path`` may be the consequence of a value taken out there, within it, or around it."""
    return any(_within(path, place) or _within(place, path) for place in taken)


def _defaulted(fault: FieldError, obj: Json, taken: list[str]) -> bool:
    """Whether a fault is of a default that was drawn from a value taken out next to it."""
    parent = fault.field.rpartition(".")[0]
    return (
        fault.reason is not Reason.REQUIRED
        and pointer_of(obj, fault.field) == pointer_of(obj, parent)
        and any(place.rpartition(".")[0] == parent for place in taken)
    )


def _allocated(fault: FieldError) -> bool:
    """Whether a fault is the lack of what a server fills in before it looks."""
    return fault.field == "spec.healthCheckNodePort" and fault.reason is Reason.REQUIRED


def _within(inner: str, outer: str) -> bool:
    return inner == outer or (inner.startswith(outer) and inner[len(outer)] in ".[")


_SHARED = {
    "spec.validation": ".schema",
    "spec.subresources": ".subresources",
    "spec.additionalPrinterColumns": ".additionalPrinterColumns",
    "spec.selectableFields": ".selectableFields",
}


def _crd_path(path: str, crd: Json) -> str:
    for shared, inner in _SHARED.items():
        if _within(path, shared):
            return f"spec.versions[0]{inner}{path.removeprefix(shared)}"
    return path
