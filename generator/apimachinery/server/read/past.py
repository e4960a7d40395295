"""The past of objects: another form of the answer to a get or a list, of a server that keeps versions
(``storage/kept``).

    Accept: application/json;as=History;g=kubewright.dev;v=v1

asks for it. Who may read an object now may read what it was: rights, selectors and paths are those of the read
itself, and a deleted object is asked for by its name. A server that keeps nothing answers 406, as it does to any
form it does not know.

    {"kind": "History", "apiVersion": "kubewright.dev/v1", "metadata": {"continue": "…"},
     "entries": [{"revision", "time", "change", "user", "managers", "namespace", "name", "object"}, …]}

Entries are newest first. ``change`` is created, updated or deleted; ``managers`` are those who wrote, as far as
managedFields say (``writers``), ``user`` is who was authenticated. Lists leave ``object`` out. ``limit`` and
``continue`` page, a large answer ends early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from apimachinery.http.messages import Request, Response
from apimachinery.http.steps import ASKS, Asking, Wait, Work
from apimachinery.kinds.hooks import Json
from apimachinery.merge.managed_fields import EntryError
from apimachinery.merge.owners import Ownership, owners_of_changes
from apimachinery.meta.asked import Route
from apimachinery.meta.errors import bad_request
from apimachinery.server.catalog.served import Served
from apimachinery.server.read.selection import read_selectors, selection_of
from apimachinery.storage.interface import Record
from apimachinery.storage.kept import NEVER, KeepsVersions, PastRange, PastVersion
from apimachinery.wire.json import decode, encode

GROUP, KIND = "kubewright.dev", "History"
ENTRIES, MOST_ENTRIES = 100, 1_000
MOST_BYTES = 16 << 20
"""Of stored objects in one answer, more or less."""


def asks_for_past(request: Request) -> bool:
    """Whether the answer is to be a History."""
    accept = request.headers.get("accept", "")
    return f"as={KIND}" in accept and f"g={GROUP}" in accept


def past_of(storage: KeepsVersions, request: Request, route: Route, served: Served) -> Asking[Response]:
    """Answers with the versions of an object, or of those that a list selects. Raises ApiError 400."""
    limit = _number(request, "limit", ENTRIES)
    before = _number(request, "continue", NEVER)
    selection, scope = selection_of(read_selectors(request), route, served)
    high = f"{scope}\0" if route.name else f"{scope}\U0010ffff"
    wanted: Callable[[Record], bool] = (lambda record: True) if selection is None else selection.matches
    asked = PastRange(scope, high, before, max(1, min(limit or ENTRIES, MOST_ENTRIES)), MOST_BYTES)
    versions = yield Wait(partial(storage.versions, asked, wanted))
    # Versions of another apiVersion are converted, perhaps by a webhook.
    response: Response = yield Work(ASKS, partial(_answer, versions, served, bool(route.name)))
    return response


def _number(request: Request, name: str, default: int) -> int:
    text = request.first(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise bad_request(f"{name}: {text[:40]!r} is no number")
    return int(text)


def _answer(found: tuple[Sequence[PastVersion], bool], served: Served, whole: bool) -> Response:
    versions, has_more = found
    shown: Json = {
        "kind": KIND,
        "apiVersion": f"{GROUP}/v1",
        "metadata": {"continue": str(versions[-1].record.revision)} if has_more and versions else {},
        "entries": _entries(versions, served, whole),
    }
    return Response(200, encode(shown))


def _entries(versions: Sequence[PastVersion], served: Served, whole: bool) -> list[Json]:
    """The versions, each with who made it of the one before."""
    before: dict[str, Json] = {}
    entries = []
    for version in reversed(versions):
        key = version.record.key
        entry, before[key] = _entry(version, served, whole, before.get(key, {}))
        entries.append(entry)
    return entries[::-1]


def _entry(version: PastVersion, served: Served, whole: bool, before: Json) -> tuple[Json, Json]:
    """The entry of a version, and its object."""
    record = version.record
    obj: Any = decode(served.shown(record))
    metadata = obj.get("metadata") or {}
    change = "deleted" if version.deleted else "created" if record.created == record.revision else "updated"
    entry: Json = {
        "revision": str(record.revision),
        "time": _time(version.time) or ("" if version.deleted else _said_time(obj, before)),
        "change": change,
        "user": version.author,
        "managers": [] if version.deleted else writers(obj, before),
        "namespace": metadata.get("namespace", ""),
        "name": metadata.get("name", ""),
    }
    return ({**entry, "object": obj} if whole else entry), obj


def _time(seconds: float) -> str:
    if not seconds:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _said_time(obj: Json, before: Json) -> str:
    """When an object itself says that it was written: the newest time of its managers, if it is another than before."""
    times = [max((str(each.get("time") or "") for each in _managed(of)), default="") for of in (obj, before)]
    return times[0] if times[0] != times[1] else ""


def writers(obj: Json, before: Json) -> list[str]:
    """Who wrote, as far as an object says: the managers whose entries are new or have another time than before. An
    entry keeps its time where the same fields get other values: then those who own these. Where nothing is known of
    before, those with the newest time."""
    were = {_who(each): each.get("time") for each in _managed(before)}
    entries = {_who(each): str(each.get("time") or "") for each in _managed(obj)}
    changed = [who for who, time in entries.items() if were and (who not in were or were[who] != time)]
    if were and not changed:
        with suppress(EntryError):  # of a version to come
            changed = _owners_of_values(obj, before)
    newest = max(entries.values(), default="")
    return changed or [who for who, time in entries.items() if time == newest]


def _owners_of_values(obj: Json, before: Json) -> list[str]:
    ownership = Ownership.of(obj)
    owners = (ownership.managers[number].owner for number in owners_of_changes(before, obj, ownership))
    return [_shown(owner.manager, owner.operation, owner.subresource) for owner in owners]


def _managed(obj: Json) -> list[Json]:
    entries = (obj.get("metadata") or {}).get("managedFields") or ()
    return [each for each in entries if isinstance(each, dict)]


def _who(entry: Json) -> str:
    return _shown(
        str(entry.get("manager", "")), str(entry.get("operation", "")), str(entry.get("subresource") or "")
    )


def _shown(manager: str, operation: str, subresource: str) -> str:
    return f"{manager}{f'/{subresource}' if subresource else ''} ({operation})"
