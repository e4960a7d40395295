"""``kubewright history``: who changed an object, those of a kind, or all of a namespace, when; what each change was; an
object as it was.

The versions come from a server that keeps them (``serve --keep-history``), or from an audit log. Exit codes: 0 done, 1
there is nothing (no such object, a server that keeps no history), 2 the input could not be understood.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from apimachinery.client.connection import Client
from apimachinery.client.errors import ApiError
from apimachinery.merge.owners import Ownership
from kubewright.diagnostics import escaped, printable
from kubewright.tools.explore.difference import difference
from kubewright.tools.explore.lines import lines_of
from kubewright.tools.inputs.live import (
    LiveKind,
    NotThere,
    all_kinds,
    cluster,
    find_kind,
    get,
    split_name,
)
from kubewright.tools.outputs.reporting import json_text, on_terminal

OK, REFUSED, MISUSED = 0, 1, 2
MOST_OF_A_PAGE = 200
HISTORY = "application/json;as=History;g=kubewright.dev;v=v1"
_WRITES = {"create": "created", "update": "updated", "patch": "updated", "delete": "deleted"}
_NOISE = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Many small changes of machines, which hide those of people; they are shown where somebody names them."""
_COLOURS = {"added": "32", "removed": "31"}
Json = dict[str, Any]


class _Unusable(Exception):
    """The command line or a file cannot be used."""


def run(options: argparse.Namespace) -> int:
    """Prints the versions of the command line."""
    try:
        entries = _audited(options) if options.audit else _kept(options)
        return _show(entries, options)
    except NotThere as fault:
        print(printable(f"kubewright history: {fault}"), file=sys.stderr)
        return REFUSED
    except _Unusable as fault:
        print(printable(f"kubewright history: error: {fault}"), file=sys.stderr)
        return MISUSED


def _words(options: argparse.Namespace) -> tuple[list[str], str]:
    """The types and the name that the user gave. No types means all types, no name all objects of the types. Raises
    NotThere, _Unusable."""
    if not options.object or (len(options.object) == 1 and "/" not in options.object[0]):
        if options.at or options.diff:
            raise _Unusable("--at and --diff are of one object: give TYPE/NAME")
        return [each for word in options.object for each in word.split(",") if each], ""
    if options.selector:
        raise _Unusable("-l selects among the objects of a TYPE; leave the name out")
    word, name = split_name(options.object)
    return [word], name


def _kept(options: argparse.Namespace) -> list[Json]:
    """What a server keeps, newest first. Raises NotThere, _Unusable."""
    if options.limit < 1:
        raise _Unusable(f"--limit {options.limit}: give 1 or more")
    words, name = _words(options)
    with cluster(options) as client:
        kinds = [find_kind(client, word) for word in words] or _of_everything(client, options.namespace)
        namespace = options.namespace or (client.config.namespace if name else "")
        pasts = [_Past(client, kind, kind.path(namespace, name), options) for kind in kinds]
        # Each is newest first, and revisions count all writes of a server: no page is read before it is needed.
        merged = heapq.merge(*map(iter, pasts), key=lambda entry: -int(entry["revision"]))
        entries = [*islice(merged, options.limit)]
        _say_what_is_missing(pasts, client.config.server, is_choice=bool(words))
    return entries


def _of_everything(client: Client, namespace: str) -> list[LiveKind]:
    """The kinds that a past of everything is made of."""
    return [
        kind
        for kind in all_kinds(client)
        if {"list", "watch"} <= kind.verbs
        and (kind.namespaced or not namespace)
        and kind.resource not in _NOISE
    ]


class _Past:
    """The entries of one kind, newest first, in pages that are read when they are needed."""

    def __init__(self, client: Client, kind: LiveKind, path: str, options: argparse.Namespace) -> None:
        self.kind = kind
        self.refusal: ApiError | None = None
        self._client = client
        self._path = path
        self._limit = min(options.limit, MOST_OF_A_PAGE)
        self._selector = options.selector

    def __iter__(self) -> Iterator[Json]:
        """Ends at a refusal, which ``refusal`` then is. Raises ApiError for a wrong question, TransportError."""
        token = ""
        while True:
            asked = {"limit": str(self._limit), "continue": token}
            if self._selector:
                asked["labelSelector"] = self._selector
            try:
                page = get(self._client, f"{self._path}?{urlencode(asked)}", HISTORY)
            except ApiError as refusal:
                if refusal.code not in (403, 406):
                    raise
                self.refusal = refusal
                return
            for entry in page.get("entries") or ():
                yield {**entry, "resource": self.kind.resource}
            token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                return


def _say_what_is_missing(pasts: list[_Past], server: str, *, is_choice: bool) -> None:
    """Says on standard error which kinds may not be read, where there are others. Raises NotThere, ApiError."""
    refused = [each for each in pasts if each.refusal is not None]
    denied = [each for each in refused if each.refusal is not None and each.refusal.code == 403]
    if denied and (is_choice or len(refused) == len(pasts)):
        assert denied[0].refusal is not None
        raise denied[0].refusal
    if len(refused) == len(pasts):
        raise NotThere(f"{server} keeps no history: start it with serve --keep-history, or give --audit")
    if denied:
        names = ", ".join(each.kind.resource for each in denied)
        print(printable(f"kubewright history: you may not list {names}: left out"), file=sys.stderr)


def _audited(options: argparse.Namespace) -> list[Json]:
    """What an audit log says, newest first. Raises NotThere, _Unusable."""
    words, name = _words(options)
    if options.selector:
        raise _Unusable("-l: an audit log has no labels to select by")
    if str(options.audit) == "-":
        found = [*_events(sys.stdin, "-")]
    else:
        with Path(options.audit).open(encoding="utf-8") as lines:
            found = [*_events(lines, str(options.audit))]
    entries = []
    for event in found:
        reference = event.get("objectRef") or {}
        if not _is_meant(reference, words):
            continue
        if (name and reference.get("name") != name) or (
            options.namespace and reference.get("namespace") != options.namespace
        ):
            continue
        entries.append(_of_event(event, reference))
    return sorted(entries, key=lambda each: str(each["time"]), reverse=True)[: options.limit]


def _is_meant(reference: Json, words: list[str]) -> bool:
    plural, group = str(reference.get("resource") or ""), str(reference.get("apiGroup") or "")
    if not words:
        return f"{plural}.{group}".rstrip(".") not in _NOISE
    return any(word in (plural, f"{plural}.{group}") for word in words)


def _events(lines: Iterable[str], name: str) -> Iterator[Json]:
    """The writes that were made. Raises _Unusable with the line of what is no event."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            made = event.get("stage") == "ResponseComplete" and event.get("verb") in _WRITES
            dry = "dryRun=" in str(event.get("requestURI") or "")
            if made and not dry and int((event.get("responseStatus") or {}).get("code") or 200) < 300:
                yield event
        except (ValueError, RecursionError, AttributeError, TypeError) as fault:
            raise _Unusable(f"--audit {name}:{number}: no audit event: {fault}") from None


def _of_event(event: Json, reference: Json) -> Json:
    obj = event.get("responseObject")
    is_object = isinstance(obj, dict) and obj.get("kind") != "Status"
    metadata = (obj.get("metadata") or {}) if isinstance(obj, dict) and is_object else {}
    agent = str(event.get("userAgent") or "").partition("/")[0]
    entry = {
        "revision": str(metadata.get("resourceVersion") or reference.get("resourceVersion") or ""),
        "time": str(event.get("stageTimestamp") or event.get("requestReceivedTimestamp") or ""),
        "change": _WRITES[str(event["verb"])],
        "user": str((event.get("user") or {}).get("username") or ""),
        "managers": [agent] if agent else [],
        "namespace": str(reference.get("namespace") or ""),
        "name": str(reference.get("name") or ""),
        "resource": ".".join(
            str(reference[name]) for name in ("resource", "apiGroup") if reference.get(name)
        ),
    }
    return {**entry, "object": obj} if is_object else entry


def _show(entries: list[Json], options: argparse.Namespace) -> int:
    """Raises NotThere."""
    if not entries:
        raise NotThere(f"{' '.join(options.object) or 'everything'}: nothing is known of its past")
    if options.at:
        entry = next((each for each in entries if each["revision"] == options.at), None)
        if entry is None or not isinstance(entry.get("object"), dict):
            known = ", ".join(
                each["revision"] for each in entries[:8] if isinstance(each.get("object"), dict)
            )
            raise NotThere(
                f"--at {options.at}: no such version; there are {known or 'none with their objects'}"
            )
        print("\n".join(line.text for line in lines_of(entry["object"], Ownership({}))))
        return OK
    if options.format == "json":
        print(json_text(entries), end="")
        return OK
    words, name = _words(options)
    _print_lines(entries, with_names=not name, with_types=len(words) != 1)
    if options.diff:
        for newer, older in zip(entries, [*entries[1:], {}], strict=True):
            _print_difference(older, newer)
    return OK


def _print_lines(entries: list[Json], *, with_names: bool, with_types: bool) -> None:
    rows = []
    for each in entries:
        name = f"{each['namespace']}/{each['name']}" if each["namespace"] else each["name"]
        name = f"{each['resource']} {name}" if with_types else name
        who = each["user"] or "-"
        rows.append(
            (
                each["time"] or "-",
                each["revision"] or "-",
                each["change"],
                name,
                who,
                ", ".join(each["managers"]),
            )
        )
    table = [("TIME", "VERSION", "CHANGE", "OBJECT", "USER", "FIELD MANAGERS"), *rows]
    columns = [n for n in range(6) if n != 3 or with_names]
    cells = [[printable(row[n]) for n in columns] for row in table]
    widths = [max(len(row[n]) for row in cells) for n in range(len(columns))]
    for row in cells:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _print_difference(older: Json, newer: Json) -> None:
    """Prints the lines that a change changed, below its version."""
    before, after = older.get("object"), newer.get("object")
    if newer["change"] == "deleted" or not isinstance(after, dict):
        return
    print(f"\n{printable(newer['revision'])} {newer['change']} {printable(newer['time'])}")
    for line in difference(before if isinstance(before, dict) else None, after):
        if line["mark"] in _COLOURS and line["field"] not in (
            "metadata.resourceVersion",
            "metadata.generation",
        ):
            text = f"{'+' if line['mark'] == 'added' else '-'} {escaped(line['text'])}"
            print(f"\033[{_COLOURS[line['mark']]}m{text}\033[0m" if on_terminal() else text)
