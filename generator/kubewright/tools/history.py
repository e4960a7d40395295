"""``kubewright history``: who changed an object, or those of a kind, when; what each change was; an object as it was.

The versions come from a server that keeps them (``serve --keep-history``), or from an audit log. Exit codes: 0 done, 1
there is nothing (no such object, a server that keeps no history), 2 the input could not be understood.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from apimachinery.client.errors import ApiError
from apimachinery.merge.owners import Ownership
from kubewright.diagnostics import escaped, printable
from kubewright.tools.explore.difference import difference
from kubewright.tools.explore.lines import lines_of
from kubewright.tools.inputs.live import NotThere, cluster, find_kind, get, split_name
from kubewright.tools.outputs.reporting import json_text, on_terminal

OK, REFUSED, MISUSED = 0, 1, 2
HISTORY = "application/json;as=History;g=kubewright.dev;v=v1"
_WRITES = {"create": "created", "update": "updated", "patch": "updated", "delete": "deleted"}
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


def _words(options: argparse.Namespace) -> tuple[str, str]:
    """Type and name; the name is empty where all are meant. Raises NotThere, _Unusable."""
    if len(options.object) == 1 and "/" not in options.object[0]:
        if options.at or options.diff:
            raise _Unusable("--at and --diff are of one object: give TYPE/NAME")
        return options.object[0], ""
    if options.selector:
        raise _Unusable("-l selects among the objects of a TYPE; leave the name out")
    return split_name(options.object)


def _kept(options: argparse.Namespace) -> list[Json]:
    """What a server keeps, newest first. Raises NotThere, _Unusable."""
    if options.limit < 1:
        raise _Unusable(f"--limit {options.limit}: give 1 or more")
    word, name = _words(options)
    entries: list[Json] = []
    token = ""
    with cluster(options) as client:
        kind = find_kind(client, word)
        path = kind.path(options.namespace or (client.config.namespace if name else ""), name)
        while len(entries) < options.limit:
            asked = {"limit": str(options.limit - len(entries)), "continue": token}
            if options.selector:
                asked["labelSelector"] = options.selector
            try:
                page = get(client, f"{path}?{urlencode(asked)}", HISTORY)
            except ApiError as refusal:
                if refusal.code != 406:
                    raise
                raise NotThere(
                    f"{client.config.server} keeps no history: start it with serve --keep-history, or give --audit"
                ) from None
            entries += page.get("entries") or ()
            token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                break
    return entries[: options.limit]


def _audited(options: argparse.Namespace) -> list[Json]:
    """What an audit log says, newest first. Raises NotThere, _Unusable."""
    word, name = _words(options)
    plural, _, group = word.partition(".")
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
        if reference.get("resource") != plural or (group and reference.get("apiGroup", "") != group):
            continue
        if (name and reference.get("name") != name) or (
            options.namespace and reference.get("namespace") != options.namespace
        ):
            continue
        entries.append(_of_event(event, reference))
    return sorted(entries, key=lambda each: str(each["time"]), reverse=True)[: options.limit]


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
    }
    return {**entry, "object": obj} if is_object else entry


def _show(entries: list[Json], options: argparse.Namespace) -> int:
    """Raises NotThere."""
    if not entries:
        raise NotThere(f"{' '.join(options.object)}: nothing is known of its past")
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
    _print_lines(entries, with_names=not ("/" in options.object[0] or len(options.object) == 2))
    if options.diff:
        for newer, older in zip(entries, [*entries[1:], {}], strict=True):
            _print_difference(older, newer)
    return OK


def _print_lines(entries: list[Json], *, with_names: bool) -> None:
    rows = []
    for each in entries:
        name = f"{each['namespace']}/{each['name']}" if each["namespace"] else each["name"]
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
