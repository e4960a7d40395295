"""Checks of a kind's hooks at one version, asked of objects that are written at another: a check holds for the kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from apimachinery.kinds.hooks import Hooks, Json
from apimachinery.meta.field_errors import FieldError
from apimachinery.wire.json import decode, encode

Check: TypeAlias = Callable[[Json, Any], list[FieldError]]


@dataclass(frozen=True, slots=True)
class ConvertedHooks:
    """The hooks of another version of a kind, and the conversions that bring an object there, each of which may change
    what it gets."""

    hooks: Hooks
    conversions: tuple[Callable[[Json], Json], ...]

    def of(self, obj: Json) -> Json:
        """A copy of the object at this version."""
        converted: Json = decode(encode(obj))
        for conversion in self.conversions:
            converted = conversion(converted)
        return converted


Asked: TypeAlias = tuple[ConvertedHooks, Check]


def with_checks_of(own: Hooks, others: Sequence[ConvertedHooks]) -> Hooks:
    """The hooks of a version which also ask what those of other versions check. Equal errors are reported once."""
    checks: list[Asked] = [(each, check) for each in others if (check := each.hooks.validate)]
    of_status: list[Asked] = [(each, ask) for each in others if (ask := each.hooks.validate_status)]
    return replace(
        own,
        validate=_joined(own.validate, checks) if checks else own.validate,
        validate_status=_joined(own.validate_status, of_status) if of_status else own.validate_status,
    )


def _joined(own: Check | None, others: Sequence[Asked]) -> Check:
    def check(obj: Json, old: Json | None) -> list[FieldError]:
        found = [] if own is None else [*own(obj, old)]
        for other, ask in others:
            more = ask(other.of(obj), None if old is None else other.of(old))
            found += [each for each in more if each not in found]
        return found

    return check
