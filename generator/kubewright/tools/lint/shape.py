"""L3: the shape of a kind: spec and status, conditions, subresources, columns, rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.ir.merge import ListType
from kubewright.ir.types import Absent, ListOf, Primitive, Ref, Scalar, Struct
from kubewright.tools.lint.places import Place, struct_of
from kubewright.tools.lint.rule import (
    CONVENTIONS,
    CRD,
    CRD_DOCS,
    NATIVE,
    LintedKind,
    kind_rule,
    place_rule,
)

_CONDITION: Final = {"type", "status", "lastTransitionTime", "reason", "message"}
_STEP: Final = re.compile(r"\.([A-Za-z0-9_$-]+)|\['([^']*)'\]|\[(\d+|\*)\]")
_COLUMN_TYPES: Final = {
    "integer": {Primitive.INTEGER},
    "number": {Primitive.NUMBER, Primitive.INTEGER},
    "boolean": {Primitive.BOOLEAN},
}


@kind_rule(
    "L301 top-level",
    profiles=CRD,
    why="What users want is in spec, what is observed in status; anything outside them escapes both rules.",
    source=f"{CONVENTIONS}: Spec and status",
    hint="move the field into spec or status",
)
def top_level(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """Only apiVersion, kind, metadata, spec and status are at the top."""
    if kind.find("spec") is None and kind.find("status") is None:
        return  # data kinds, such as ConfigMap, have neither
    for place in kind.places:
        if (
            place.name
            and place.parent is None
            and place.name not in ("apiVersion", "kind", "metadata", "spec", "status")
        ):
            yield place, f'top-level field "{place.name}" is neither in spec nor in status'


@kind_rule(
    "L302 status-subresource",
    why="Without the subresource whoever may change the spec may also claim that it is done, and the other way round.",
    source=f"{CONVENTIONS}: Spec and status",
    hint="enable the status subresource, or drop status",
)
def status_subresource(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """status is in the schema if and only if the subresource is on."""
    enabled = any(s.name == "status" for s in kind.resource.subresources)
    status = kind.find("status")
    if status is not None and not enabled and kind.is_stored:
        yield status, "status is declared, but the status subresource is not enabled"
    if status is None and enabled:
        yield None, "the status subresource is enabled, but the schema has no status"


@place_rule(
    "L303 status-optional",
    why="The object is created before anything is observed: a required status cannot be filled then.",
    source=f"{CONVENTIONS}: Spec and status",
    hint="drop it from required",
)
def status_optional(place: Place, kind: LintedKind) -> Iterator[str]:
    """status and its direct fields are optional, except in reviews, which are answered at once."""
    if (
        kind.is_stored
        and place.required
        and (place.path == "status" or (place.parent is not None and place.parent.path == "status"))
    ):
        yield f'"{place.path}" is required'


@place_rule(
    "L304 status-default",
    why="A default claims an observation that nobody has made.",
    source=f"{CONVENTIONS}: Spec and status",
    hint="let the controller write it",
)
def status_default(place: Place, kind: LintedKind) -> Iterator[str]:
    """Nothing in status has a default, except for fields of items, which somebody has observed."""
    if place.in_status and not isinstance(place.value.default, Absent):
        if "[]" not in place.path and "{}" not in place.path:
            yield f'"{place.path}" has a default'


@kind_rule(
    "L305 conditions",
    severity=Severity.NOTE,
    why="Conditions are how tools, `kubectl wait` first, learn how an object is, whatever its kind.",
    source=f"{CONVENTIONS}: Typical status properties",
    hint="add status.conditions, a map list by type",
)
def conditions(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """A status has conditions, of its own or of its parts."""
    status = kind.find("status")
    there = any(place.in_status and place.name == "conditions" for place in kind.places)
    if status is not None and kind.is_stored and not there:
        yield status, "status has no conditions"


@kind_rule(
    "L306 conditions-merge",
    why="Several controllers write conditions; only a map list by type lets each own its own.",
    source=f"{CONVENTIONS}: Typical status properties",
    hint="set list type map with the key type",
)
def conditions_merge(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """Conditions are a map list by type."""
    place = kind.find("status.conditions")
    if place is not None and isinstance(place.target.type, ListOf):
        merge = place.value.merge
        if merge.list_type is not ListType.MAP or merge.list_map_keys != ("type",):
            yield place, "status.conditions is not a map list by type"


@kind_rule(
    "L307 condition-fields",
    why="Tools read the standard fields of a condition and nothing else.",
    source=f"{CONVENTIONS}: Typical status properties (meta/v1 Condition)",
    hint="use the fields of meta/v1 Condition",
)
def condition_fields(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """A condition has the standard fields."""
    place = kind.find("status.conditions")
    if place is None or not isinstance(place.target.type, ListOf):
        return
    items = kind.find("status.conditions[]")
    body = struct_of(items.target) if items is not None else None
    if body is not None:
        missing = sorted(_CONDITION - {f.wire_name for f in body.fields})
        if missing:
            yield place, f"conditions lack the standard field{'s' * (len(missing) > 1)} {', '.join(missing)}"


@place_rule(
    "L308 no-phase",
    why="A phase is a state machine in one word: nobody can add a state without breaking somebody.",
    source=f"{CONVENTIONS}: Typical status properties (phase is deprecated)",
    hint="use conditions",
)
def no_phase(place: Place, kind: LintedKind) -> Iterator[str]:
    """No phase in a status, nor a state of the whole."""
    if place.path == "status.state" or (place.in_status and re.search(r"(^p|P)hase$", place.name)):
        yield f'"{place.path}" is a state machine in one word'


@kind_rule(
    "L309 observed-generation",
    severity=Severity.NOTE,
    why="Without it nobody can tell whether a status speaks of the spec as it is now.",
    source=f"{CONVENTIONS}: Typical status properties",
    hint="add status.observedGeneration, an int64, or observedGeneration in each condition",
)
def observed_generation(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """A status says of which generation it is."""
    status = kind.find("status")
    if (
        status is None
        or not kind.is_stored
        or kind.find("spec") is None
        or isinstance(status.target.type, Ref)
    ):
        return
    own = kind.find("status.observedGeneration")
    if own is None and not any(place.in_status and _has_generation(place) for place in kind.places):
        yield status, "status has no observedGeneration"
    elif own is not None and not (isinstance(own.target.type, Scalar) and own.target.type.format == "int64"):
        yield own, "status.observedGeneration is not an int64"


def _has_generation(place: Place) -> bool:
    """Whether a struct has it: conditions of meta/v1 are not entered, but seen."""
    body = struct_of(place.target)
    return body is not None and any(f.wire_name == "observedGeneration" for f in body.fields)


@kind_rule(
    "L310 column-path",
    profiles=CRD,
    why="A column whose path leads nowhere is always empty.",
    source=f"{CRD_DOCS}: Additional printer columns",
    hint="correct the path",
)
def column_path(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """Printer columns lead to a field."""
    for column in kind.resource.printer_columns:
        if column.json_path and _resolve(kind, column.json_path) is None:
            yield None, f'column "{column.name}": {column.json_path} leads to no field of the schema'


@kind_rule(
    "L311 column-type",
    profiles=CRD,
    why="A value of another type than its column's is shown as nothing.",
    source=f"{CRD_DOCS}: Additional printer columns",
    hint="give the column the type of its field",
)
def column_type(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """Printer columns have the type of their field."""
    for column in kind.resource.printer_columns:
        place = _resolve(kind, column.json_path) if column.json_path else None
        node = place.target.type if isinstance(place, Place) else None
        wanted = _COLUMN_TYPES.get(column.type)
        if wanted and isinstance(node, Scalar) and node.primitive not in wanted:
            yield (
                place if isinstance(place, Place) else None,
                (
                    f'column "{column.name}" is of type {column.type}, its field of type {node.primitive.value}'
                ),
            )


@kind_rule(
    "L312 age-column",
    severity=Severity.NOTE,
    profiles=CRD,
    why="Declaring columns takes the default Age column away; users look for it.",
    source=f"{CRD_DOCS}: Additional printer columns",
    hint="add a column Age of type date with the path .metadata.creationTimestamp",
)
def age_column(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """Declared columns include the age."""
    columns = kind.resource.printer_columns
    if columns and not any(c.json_path == ".metadata.creationTimestamp" for c in columns):
        yield None, "the printer columns do not show the age"


@kind_rule(
    "L313 selectable-fields",
    severity=Severity.ERROR,
    profiles=CRD,
    why="A selectable field must lead to a string, integer or boolean of the schema, or the CRD is refused.",
    source=f"{CRD_DOCS}: Field selectors",
    hint="correct the path",
)
def selectable_fields(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """Selectable fields lead to scalars."""
    for path in kind.resource.selectable_fields:
        place = _resolve(kind, path)
        if place is None:
            yield None, f"selectable field {path} leads to no field of the schema"
        elif isinstance(place, Place) and not isinstance(place.target.type, Scalar):
            yield place, f"selectable field {path} is not a string, integer or boolean"


@kind_rule(
    "L314 scale-paths",
    severity=Severity.ERROR,
    why="The scale subresource reads and writes these paths.",
    source=f"{CRD_DOCS}: Scale subresource",
    hint="point the replica paths at integers, the selector path at a string",
)
def scale_paths(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """The paths of scale lead to fields of the right type."""
    for sub in kind.resource.subresources:
        wanted = (
            (sub.spec_replicas_path, Primitive.INTEGER),
            (sub.status_replicas_path, Primitive.INTEGER),
            (sub.label_selector_path, Primitive.STRING),
        )
        for path, primitive in wanted if sub.name == "scale" else ():
            place = _resolve(kind, path) if path else Place
            if place is None:
                yield None, f"scale path {path} leads to no field of the schema"
            elif isinstance(place, Place):
                node = place.target.type
                if isinstance(node, Scalar) and node.primitive is not primitive:
                    yield (
                        place,
                        f"scale path {path} leads to a {node.primitive.value}, not to a {primitive.value}",
                    )


@kind_rule(
    "L315 scale-missing",
    severity=Severity.NOTE,
    profiles=CRD,
    why="With the subresource `kubectl scale` and autoscalers work on the kind.",
    source=f"{CRD_DOCS}: Scale subresource",
    hint="enable the scale subresource",
)
def scale_missing(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """A kind with spec.replicas has a scale subresource."""
    place = kind.find("spec.replicas")
    if place is not None and not any(s.name == "scale" for s in kind.resource.subresources):
        yield place, "spec.replicas stands without a scale subresource"


@place_rule(
    "L316 rule-message",
    profiles=CRD,
    why="Without a message users are shown the rule's source.",
    source=f"{CRD_DOCS}: Validation rules",
    hint="add message or messageExpression",
)
def rule_message(place: Place, kind: LintedKind) -> Iterator[str]:
    """Every CEL rule has a message."""
    for rule in place.value.constraints.rules:
        if not rule.message and not rule.message_expression:
            yield f'rule "{_short(rule.rule)}" has no message'


@place_rule(
    "L317 rule-wording",
    severity=Severity.NOTE,
    profiles=CRD,
    why="Messages stand behind a field path and a colon; they say what must hold, in the words of the API.",
    source=f"{CONVENTIONS}: Validation (messages)",
    hint="say what must be, beginning in lower case, without a full stop at the end",
)
def rule_wording(place: Place, kind: LintedKind) -> Iterator[str]:
    """Messages of rules are worded as field errors are."""
    for rule in place.value.constraints.rules:
        text = rule.message.strip()
        if text.endswith(".") or "\n" in text:
            yield f'message "{_short(text)}" ends in a full stop or has several lines'


@place_rule(
    "L318 rule-metadata",
    profiles=CRD,
    why="Of metadata only name and generateName may be read in rules; the others are not in the schema.",
    source=f"{CRD_DOCS}: Validation rules",
    hint="leave other metadata to an admission policy",
)
def rule_metadata(place: Place, kind: LintedKind) -> Iterator[str]:
    """Rules read no metadata but the names."""
    for rule in place.value.constraints.rules:
        for name in re.findall(r"\bself\.metadata\.(\w+)", rule.rule):
            if name not in ("name", "generateName"):
                yield f'rule "{_short(rule.rule)}" reads metadata.{name}'


@kind_rule(
    "L319 spec-required",
    severity=Severity.NOTE,
    profiles=CRD,
    why="Where spec is optional, an object without one passes whatever spec itself requires.",
    source=f"{CONVENTIONS}: Spec and status",
    hint="add spec to the required fields of the kind",
)
def spec_required(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """A spec that requires something is itself required."""
    spec = kind.find("spec")
    body = struct_of(spec.target) if spec is not None else None
    if spec is not None and body is not None and not spec.required and any(f.required for f in body.fields):
        yield spec, "spec requires fields, but is itself optional"


@kind_rule(
    "L320 object-form",
    severity=Severity.ERROR,
    profiles=NATIVE,
    why="Every client reads apiVersion, kind and metadata before anything else.",
    source=f"{CONVENTIONS}: Objects",
    hint="declare apiVersion, kind and metadata (meta/v1 ObjectMeta)",
)
def object_form(kind: LintedKind) -> Iterator[tuple[Place | None, str]]:
    """A kind has apiVersion, kind and metadata."""
    missing = [name for name in ("apiVersion", "kind", "metadata") if kind.find(name) is None]
    if missing:
        yield None, f"kind {kind.resource.kind} has no {', no '.join(missing)}"


def _resolve(kind: LintedKind, path: str) -> Place | Struct | None:
    """What a column's path leads to: a place; the struct itself for metadata, which is not in the schema; or
    None. Paths with filters are not judged."""
    if "?(" in path or ".." in path:
        return Struct(())
    at, current = 0, ""
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        name = step[1] if step[1] is not None else step[2]
        if name is None:
            current = f"{current}[]"
        elif kind.find(f"{current}.{name}".lstrip(".")) is not None:
            current = f"{current}.{name}".lstrip(".")
        elif current == "metadata" or current.startswith("metadata.") or name == "metadata":
            return Struct(())
        elif kind.find(current + "{}") is not None:
            current = current + "{}"
        else:
            above = kind.find(current)
            body = struct_of(above.target) if above is not None else None
            loose = above is not None and (body is None or body.preserve_unknown or body.extra is not None)
            return Struct(()) if loose and not (above and isinstance(above.target.type, Scalar)) else None
    return kind.find(current)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
