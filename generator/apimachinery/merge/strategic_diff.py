"""Making strategic merge patches: from two documents, or from three as ``kubectl apply`` does.

Three-way: what the user deleted since last time (original → modified), and what the user wants otherwise than it is
now (current → modified, without deletions), merged into one patch. A conflict is a field that this patch and the
changes since last time (original → current) both set, to different values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apimachinery.merge.errors import MergeError, refuse_deep
from apimachinery.merge.patch_type import MERGE, REPLACE, PatchField, PatchType
from apimachinery.merge.schema import JsonObject
from apimachinery.merge.strategic import (
    DELETE_DIRECTIVE,
    DELETE_FROM,
    DIRECTIVE,
    RETAIN_KEYS_DIRECTIVE,
    SET_ORDER,
    MergeOptions,
    identity_by,
    item_form,
    merge_objects,
    sorted_by_place,
)
from apimachinery.merge.value import go_text, go_type, same


class PatchConflict(MergeError):
    """409: current and modified changed the same fields of original differently. ``paths`` names them."""

    def __init__(self, paths: tuple[str, ...], patch: JsonObject, changes: JsonObject) -> None:
        super().__init__(
            f"the patch conflicts with changes made from original to current: {', '.join(paths)}",
            code=409,
            reason="Conflict",
        )
        self.paths = paths
        self.patch = patch
        self.changes = changes


class PreconditionFailed(MergeError):
    """A patch would change what it must not. ``path`` names it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"precondition failed: the patch changes {path}", code=409, reason="Conflict")
        self.path = path


@dataclass(frozen=True, slots=True)
class _Options:
    order: bool = True
    changes: bool = True
    deletions: bool = True


@refuse_deep
def create_two_way(original: JsonObject, modified: JsonObject, type: PatchType) -> JsonObject:
    """The patch that makes ``modified`` of ``original``. Raises ``MergeError`` for lists that cannot be merged."""
    return _diff_objects(original, modified, type, _Options(), retain_keys=False)


@refuse_deep
def create_three_way(
    original: JsonObject,
    modified: JsonObject,
    current: JsonObject,
    type: PatchType,
    *,
    overwrite: bool = True,
    unchanged: tuple[tuple[str, ...], ...] = (),
) -> JsonObject:
    """The patch that brings ``current`` to ``modified``, given what was applied last (``original``).

    Without ``overwrite`` raises ``PatchConflict`` where others changed the same fields since. ``unchanged`` are
    paths of field names that the patch may not touch, else ``PreconditionFailed``.
    """
    delta = _diff_objects(current, modified, type, _Options(deletions=False), retain_keys=False)
    gone = _diff_objects(original, modified, type, _Options(changes=False), retain_keys=False)
    patch = merge_objects(gone, delta, type, MergeOptions(directives=False, drop_nulls=False))
    for path in unchanged:
        _require_unchanged(patch, path)
    if not overwrite:
        changes = _diff_objects(original, current, type, _Options(order=False), retain_keys=False)
        paths = tuple(_conflicts(patch, changes, type, ""))
        if paths:
            raise PatchConflict(paths, patch, changes)
    return patch


def _require_unchanged(patch: JsonObject, path: tuple[str, ...]) -> None:
    value: Any = patch
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return
        value = value[name]
    raise PreconditionFailed("." + ".".join(path))


def _diff_objects(
    original: JsonObject, modified: JsonObject, type: PatchType, options: _Options, *, retain_keys: bool
) -> JsonObject:
    patch: JsonObject = {}
    for key, value in modified.items():
        before = original.get(key)
        if key not in original or go_type(before) != go_type(value):
            if options.changes:
                patch[key] = value
        elif same(before, value):
            continue
        elif isinstance(value, dict) and isinstance(before, dict):
            field = type.field(key)
            if field.strategy == REPLACE:
                if options.changes:
                    patch[key] = value
            elif inner := _diff_objects(before, value, field.type, options, retain_keys=field.retain_keys):
                patch[key] = inner
        elif isinstance(value, list) and isinstance(before, list) and type.field(key).strategy == MERGE:
            _diff_lists(key, before, value, type.field(key), options, patch)
        elif options.changes:
            patch[key] = value
    if options.deletions:
        for key in original:
            if key not in modified:
                patch[key] = None
    retained = [key for key, value in modified.items() if value is not None] if retain_keys else []
    cleared = any(value is not None and key not in modified for key, value in original.items())
    if retained and (patch or cleared):
        patch[RETAIN_KEYS_DIRECTIVE] = sorted(retained)
    return patch


def _diff_lists(
    key: str,
    original: list[Any],
    modified: list[Any],
    field: PatchField,
    options: _Options,
    patch: JsonObject,
) -> None:
    """Puts into ``patch`` what makes the merging list ``modified`` of ``original``."""
    if not original:
        if modified and options.changes:
            patch[key] = modified
        return
    if item_form(original, modified) != "map[string]interface {}":
        _diff_scalars(key, original, modified, options, patch)
        return
    if not field.merge_key:
        raise MergeError("cannot merge lists without merge key for type struct")
    changes, gone = _diff_items(original, modified, field, options)
    items = changes + gone
    if items:
        patch[key] = items
    identify = identity_by(field.merge_key)
    moved = [identify(item) for item in original] != [identify(item) for item in modified]
    if options.order and ((options.changes and (items or moved)) or (options.deletions and items)):
        patch_order = [{field.merge_key: item[field.merge_key]} for item in modified]
        if patch_order:
            patch[f"{SET_ORDER}/{key}"] = patch_order


def _diff_items(
    original: list[Any], modified: list[Any], field: PatchField, options: _Options
) -> tuple[list[Any], list[Any]]:
    """The items that change or come, in the order of ``modified``, and the deletions of those that go."""
    identify = identity_by(field.merge_key)
    before = {identify(item): item for item in original[::-1]}
    after = {identify(item): place for place, item in enumerate(modified)}
    changes: list[Any] = []
    for item in modified:
        past = before.get(identify(item))
        if past is None:
            if options.changes:
                changes.append(item)
        elif inner := _diff_objects(past, item, field.type, options, retain_keys=field.retain_keys):
            changes.append({**inner, field.merge_key: item[field.merge_key]})
    gone: list[Any] = []
    if options.deletions:
        keys = [item[field.merge_key] for item in original if identify(item) not in after]
        gone = [{field.merge_key: key, DIRECTIVE: DELETE_DIRECTIVE} for key in sorted(keys, key=go_text)]
    return sorted_by_place(changes, after, identify, of_maps=True), gone


def _diff_scalars(
    key: str, original: list[Any], modified: list[Any], options: _Options, patch: JsonObject
) -> None:
    identify = identity_by("")
    before = {identify(item) for item in original}
    after = {identify(item) for item in modified}
    come = [item for item in modified if identify(item) not in before] if options.changes else []
    gone = (
        {identify(item): item for item in original if identify(item) not in after}
        if options.deletions
        else {}
    )
    if come:
        patch[key] = come
    if gone:
        patch[f"{DELETE_FROM}/{key}"] = sorted(gone.values(), key=go_text)
    moved = not same(original, modified)
    if options.order and modified and ((options.deletions and gone) or (options.changes and moved)):
        patch[f"{SET_ORDER}/{key}"] = modified


def _conflicts(left: Any, right: Any, type: PatchType, path: str) -> list[str]:
    """The paths at which two patches of one document say different things."""
    if isinstance(left, dict) and isinstance(right, dict):
        if left.get(DIRECTIVE) != right.get(DIRECTIVE):
            return [path or "."]
        out: list[str] = []
        for key, value in left.items():
            if key in (DIRECTIVE, RETAIN_KEYS_DIRECTIVE) or key not in right:
                continue
            if key.startswith((DELETE_FROM, SET_ORDER)):
                continue
            other = right[key]
            if isinstance(value, list) and isinstance(other, list):
                out += _list_conflicts(value, other, type.field(key), f"{path}.{key}")
            elif isinstance(value, dict) and isinstance(other, dict):
                field = type.field(key)
                if field.strategy != REPLACE:
                    out += _conflicts(value, other, field.type, f"{path}.{key}")
                elif not same(value, other):
                    out.append(f"{path}.{key}")
            elif not same(value, other):
                out.append(f"{path}.{key}")
        return out
    return [] if same(left, right) else [path or "."]


def _list_conflicts(left: list[Any], right: list[Any], field: PatchField, path: str) -> list[str]:
    if field.strategy == MERGE and (left or right):
        if item_form(left, right) != "map[string]interface {}":
            return []
        identify = identity_by(field.merge_key)
        others = {identify(item): item for item in right}
        out: list[str] = []
        for item in left:
            other = others.get(identify(item))
            if other is not None:
                where = f"{path}[{field.merge_key}={go_text(item[field.merge_key])}]"
                out += _conflicts(item, other, field.type, where)
        return out
    return [] if same(left, right) else [path]
