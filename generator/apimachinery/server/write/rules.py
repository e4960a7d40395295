"""All that is wrong with an object: metadata, schema, the kind's own rules, CEL rules, in kube-apiserver's order."""

from __future__ import annotations

from collections.abc import Callable

from apimachinery.crd.objects import ObjectValidation, check_values
from apimachinery.kinds.hooks import Json
from apimachinery.meta.field_errors import FieldError, invalid
from apimachinery.meta.release import current_release, rules_of
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.target import WriteTarget


def check_whole(
    target: WriteTarget, obj: Json, old: Json | None, metadata_faults: list[FieldError], name: str
) -> None:
    """Checks an object that is about to be stored, and collects the warnings about it. Raises ApiError 400, 422."""
    served = target.served
    served.family.check_kind(served, obj, name)

    def misfit() -> None:
        if old is not None:
            _disown(target, obj, old)

    faults = check_object(
        served,
        target.as_sent(obj),
        old,
        metadata_faults,
        target.warnings,
        subresource=target.subresource,
        misfit=misfit,
    )
    if faults:
        raise invalid(served.kind, served.said_group, name, faults)
    # A status update warns of nothing; one that creates the object warns as any creation does.
    if served.hooks.warnings is not None and (old is None or not target.subresource):
        target.warnings.extend(served.hooks.warnings(obj, old))


def _disown(target: WriteTarget, obj: Json, old: Json) -> None:
    """Takes the managedFields off an object that does not fit its schema, or whose stored form does not: nobody can
    tell who owns what of it. Raises MergeError where the write is an apply."""
    ownership = target.served.ownership(target.subresource)
    if target.applying:
        ownership.check_live(old)
    elif not (ownership.fits(obj) and ownership.fits(old)):
        obj["metadata"].pop("managedFields", None)


def check_object(
    served: Served,
    obj: Json,
    old: Json | None,
    metadata_faults: list[FieldError],
    warnings: list[str],
    *,
    subresource: str = "",
    misfit: Callable[[], None] | None = None,
) -> list[FieldError]:
    """Every fault of an object; ``metadata_faults`` are those of its metadata. Adds to ``warnings``.

    ``subresource`` is the one that is written: a built-in kind asks other things of its status than of the rest.
    ``misfit`` as in ``check_values``.
    """
    if served.release == current_release():  # saves every write of a usual server 3 µs
        return _check_object(served, obj, old, metadata_faults, warnings, subresource, misfit)
    with rules_of(served.release):
        return _check_object(served, obj, old, metadata_faults, warnings, subresource, misfit)


def _check_object(
    served: Served,
    obj: Json,
    old: Json | None,
    metadata_faults: list[FieldError],
    warnings: list[str],
    subresource: str,
    misfit: Callable[[], None] | None,
) -> list[FieldError]:
    compiled, hooks = served.compiled, served.hooks
    status = subresource == "status"
    found = ObjectValidation(metadata_faults, warnings)

    def own(obj: Json, old: Json | None) -> list[FieldError]:
        if old is not None:
            asks = compiled.subresource_validators.get(subresource)
            if asks is not None:
                return list(asks(obj, old))
            if status:
                return hooks.validate_status(obj, old) if hooks.validate_status is not None and fits() else []
        asked = (compiled.validator, hooks.validate if fits() else None)
        faults = [fault for ask in asked if ask is not None for fault in ask(obj, old)]
        return [*own(obj, None), *faults] if old is not None and hooks.asks_twice else faults

    def fits() -> bool:
        # As CEL rules, hooks of people who rely on their schema are not asked about what has another shape.
        return compiled.stated is None or not found.blocks_rules

    if compiled.stated is None:
        faults = [*metadata_faults, *own(obj, old)]
        return [compiled.printed(fault) for fault in faults] if faults and compiled.printed else faults
    check_values(
        found,
        obj,
        old,
        compiled.stated,
        rules=compiled.rules,
        scale=compiled.scale,
        status_only=status,
        own=own,
        misfit=misfit,
    )
    return found.faults
