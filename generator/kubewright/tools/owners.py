"""``kubewright owners``: an object as YAML with the manager of each line in the margin.

Exit codes: 0 done, 1 there is no such object, or the manager owns nothing, 2 the input could not be understood.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from apimachinery.merge.field_set import paths
from apimachinery.merge.fields_v1 import path_text
from apimachinery.merge.managed_fields import EntryError, decode
from apimachinery.merge.owners import Manager, Ownership
from kubewright.diagnostics import Diagnostics, escaped, printable
from kubewright.tools.explore.lines import OwnedLine, lines_of
from kubewright.tools.inputs.live import NotThere, cluster, find_kind, get, split_name
from kubewright.tools.inputs.objects import InputFault, complain, read_object, require_object
from kubewright.tools.outputs.reporting import json_text, on_terminal

OK, REFUSED, MISUSED = 0, 1, 2
_WIDEST = 28
_COLOURS = ("36", "33", "35", "32", "34", "31", "96", "93", "95", "92", "94", "91")
"""Of terminals; a manager keeps its own, from the first on."""


def run(options: argparse.Namespace) -> int:
    """Prints the object of the command line."""
    diagnostics = Diagnostics()
    try:
        obj = _object(options, diagnostics)
        if options.manager is not None:
            return _print_paths(obj, options.manager, options.format)
        ownership = Ownership.of(obj)
    except NotThere as fault:
        print(printable(f"kubewright owners: {fault}"), file=sys.stderr)
        return REFUSED
    except InputFault as fault:
        complain("owners", str(fault), diagnostics)
        return MISUSED
    except EntryError as fault:
        complain("owners", f".metadata.managedFields: {fault}", diagnostics)
        return MISUSED
    lines = lines_of(obj, ownership)
    if options.format == "json":
        print(json_text(as_json(ownership, lines)), end="")
    else:
        _print_text(ownership, lines, colours=on_terminal())
    return OK


def _object(options: argparse.Namespace, diagnostics: Diagnostics) -> dict[str, Any]:
    """Raises NotThere, InputFault."""
    if options.filename is not None:
        if options.object:
            raise InputFault(f"-f and {' '.join(options.object)!r} exclude each other")
        found = read_object(options.filename, diagnostics, what="object")
        return require_object(found, options.filename, "object")
    if not options.object:
        raise InputFault("which object? Give TYPE/NAME, or a file with -f")
    word, name = split_name(options.object)
    with cluster(options) as client:
        kind = find_kind(client, word)
        found = get(client, kind.path(options.namespace or client.config.namespace, name))
    return dict(found)


def as_json(ownership: Ownership, lines: list[OwnedLine]) -> dict[str, Any]:
    """Managers, and lines that name them by their number."""
    return {
        "managers": [_manager(manager) for manager in ownership.managers],
        "lines": [
            {
                "text": line.text,
                "path": line.name,
                "field": line.field,
                "owners": [*line.owners],
                **({"whole": True} if line.whole else {}),
                **({"below": [*line.below]} if line.below else {}),
            }
            for line in lines
        ],
    }


def _manager(manager: Manager) -> dict[str, Any]:
    return {
        "manager": manager.owner.manager,
        "operation": manager.owner.operation,
        "apiVersion": manager.api_version,
        "subresource": manager.owner.subresource,
        "time": manager.time or "",
        "fields": manager.size,
    }


def _print_text(ownership: Ownership, lines: list[OwnedLine], *, colours: bool) -> None:
    names = [_label(manager) for manager in ownership.managers]
    margins = [_margin(line, names) for line in lines]
    width = min(_WIDEST, max(map(len, margins), default=0))
    for line, margin in zip(lines, margins, strict=True):
        cut = margin if len(margin) <= width else f"{margin[: width - 1]}…"
        shown = f"{cut:{width}} | {escaped(line.text)}"
        print(_coloured(shown, line.owners) if colours else shown.rstrip())
    print()
    for number, manager in enumerate(ownership.managers):
        at = f" at {manager.time}" if manager.time else ""
        fields = f"{manager.size} field{'' if manager.size == 1 else 's'}"
        told = printable(f"{names[number]}: {manager.owner.operation} of {manager.api_version}{at}, {fields}")
        print(_coloured(told, (number,)) if colours else told)


def _label(manager: Manager) -> str:
    """The name of a manager, with the subresource it wrote through."""
    name = manager.owner.manager or '""'
    return printable(f"{name}/{manager.owner.subresource}" if manager.owner.subresource else name)


def _margin(line: OwnedLine, names: list[str]) -> str:
    if len(line.owners) > 3:
        return f"{names[line.owners[0]]} and {len(line.owners) - 1} more"
    return ", ".join(names[number] for number in line.owners)


def _coloured(text: str, owners: tuple[int, ...]) -> str:
    colour = _COLOURS[owners[0] % len(_COLOURS)] if owners else "90"
    return f"\033[{colour}m{text}\033[0m"


def _print_paths(obj: dict[str, Any], name: str, form: str) -> int:
    """What one manager owns, by operation and subresource. Raises EntryError, NotThere."""
    metadata = obj.get("metadata") or {}
    managed = decode(metadata.get("managedFields"))
    owned = {owner: entry for owner, entry in managed.items() if owner.manager == name}
    if not owned:
        others = ", ".join(sorted({owner.manager for owner in managed})[:8]) or "nobody"
        raise NotThere(f"--manager {name}: owns nothing of it; the managers are {others}")
    if form == "json":
        print(
            json_text(
                [
                    {
                        "operation": owner.operation,
                        "subresource": owner.subresource,
                        "time": entry.time or "",
                        "paths": [path_text(path) for path in paths(entry.fields)],
                    }
                    for owner, entry in owned.items()
                ]
            ),
            end="",
        )
        return OK
    for entry in owned.values():
        for path in paths(entry.fields):
            print(escaped(path_text(path)))
    return OK
