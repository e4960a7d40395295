"""Words that string fields of the built-in kinds take, and their defaults, by definition and field.

Kubernetes' published definitions hold no enums; the checks declared for a type (``one_of``
without a condition) say the same, so that a word is written down once. What no check says is in ``published.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubewright.ir.api import Api
from kubewright.ir.rules import CheckRule
from kubewright.ir.types import Definition, Json, Ref, Struct


@dataclass(frozen=True, slots=True)
class FieldWords:
    """Definition → field → its words, and its default; sorted."""

    fields: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    defaults: dict[str, dict[str, Json]] = field(default_factory=dict)


def words_of(api: Api) -> FieldWords:
    """What the declared checks of an API say."""
    checks = {(c.group, c.version, c.type_name): c.checks for c in api.fact("validation") or ()}
    definitions = {definition.name: definition for definition in api.definitions}
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for definition in api.definitions:
        key = (definition.group, definition.version, definition.name.rpartition(".")[2])
        for keys, words in _words(checks.get(key, ())):
            holder = _holder(definition, keys[:-1], definitions)
            if holder is not None:
                found.setdefault(holder.name, {})[keys[-1]] = words
    defaults: dict[str, dict[str, Json]] = {}
    for entry in api.fact("published") or ():
        if entry.definition not in definitions:
            continue
        if entry.words is not None:
            found.setdefault(entry.definition, {})[entry.name] = entry.words
        if entry.default:
            defaults.setdefault(entry.definition, {})[entry.name] = entry.default[0]
    return FieldWords(_sorted(found), _sorted(defaults))


def _sorted(table: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: dict(sorted(fields.items())) for name, fields in sorted(table.items())}


def _holder(
    definition: Definition, keys: tuple[str, ...], definitions: Mapping[str, Definition]
) -> Definition | None:
    """The definition that a path of fields leads to."""
    for key in keys:
        body = definition.value.type
        fields = body.fields if isinstance(body, Struct) else ()
        kind = next((f.value.type for f in fields if f.wire_name == key), None)
        if not isinstance(kind, Ref) or kind.name not in definitions:
            return None
        definition = definitions[kind.name]
    return definition


_ONE_OF = ("must_be_one_of", "one_of", "scheduling.scheduling.preemption", "apps.workloads.one_type")


def _words(checks: tuple[CheckRule, ...]) -> Iterable[tuple[tuple[str, ...], tuple[str, ...]]]:
    for check in checks:
        keys = check.target.keys
        values = dict(check.arguments).get("values")
        if check.check in _ONE_OF and keys and not check.target.absolute and not check.when:
            if isinstance(values, list | tuple) and all(isinstance(value, str) for value in values):
                yield keys, tuple(sorted(values))
