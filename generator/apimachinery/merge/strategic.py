"""Strategic merge patch: a merge patch that knows lists by their merge keys.

Rules. Objects merge, null deletes, scalars and plain lists replace; a list of patch strategy ``merge`` merges item by
item: items of a map list by their merge key, scalars as a set. Directives, in the patch:

- ``$patch: replace`` in an object: take it as it is; ``delete``: leave it empty. In an item of a merging list:
  ``delete`` removes the item of that key, ``replace`` makes the other items the whole list.
- ``$deleteFromPrimitiveList/x: […]`` removes scalars from the merging list ``x``.
- ``$setElementOrder/x: […]`` orders the merging list ``x``; items it does not name keep their places among them.
- ``$retainKeys: […]`` drops every other key of the object; the patch may set only what it names.

Order in a merged list: the patch's items in the patch's order; live ones keep theirs; where the two orders leave a
choice, a live item goes before a patched one only if it stood before it in the live list.
Source: KEP-635 (strategic merge patch), and kube-apiserver's answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from apimachinery.merge.errors import BadPatch, MergeError, refuse_deep
from apimachinery.merge.patch_type import MERGE, REPLACE, PatchField, PatchType
from apimachinery.merge.schema import JsonObject
from apimachinery.merge.value import go_text, go_type, json_form, same

DIRECTIVE: Final = "$patch"
DELETE_DIRECTIVE: Final = "delete"
RETAIN_KEYS_DIRECTIVE: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """``directives``: carry out those about lists (else keep them: the result is a patch again).
    ``drop_nulls``: leave out nulls that delete nothing."""

    directives: bool = True
    drop_nulls: bool = True


@refuse_deep
def apply(original: JsonObject, patch: Any, type: PatchType) -> JsonObject:
    """``original`` with ``patch`` applied; neither is changed. A patch of null changes nothing.

    Raises ``MergeError`` in kube-apiserver's words: 400 (``BadPatch``) for a malformed directive or no object, 422
    for lists in lists, 500 for a missing merge key or an unknown directive.
    """
    if patch is None:
        return original
    if not isinstance(patch, dict):
        raise BadPatch(
            f"json: cannot unmarshal {json_form(patch)} into Go value of type map[string]interface {{}}"
        )
    return merge_objects(original, patch, type, MergeOptions())


def merge_objects(
    original: JsonObject, patch: JsonObject, type: PatchType, options: MergeOptions
) -> JsonObject:
    """``patch`` merged into ``original``, which may be a patch itself where list directives are kept."""
    if DIRECTIVE in patch:
        return _directed(patch)
    original, patch = dict(original), dict(patch)
    _retain_keys(original, patch, options)
    _order_lists(original, patch, type, options)
    # Deletions first: what the same patch adds to a list stays.
    for name in sorted(patch, key=lambda name: not name.startswith(DELETE_FROM)):
        value = patch[name]
        deletes = name.startswith(DELETE_FROM)
        key = name
        if deletes:
            if not options.directives:
                original[name] = value
                continue
            key = _target(name, DELETE_FROM, "invalid patch format of primitive list")
        if value is None:
            original.pop(key, None)
            if options.drop_nulls:
                continue
        if key not in original or go_type(original[key]) != go_type(value):
            if not deletes:
                _set_clean(original, key, value, options)
        elif isinstance(value, dict):
            field = type.field(key)
            if field.strategy == REPLACE:
                original[key] = value
            else:
                original[key] = merge_objects(original[key], value, field.type, options)
        elif isinstance(value, list):
            original[key] = _merged_list(original[key], value, type.field(key), options, deletes=deletes)
        else:
            original[key] = value
    return original


def _directed(patch: JsonObject) -> JsonObject:
    directive = patch[DIRECTIVE]
    if directive == REPLACE:
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == DELETE_DIRECTIVE:
        return {}
    raise _unknown(directive, patch)


def _unknown(directive: Any, patch: JsonObject) -> MergeError:
    text = directive if isinstance(directive, str) else f"%!s({go_type(directive)}={go_text(directive)})"
    return MergeError(f"unknown patch type: {text} in map: {go_text(patch)}")


def _target(name: str, prefix: str, complaint: str) -> str:
    """The key a directive is about: ``x`` of ``$setElementOrder/x``."""
    start, slash, key = name.partition("/")
    if not slash or start != prefix:
        raise BadPatch(complaint)
    return key


def _set_clean(original: JsonObject, key: str, value: Any, options: MergeOptions) -> None:
    """Sets a value that has nothing to merge with, without the directives in it."""
    if options.drop_nulls:
        value = _without_nulls(value)
    keep, value = _without_directives(value)
    if keep:
        original[key] = value
    else:
        original.pop(key, None)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _without_directives(value: Any) -> tuple[bool, Any]:
    """Whether to keep a value, and the value without the objects in it that have a ``$patch``."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return False, None
        kept = {key: _without_directives(item) for key, item in value.items()}
        return True, {key: item for key, (keep, item) in kept.items() if keep}
    if isinstance(value, list):
        return True, [item for keep, item in map(_without_directives, value) if keep]
    return True, value


def _retain_keys(original: JsonObject, patch: JsonObject, options: MergeOptions) -> None:
    """Carries out ``$retainKeys`` and takes it from the patch."""
    if RETAIN_KEYS_DIRECTIVE not in patch:
        return
    names = patch.pop(RETAIN_KEYS_DIRECTIVE)
    if not options.directives:
        if not same(original.setdefault(RETAIN_KEYS_DIRECTIVE, names), names):
            raise MergeError(
                f"{go_text(original[RETAIN_KEYS_DIRECTIVE])} and {go_text(names)} are not deep equal: this may "
                "happen when calculating the 3-way diff patch"
            )
        return
    complaint = BadPatch("invalid patch format of retainKeys")
    if not isinstance(names, list):
        raise complaint
    retained = {name for name in names if isinstance(name, str)}
    for key, value in patch.items():
        if value is not None and key not in retained and not key.startswith((DELETE_FROM, SET_ORDER)):
            raise complaint
    for key in [key for key in original if key not in retained]:
        del original[key]


def _order_lists(original: JsonObject, patch: JsonObject, type: PatchType, options: MergeOptions) -> None:
    """Carries out ``$setElementOrder`` together with the lists it orders, and takes both from the patch."""
    for name in [name for name in patch if name.startswith(SET_ORDER)]:
        order = patch.pop(name)
        if not options.directives and not same(original.setdefault(name, order), order):
            raise BadPatch("invalid patch format of setElementOrder list")
        order = _as_list(order)
        key = _target(name, SET_ORDER, "invalid patch format of setElementOrder list")
        live = _as_list(original[key]) if key in original else None
        patched = _as_list(patch[key]) if key in patch else None
        field = type.field(key)
        _check_order(patched or [], order, field.merge_key)
        if live is None and patched is None:
            continue
        if patched is None:
            assert live is not None
            merged = live
        elif live is None:
            merged = _without_directives(patched)[1]
        else:
            merged = _merged_list(live, patched, field, options, deletes=False)
        of_maps = item_form(live or [], patched or []) == "map[string]interface {}"
        original[key] = _ordered(merged, order, live or [], field.merge_key, of_maps=of_maps)
        patch.pop(key, None)


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise MergeError(f"expected a []interface {{}}, but received a {go_type(value)}")
    return value


def _check_order(patched: list[Any], order: list[Any], merge_key: str) -> None:
    """Refuses a patch list whose items are not in ``order``, in that order."""
    if not order or not patched:
        return
    items = patched
    if merge_key:
        items = [item for item in patched if _as_object(item).get(DIRECTIVE) != DELETE_DIRECTIVE]
    identify = identity_by(merge_key)
    wanted = iter([identify(item) for item in order])
    for item in items:
        if isinstance(item, dict) and DIRECTIVE in item:
            continue
        key = identify(item)
        if not any(key == other for other in wanted):
            raise MergeError(
                f"The order in patch list:\n{go_text(patched)}\n doesn't match {SET_ORDER} list:\n{go_text(order)}\n"
            )


def _as_object(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise MergeError(f"expected a map[string]interface {{}}, but received a {go_type(value)}")
    return value


def identity_by(merge_key: str) -> Callable[[Any], Any]:
    """What makes two items of a list the same: the value of their merge key, or the scalar itself. What is
    returned raises ``MergeError`` for an item without the key."""
    if not merge_key:
        return _hashable

    def identify(item: Any) -> Any:
        if merge_key not in _as_object(item):
            raise MergeError(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")
        return _hashable(item[merge_key])

    return identify


def _hashable(value: Any) -> Any:
    if isinstance(value, dict | list):
        # kube-apiserver crashes on it and closes the connection.
        raise BadPatch(f"a merge key must be a scalar, not {go_text(value)}")
    return (type(value) is bool, value)


def item_form(*lists: list[Any]) -> str:
    """The one Go type of all items. Raises ``MergeError`` where there are several, or lists."""
    forms = {go_type(item) for items in lists for item in items}
    if "[]interface {}" in forms:
        raise MergeError(
            "the server rejected our request due to an error in our request", code=422, reason="Invalid"
        )
    if len(forms) > 1:
        raise MergeError(f"list element types are not identical: {go_text(list(lists))}")
    if not forms:
        raise MergeError("no elements in any of the given slices")
    return forms.pop()


def _merged_list(
    live: list[Any], patch: list[Any], field: PatchField, options: MergeOptions, *, deletes: bool
) -> list[Any]:
    """A list with a patch list laid over it; ``deletes`` says that the patch names what to take out."""
    if field.strategy != MERGE and not deletes:
        return patch
    if not live and not patch:
        return live
    if item_form(live, patch) != "map[string]interface {}":
        if deletes and options.directives:
            gone = set(map(_hashable, patch))
            return [item for item in live if _hashable(item) not in gone]
        merged = list({_hashable(item): item for item in [*live, *patch]}.values())
        return _ordered(merged, patch, live, "", of_maps=False)
    if not field.merge_key:
        raise MergeError("cannot merge lists without merge key for type struct")
    live, patch = _without_special(live, patch, field.merge_key)
    merged = _merged_items(live, patch, field, options)
    return _ordered(merged, patch, live, field.merge_key, of_maps=True)


def _without_special(live: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The two lists once the patch's items with a ``$patch`` are carried out."""
    plain: list[Any] = []
    replaces = False
    gone: set[Any] = set()
    for item in patch:
        if DIRECTIVE not in item:
            plain.append(item)
        elif item[DIRECTIVE] == DELETE_DIRECTIVE:
            gone.add(identity_by(merge_key)(item))
        elif item[DIRECTIVE] == REPLACE:
            replaces = True
        elif item[DIRECTIVE] == MERGE:
            raise MergeError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown(item[DIRECTIVE], item)
    if replaces:
        return plain, []
    if gone:
        live = [item for item in live if merge_key not in item or _hashable(item[merge_key]) not in gone]
    return live, plain


def _merged_items(live: list[Any], patch: list[Any], field: PatchField, options: MergeOptions) -> list[Any]:
    identify = identity_by(field.merge_key)
    merged = list(live)
    places: dict[Any, int] = {}
    for place, item in enumerate(live):
        if field.merge_key in item:
            places.setdefault(identify(item), place)
    for item in patch:
        key = identify(item)
        if key in places:
            merged[places[key]] = merge_objects(merged[places[key]], item, field.type, options)
        else:
            places[key] = len(merged)
            merged.append(item)
    return merged


def _ordered(
    merged: list[Any], patch: list[Any], live: list[Any], merge_key: str, *, of_maps: bool
) -> list[Any]:
    """The merged items in order: those ``patch`` names as it has them, the others as ``live`` has them, each of
    these before the first of those that followed it in ``live``."""
    identify = identity_by(merge_key)
    patch_place = _places(patch, identify)
    live_place = _places(live, identify)
    named: list[Any] = []
    others: list[Any] = []
    for item in merged:
        (named if identify(item) in patch_place else others).append(item)
    named = sorted_by_place(named, patch_place, identify, of_maps=of_maps)
    others = sorted_by_place(others, live_place, identify, of_maps=of_maps)
    out: list[Any] = []
    at = 0
    for item in named:
        place = live_place.get(identify(item))
        while place is not None and at < len(others):
            other = live_place.get(identify(others[at]))
            if other is None or other >= place:
                break
            out.append(others[at])
            at += 1
        out.append(item)
    return out + others[at:]


def _places(items: list[Any], identify: Callable[[Any], Any]) -> dict[Any, int]:
    out: dict[Any, int] = {}
    for place, item in enumerate(items):
        out.setdefault(identify(item), place)
    return out


def sorted_by_place(
    items: list[Any], places: dict[Any, int], identify: Callable[[Any], Any], *, of_maps: bool
) -> list[Any]:
    """``items`` by their places; deletions of a patch come last."""
    plain, deletions = items, []
    if of_maps:
        plain = [item for item in items if item.get(DIRECTIVE) != DELETE_DIRECTIVE]
        deletions = [item for item in items if item.get(DIRECTIVE) == DELETE_DIRECTIVE]
    return sorted(plain, key=lambda item: places.get(identify(item), -1)) + deletions
