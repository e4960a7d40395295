"""Conversion between the versions of a kind: hub and spokes, kept values, conversion reviews.

Theory. One version of a kind is the hub; every other is a spoke, converted to the hub and back by rules that state
one step each. A rule may have no place for a value. ``lossless`` makes any such pair of rules lossless: after a
conversion it converts back, compares with the original, and writes what the way back would not restore into an
annotation: where, what was there, and what the way back gives instead. On the way back a value is restored only
where the object still says what the rules gave; whatever a client changed in between wins. Lists are compared item
by item where they have the same length, else as a whole.

A ``Converter`` holds the functions of an API, finds the way for a pair of versions, and answers ConversionReviews.
Source of the review's form: apiextensions.k8s.io/v1 ConversionReview.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.kinds.fields import copied
from apimachinery.meta.json import Json as Json

Convert = Callable[[Json], Json]
"""Takes an object of one version and gives that of another; the argument stays as it is."""
Table = Mapping[tuple[str, str, str], Convert]
"""(kind, from apiVersion, to apiVersion) → function: what generated ``conversion.py`` files call CONVERSIONS."""

KEPT = "conversion.kubewright.dev/kept"
"""The annotation of kept values: apiVersion they belong to → list of ``[pointer, what was there, what the rules
give]``, each of the two in a list of its own that is empty where nothing is there."""

_MAX_KEPT_BYTES = 128 * 1024


class ConversionError(Exception):
    """An object cannot be converted. ``str()`` says why, as a ConversionReview's message."""


def lossless(forward: Convert, backward: Convert, source: str, target: str) -> Convert:
    """``forward`` (from apiVersion ``source`` to ``target``), keeping what ``backward`` would not bring back.

    The function raises ``ConversionError`` where more would have to be kept than an annotation holds.
    """

    def convert(obj: Json) -> Json:
        new = forward(obj)
        restore(new, target)
        _keep(new, source, _differences(_plain(backward(new)), _plain(obj), ""))
        return new

    return convert


def chained(first: Convert, second: Convert) -> Convert:
    """One conversion after another: from a spoke over the hub to another spoke."""

    def convert(obj: Json) -> Json:
        return second(first(obj))

    return convert


@dataclass(frozen=True, slots=True)
class Spoke:
    """A version of a kind that is converted through the hub: its apiVersion and the functions there and back.
    ``hub_kind`` is what the hub calls the kind where that is another name; with ``keep`` both ways are ``lossless``."""

    kind: str
    api_version: str
    to_hub: Convert
    to_spoke: Convert
    hub_kind: str = ""
    keep: bool = False


def through_hub(hub: str, *spokes: Spoke) -> Table:
    """The conversions between every ordered pair of versions of the kinds of ``spokes``: to the hub, from it, and
    from spoke to spoke over it."""
    table: dict[tuple[str, str, str], Convert] = {}
    ways: dict[str, list[tuple[Spoke, Convert, Convert]]] = {}
    for spoke in spokes:
        to_hub, to_spoke = spoke.to_hub, spoke.to_spoke
        if spoke.keep:
            to_hub, to_spoke = (
                lossless(spoke.to_hub, spoke.to_spoke, spoke.api_version, hub),
                lossless(spoke.to_spoke, spoke.to_hub, hub, spoke.api_version),
            )
        kind = spoke.hub_kind or spoke.kind
        table[spoke.kind, spoke.api_version, hub] = to_hub
        table[kind, hub, spoke.api_version] = to_spoke
        ways.setdefault(kind, []).append((spoke, to_hub, to_spoke))
    for several in ways.values():
        for one, to_hub, _ in several:
            for other, _, to_spoke in several:
                if one is not other:
                    table[one.kind, one.api_version, other.api_version] = chained(to_hub, to_spoke)
    return table


def begin(obj: Json, api_version: str, kind: str) -> Json:
    """A copy of ``obj`` that calls itself ``kind`` of ``api_version``: what every conversion begins with."""
    new: Json = copied(obj)
    new["apiVersion"] = api_version
    new["kind"] = kind
    return new


def restore(obj: Json, api_version: str) -> None:
    """Puts back the values kept for ``api_version``, where the object still says what the rules gave."""
    annotations = _annotations(obj)
    table = _kept(obj)
    entries = table.pop(api_version, None)
    if entries is None or annotations is None:
        return
    if table:
        annotations[KEPT] = _text(table)
    else:
        del annotations[KEPT]
        if not annotations:
            del obj["metadata"]["annotations"]
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str):
            _restore_one(obj, entry[0], entry[1], entry[2])


def _restore_one(obj: Json, pointer: str, was: Any, given: Any) -> None:
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    owner: Any = obj
    for key in way:
        if isinstance(owner, list):
            owner = owner[int(key)] if key.isdigit() and int(key) < len(owner) else None
        elif isinstance(owner, dict):
            owner = owner.get(key)
        if not isinstance(owner, dict | list):
            return
    if isinstance(owner, list):
        if last.isdigit() and int(last) < len(owner) and [owner[int(last)]] == given and was:
            owner[int(last)] = was[0]
        return
    if (last in owner) != bool(given) or (given and owner[last] != given[0]):
        return
    if was:
        owner[last] = was[0]
    else:
        owner.pop(last, None)


def _keep(obj: Json, api_version: str, entries: list[Any]) -> None:
    if not entries:
        return
    metadata = obj.setdefault("metadata", {})
    annotations = metadata.setdefault("annotations", {}) if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict):
        return
    text = _text({**_kept(obj), api_version: entries})
    if len(text) > _MAX_KEPT_BYTES:
        raise ConversionError(
            f"{len(text)} bytes would have to be kept in the annotation {KEPT}; {_MAX_KEPT_BYTES} is the limit"
        )
    annotations[KEPT] = text


def _text(table: Json) -> str:
    return json.dumps(table, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _annotations(obj: Json) -> Json | None:
    metadata = obj.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else None


def _kept(obj: Json) -> Json:
    """What the annotation says; nothing where it is missing or not ours."""
    text = (_annotations(obj) or {}).get(KEPT)
    if not isinstance(text, str):
        return {}
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _plain(obj: Json) -> Json:
    """``obj`` without what conversion itself writes: apiVersion, kind and the annotation."""
    plain = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    annotations = _annotations(obj)
    if annotations is not None and KEPT in annotations:
        metadata = dict(obj["metadata"])
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != KEPT}
        if not metadata["annotations"]:
            del metadata["annotations"]
        plain["metadata"] = metadata
    return plain


def _differences(given: Any, was: Any, pointer: str) -> list[Any]:
    """Where ``given`` (what the way back gives) is not ``was`` (the original)."""
    if isinstance(given, dict) and isinstance(was, dict):
        found = []
        for key in sorted(given.keys() | was.keys()):
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if key in given and key in was:
                found += _differences(given[key], was[key], place)
            else:
                found.append([place, [was[key]] if key in was else [], [given[key]] if key in given else []])
        return found
    if isinstance(given, list) and isinstance(was, list) and len(given) == len(was):
        return [
            difference
            for index, (left, right) in enumerate(zip(given, was, strict=True))
            for difference in _differences(left, right, f"{pointer}/{index}")
        ]
    return [] if type(given) is type(was) and given == was else [[pointer, [was], [given]]]


class Converter:
    """The conversions of an API. Immutable, safe to share between threads."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._table: dict[tuple[str, str, str], Convert] = {}
        for table in tables:
            self._table.update(table)

    def knows(self, kind: str, source: str, target: str) -> bool:
        """Whether there is a way from one apiVersion of ``kind`` to another."""
        return source == target or (kind, source, target) in self._table

    def convert(self, obj: Json, target: str) -> Json:
        """``obj`` as ``target`` (an apiVersion). Lists are converted item by item.

        Raises ``ConversionError`` where there is no way, or the object has no kind or apiVersion.
        """
        kind, source = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(source, str):
            raise ConversionError("an object to convert has a kind and an apiVersion")
        if source == target:
            return obj
        function = self._table.get((kind, source, target))
        if function is not None:
            return function(obj)
        if kind.endswith("List") and isinstance(obj.get("items"), list):
            return self._convert_list(obj, kind.removesuffix("List"), source, target)
        raise ConversionError(f"no conversion from {source} to {target} for {kind}")

    def _convert_list(self, obj: Json, kind: str, source: str, target: str) -> Json:
        items = []
        for item in obj["items"]:
            if not isinstance(item, dict):
                raise ConversionError("an item of the list is no object")
            named = "kind" in item
            new = self.convert({"kind": kind, "apiVersion": source, **item}, target)
            items.append(
                new
                if named
                else {key: value for key, value in new.items() if key not in ("kind", "apiVersion")}
            )
        return {**obj, "apiVersion": target, "items": items}

    def review(self, review: Any) -> Json:
        """The answer to a ConversionReview: every object converted, or ``Failure`` with the reason.

        Raises ``ConversionError`` where ``review`` is not a request of a ConversionReview at all; what is wrong with
        an object is said in the answer.
        """
        request = review.get("request") if isinstance(review, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
            raise ConversionError("a ConversionReview has a request with a uid")
        response: Json = {"uid": request["uid"]}
        try:
            response["convertedObjects"] = self._converted(request)
            response["result"] = {"status": "Success"}
        except ConversionError as problem:
            response["result"] = {"status": "Failure", "message": str(problem)}
        return {
            "apiVersion": review.get("apiVersion", "apiextensions.k8s.io/v1"),
            "kind": "ConversionReview",
            "response": response,
        }

    def _converted(self, request: Json) -> list[Json]:
        target, objects = request.get("desiredAPIVersion"), request.get("objects")
        if not isinstance(target, str) or not isinstance(objects, list):
            raise ConversionError("the request has a desiredAPIVersion and objects")
        converted = []
        for index, obj in enumerate(objects):
            if not isinstance(obj, dict):
                raise ConversionError(f"objects[{index}] is no object")
            try:
                converted.append(self.convert(obj, target))
            except ConversionError as problem:
                raise ConversionError(f"objects[{index}]: {problem}") from problem
            except RecursionError as problem:
                raise ConversionError(f"objects[{index}]: nested too deeply") from problem
        return converted
