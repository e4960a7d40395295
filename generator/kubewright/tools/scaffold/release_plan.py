"""The release plan of a group, ``lifecycle.yaml``, kept as kinds and versions come, change and go; ``kubewright
lifecycle`` judges it.

A new version comes in a release, and what it follows is deprecated in that same release: before it there is nothing to
move to (deprecation policy, rule #3).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubewright.diagnostics import Diagnostics, Severity
from kubewright.emit.code.render import render
from kubewright.source.lifecycle import Release, release_of
from kubewright.source.text import parse_documents
from kubewright.tools.lifecycle.plan import RELEASES, read_plan
from kubewright.tools.lifecycle.policy import judge
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.scaffold.editing import group_versions, insert, read
from kubewright.tools.scaffold.writing import FilePlan, RefusedError

FILE = "lifecycle.yaml"
FIRST = "0.1"
_LATE = ("P008", "P009", "P010")
"""What is late already, or right when the other kinds of the version have followed, keeps nobody from doing it."""
Key = tuple[str, str]
"""apiVersion and kind."""


def next_release(folder: Path, api_version: str = "", kind: str = "") -> str:
    """The release that something new comes with, unless told otherwise: the plan's newest one, except for a further
    version (``api_version`` is the one before it) the one after that came, if it is later."""
    entries, served = _entries(folder), {f"{group}/{version}" for group, version in group_versions(folder)}
    told = [
        _release(entry.get(name))
        for entry in entries
        for name in RELEASES
        if name != "removed" or entry.get("api_version") not in served  # else it is yet to come
    ]
    came = [_release(entry.get("introduced")) for entry in entries if _key(entry) == (api_version, kind)]
    known = [release for release in told if release]
    known += [(release[0], release[1] + 1) for release in came if release]
    return ".".join(map(str, max(known))) if known else FIRST


def entry_of(folder: Path, kind: str, api_version: str) -> dict[str, Any]:
    """The entry of a version; empty where there is none."""
    return next((each for each in _entries(folder) if _key(each) == (api_version, kind)), {})


def add_entry(
    plan: FilePlan, folder: Path, kind: str, api_version: str, release: str, deprecates: str = ""
) -> None:
    """Puts the entry of a new version into the plan, and marks ``deprecates`` (an apiVersion) as superseded by it.
    Raises ``RefusedError`` for a plan that cannot be edited, or where the old version came later than ``release``."""
    if entry_of(folder, kind, api_version):
        return
    marks = {"deprecated": release, "replacement": f"{api_version}/{kind}"}
    old = entry_of(folder, kind, deprecates) if deprecates else {}
    if _release(old.get("introduced")) > _release(release):
        raise RefusedError(
            f"{folder / FILE}: {deprecates} {kind} is introduced after {release}", "pass a later --release"
        )
    marks = {word: text for word, text in marks.items() if not old.get(word)}
    added = {(api_version, kind): {"introduced": release}}
    change_entries(plan, folder, {(deprecates, kind): marks} if deprecates else {}, added)


def change_entries(
    plan: FilePlan,
    folder: Path,
    changes: Mapping[Key, Mapping[str, str]],
    added: Mapping[Key, Mapping[str, str]] | None = None,
) -> None:
    """Sets fields of entries, which are added where there are none, and adds new ones. Raises ``RefusedError`` for a
    plan that cannot be edited."""
    place, entries = folder / FILE, _entries(folder)
    wanted = [{**each, **changes.get(_key(each), {})} for each in entries]
    missing = {key: fields for key, fields in changes.items() if key not in map(_key, entries)} | dict(
        added or {}
    )
    new = [{"api_version": key[0], "kind": key[1], **fields} for key, fields in missing.items()]
    lines = [_lines(each) for each in new]
    if not place.is_file():
        group = next(iter({**changes, **missing}))[0].rpartition("/")[0]
        head = render("scaffold_plan", group=group)
        plan.new[place] = head + "".join("- " + text.replace("\n", "\n  ") + "\n" for text in lines)
        return
    value, text = read(place)
    edited = rewrite(text, value, {**value, "resources": wanted})
    if not edited.kept:
        raise RefusedError(f"{place}: cannot edit its entries line by line", "write it in block style")
    after = insert(place, edited.text, "resources", "- ", lines, {**value, "resources": [*wanted, *new]})
    plan.edit(place, text, after)


def check_policy(plan: FilePlan, folder: Path) -> None:
    """Raises ``RefusedError`` where the edited plan breaks a rule of the deprecation policy that it kept before."""
    place = folder / FILE
    before, after = plan.edits.get(place, ("", plan.new.get(place, "")))
    known = {message for _, message in _errors(place, before)}
    for where, message in _errors(place, after):
        if message not in known:
            raise RefusedError(
                f"{where}: {message}", "pass another --release, or wait until the plan allows it"
            )


def _errors(place: Path, text: str) -> list[tuple[str, str]]:
    """What ``kubewright lifecycle`` has against a plan: place and message."""
    diagnostics = Diagnostics()
    documents = parse_documents(text.encode(), str(place), diagnostics) if text else []
    if len(documents) != 1:
        return []
    found = judge(read_plan(documents[0], diagnostics))
    return [
        (str(each.location), f"{each.code} {each.message}")
        for each in found
        if each.severity is Severity.ERROR and each.code not in _LATE
    ]


def _key(entry: Mapping[str, Any]) -> Key:
    return str(entry.get("api_version")), str(entry.get("kind"))


def _lines(entry: Mapping[str, str]) -> str:
    return "\n".join(
        f'{name}: "{text}"' if name in RELEASES else f"{name}: {text}" for name, text in entry.items()
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
