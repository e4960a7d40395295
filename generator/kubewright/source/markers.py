"""The ``x-kubernetes-*`` markers of one schema, read into IR facts.

Effective rules as in ``ir/merge.py``: a list marked ``x-kubernetes-patch-strategy: merge`` without a list type
is a map list keyed by its patch merge key, or a set where it has none. A marker with an unknown value is a
diagnostic and counts as absent. Markers without a node in the IR stay in ``extensions``.
"""

from __future__ import annotations

from kubewright.diagnostics import Diagnostics
from kubewright.ir.merge import DEFAULT_MERGE, ListType, MapType, Merge, PatchStrategy
from kubewright.ir.types import Json, Rule
from kubewright.location import Document

LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
MAP_TYPE = "x-kubernetes-map-type"
PATCH_STRATEGY = "x-kubernetes-patch-strategy"
PATCH_MERGE_KEY = "x-kubernetes-patch-merge-key"
GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED_RESOURCE = "x-kubernetes-embedded-resource"
PRESERVE_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
VALIDATIONS = "x-kubernetes-validations"

MERGE_MARKERS = frozenset({LIST_TYPE, LIST_MAP_KEYS, MAP_TYPE, PATCH_STRATEGY, PATCH_MERGE_KEY})
CONSUMED = MERGE_MARKERS | {
    GROUP_VERSION_KIND,
    INT_OR_STRING,
    EMBEDDED_RESOURCE,
    VALIDATIONS,
}
"""Markers that have a node of their own; every other ``x-*`` key goes into ``extensions``."""

_RULE_KEYS = {
    "rule": "rule",
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}


def read_merge(schema: Json, pointer: str, document: Document, diagnostics: Diagnostics) -> Merge:
    """The merge rule that ``schema`` declares. Gives ``DEFAULT_MERGE`` where no marker stands."""
    if not any(marker in schema for marker in MERGE_MARKERS):
        return DEFAULT_MERGE

    def choose(marker: str, words: dict[str, ListType] | dict[str, MapType]) -> ListType | MapType | None:
        if marker not in schema:
            return None
        word = schema[marker]
        if isinstance(word, str) and word in words:
            return words[word]
        diagnostics.error(
            "K103",
            f"{marker} has the unknown value {word!r}",
            document.at(f"{pointer}/{marker}"),
            f"one of: {', '.join(words)}",
        )
        return None

    list_type = choose(LIST_TYPE, {item.value: item for item in ListType})
    map_type = choose(MAP_TYPE, {item.value: item for item in MapType})
    keys = _read_list_map_keys(schema, pointer, document, diagnostics)
    strategy = _read_patch_strategy(schema, pointer, document, diagnostics)
    merge_key = schema.get(PATCH_MERGE_KEY, "")
    if not isinstance(merge_key, str):
        diagnostics.error(
            "K103",
            f"{PATCH_MERGE_KEY} must be the name of a field, not {merge_key!r}",
            document.at(f"{pointer}/{PATCH_MERGE_KEY}"),
        )
        merge_key = ""
    effective = list_type if isinstance(list_type, ListType) else None
    if effective is None and PatchStrategy.MERGE in strategy and _is_list(schema.get("type")):
        effective = ListType.MAP if merge_key else ListType.SET
        keys = (merge_key,) if merge_key else ()
    return Merge(
        list_type=effective or ListType.ATOMIC,
        list_map_keys=keys if effective is ListType.MAP else (),
        map_type=map_type if isinstance(map_type, MapType) else MapType.GRANULAR,
        patch_strategy=strategy,
        patch_merge_key=merge_key,
        list_type_declared=list_type is not None,
        map_type_declared=map_type is not None,
    )


def _is_list(kind: Json) -> bool:
    """Whether ``type`` says list; definitions of a release say ``[array, "null"]`` of an optional one."""
    return "array" in kind if isinstance(kind, list) else kind == "array"


def _read_list_map_keys(
    schema: Json, pointer: str, document: Document, diagnostics: Diagnostics
) -> tuple[str, ...]:
    place = f"{pointer}/{LIST_MAP_KEYS}"
    keys = schema.get(LIST_MAP_KEYS, [])
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        diagnostics.error("K103", f"{LIST_MAP_KEYS} must be a list of field names", document.at(place))
        return ()
    if keys and schema.get(LIST_TYPE) != "map":
        diagnostics.error(
            "K105",
            f"{LIST_MAP_KEYS} goes with {LIST_TYPE} map, not {schema.get(LIST_TYPE, 'unset')!r}",
            document.at(place),
            f"write `{LIST_TYPE}: map`, or take the keys away",
        )
    if not keys and schema.get(LIST_TYPE) == "map":
        diagnostics.error(
            "K105",
            f"{LIST_TYPE} is map, but {LIST_MAP_KEYS} names no field",
            document.at(f"{pointer}/{LIST_TYPE}"),
            f"add {LIST_MAP_KEYS} with the fields that tell items apart",
        )
    if len(set(keys)) != len(keys):
        diagnostics.error("K105", f"{LIST_MAP_KEYS} names a field twice", document.at(place))
    return tuple(dict.fromkeys(keys))


def _read_patch_strategy(
    schema: Json, pointer: str, document: Document, diagnostics: Diagnostics
) -> tuple[PatchStrategy, ...]:
    text = schema.get(PATCH_STRATEGY, "")
    words = {item.value: item for item in PatchStrategy}
    parts = [part.strip() for part in text.split(",")] if isinstance(text, str) and text else []
    unknown = [part for part in parts if part not in words]
    if not isinstance(text, str) or unknown:
        diagnostics.error(
            "K103",
            f"{PATCH_STRATEGY} has the unknown value {unknown[0] if unknown else text!r}",
            document.at(f"{pointer}/{PATCH_STRATEGY}"),
            f"a comma-separated list of: {', '.join(words)}",
        )
    return tuple(words[part] for part in parts if part in words)


def read_rules(schema: Json, pointer: str, document: Document, diagnostics: Diagnostics) -> tuple[Rule, ...]:
    """The CEL rules of ``schema``. An entry that is not a rule is a diagnostic and left out."""
    entries = schema.get(VALIDATIONS)
    if entries is None:
        return ()
    if not isinstance(entries, list):
        diagnostics.error(
            "K106", f"{VALIDATIONS} must be a list of rules", document.at(f"{pointer}/{VALIDATIONS}")
        )
        return ()
    rules = []
    for index, entry in enumerate(entries):
        place = f"{pointer}/{VALIDATIONS}/{index}"
        if not isinstance(entry, dict) or not isinstance(entry.get("rule"), str):
            diagnostics.error("K106", "a validation must be an object with a `rule`", document.at(place))
            continue
        known = {name: entry[key] for key, name in _RULE_KEYS.items() if entry.get(key) is not None}
        wrong = [
            key
            for key, name in _RULE_KEYS.items()
            if name in known and not isinstance(known[name], bool if key == "optionalOldSelf" else str)
        ]
        if wrong:
            diagnostics.error(
                "K106", f"`{wrong[0]}` of a validation has the wrong type", document.at(f"{place}/{wrong[0]}")
            )
            continue
        for key in sorted(entry.keys() - _RULE_KEYS.keys()):
            diagnostics.warning(
                "K106", f"a validation has no field {key!r}", document.at(f"{place}/{key}"), "it is left out"
            )
        rules.append(Rule(**known))
    return tuple(rules)


def read_kinds(
    schema: Json, pointer: str, document: Document, diagnostics: Diagnostics
) -> tuple[tuple[str, str, str], ...]:
    """The GVKs a definition is registered for, in the marker's order (a single object counts as a list)."""
    marker = schema.get(GROUP_VERSION_KIND)
    if marker is None:
        return ()
    kinds = []
    for index, entry in enumerate(marker if isinstance(marker, list) else [marker]):
        parts = [entry.get(key) for key in ("group", "version", "kind")] if isinstance(entry, dict) else []
        if len(parts) == 3 and all(isinstance(part, str) for part in parts) and parts[1] and parts[2]:
            kinds.append((str(parts[0]), str(parts[1]), str(parts[2])))
        else:
            diagnostics.error(
                "K107",
                f"{GROUP_VERSION_KIND} entry must hold group, version and kind",
                document.at(f"{pointer}/{GROUP_VERSION_KIND}/{index}"),
            )
    return tuple(dict.fromkeys(kinds))
