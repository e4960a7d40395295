"""The release plan of a group, ``lifecycle.yaml``, kept as kinds and versions are added; ``kubewright lifecycle``
judges it.

A new version comes in a release, and what it follows is deprecated in that same release: before it there is nothing to
move to (deprecation policy, rule #3).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubewright.emit.code.render import render
from kubewright.source.lifecycle import Release, release_of
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.scaffold.editing import insert, read
from kubewright.tools.scaffold.writing import FilePlan, RefusedError

FILE = "lifecycle.yaml"
FIRST = "0.1"


def next_release(folder: Path, api_version: str = "", kind: str = "") -> str:
    """The release that something new comes with, unless told otherwise: the plan's newest one, except for a further
    version (``api_version`` is the one before it) the one after that came, if it is later."""
    entries = _entries(folder)
    told = [_release(entry.get(name)) for entry in entries for name in ("introduced", "deprecated")]
    came = [
        _release(entry.get("introduced"))
        for entry in entries
        if (entry.get("api_version"), entry.get("kind")) == (api_version, kind)
    ]
    known = [release for release in told if release]
    known += [(release[0], release[1] + 1) for release in came if release]
    return ".".join(map(str, max(known))) if known else FIRST


def add_entry(
    plan: FilePlan, folder: Path, kind: str, api_version: str, release: str, deprecates: str = ""
) -> None:
    """Puts the entry of a new version into the plan, and marks ``deprecates`` (an apiVersion) as superseded by it.
    Raises ``RefusedError`` for a plan that cannot be edited, or where the old version came later than ``release``."""
    place = folder / FILE
    entry = {"api_version": api_version, "kind": kind, "introduced": release}
    entries = _entries(folder)
    if any(each.get("api_version") == api_version and each.get("kind") == kind for each in entries):
        return
    marks = {"deprecated": release, "replacement": f"{api_version}/{kind}"}
    added = [entry]
    wanted: list[dict[str, Any]] = []
    for each in entries:
        marked = (each.get("api_version"), each.get("kind")) == (deprecates, kind)
        if marked and _release(each.get("introduced")) > _release(release):
            raise RefusedError(
                f"{place}: {deprecates} {kind} is introduced after {release}", "pass a later --release"
            )
        wanted.append({**each, **{k: v for k, v in marks.items() if not each.get(k)}} if marked else each)
    if deprecates and all(
        (each.get("api_version"), each.get("kind")) != (deprecates, kind) for each in entries
    ):
        added.insert(0, {"api_version": deprecates, "kind": kind, **marks})
    lines = [_lines(each) for each in added]
    if not place.is_file():
        head = render("scaffold_plan", group=api_version.rpartition("/")[0])
        plan.new[place] = head + "".join("- " + text.replace("\n", "\n  ") + "\n" for text in lines)
        return
    value, text = read(place)
    edited = rewrite(text, value, {**value, "resources": wanted})
    if not edited.kept:
        raise RefusedError(f"{place}: cannot edit its entries line by line", "write it in block style")
    after = insert(place, edited.text, "resources", "- ", lines, {**value, "resources": [*wanted, *added]})
    plan.edits[place] = (text, after)


def _lines(entry: dict[str, str]) -> str:
    return "\n".join(
        f'{name}: "{text}"' if name in ("introduced", "deprecated") else f"{name}: {text}"
        for name, text in entry.items()
    )


def _entries(folder: Path) -> list[dict[str, Any]]:
    """The entries of a plan; none where there is no plan. Raises ``RefusedError`` where it is no plan."""
    place = folder / FILE
    if not place.is_file():
        return []
    value, _ = read(place)
    entries = value.get("resources") if isinstance(value, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise RefusedError(f"{place} has no list of resources", "see docs/tools.md, lifecycle")
    return entries


def _release(text: Any) -> Release:
    """``1.2`` as numbers; nothing where it is no such release."""
    try:
        found = release_of(text) if isinstance(text, str) and text else ()
    except ValueError:
        return ()
    return found if len(found) == 2 else ()
