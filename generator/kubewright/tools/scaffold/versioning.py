"""A further version of a CRD, by editing its text: comments, order and style of what is there are kept.

The newest version's lines are copied; only ``name``, ``served``, ``storage`` and what marks a deprecation differ. What
the edited text says is read again and compared with what it should say, so that an unusual style is refused, never
written wrong. The policy is https://kubernetes.io/docs/reference/using-api/deprecation-policy/, rule #3 (a version is
deprecated only in favour of one at least as stable) and rule #4b (storage moves a release after the new version came).
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import yaml

from kubewright.ir.versions import version_priority
from kubewright.tools.scaffold.writing import RefusedError, says


@dataclass(frozen=True, slots=True)
class NewVersion:
    """The edited text of a CRD, the version that was copied, whether it is now deprecated, all former versions."""

    text: str
    copied: str
    deprecates: bool
    former: tuple[str, ...]


def succeeds(new: str, old: str) -> bool:
    """Whether ``new`` may replace ``old``: it is at least as stable, and later."""
    return version_priority(new)[0] >= version_priority(old)[0] and version_priority(new) > version_priority(
        old
    )


def add_version(text: str, crd: Any, version: str, storage: bool, place: str) -> NewVersion:
    """``text`` of the manifest ``crd`` with one version more. Raises ``RefusedError``: the version is there already
    (code 1), or the text is not written in block style (code 2)."""
    versions = crd["spec"]["versions"]
    names = tuple(entry["name"] for entry in versions)
    if version in names:
        raise RefusedError(f"{place}: {crd['metadata']['name']} already has {version}", code=1)
    newest = max(versions, key=lambda entry: version_priority(entry["name"]))
    deprecates = succeeds(version, newest["name"])
    kind, group = crd["spec"]["names"]["kind"], crd["spec"]["group"]
    warning = f"{group}/{newest['name']} {kind} is deprecated; use {group}/{version} {kind}"

    wanted = copy.deepcopy(crd)
    added = copy.deepcopy(newest) | {"name": version, "served": True, "storage": storage}
    added.pop("deprecated", None)
    added.pop("deprecationWarning", None)
    for entry in wanted["spec"]["versions"]:
        if storage:
            entry["storage"] = False
        if deprecates and entry["name"] == newest["name"]:
            entry |= {"deprecated": True, "deprecationWarning": warning}
    wanted["spec"]["versions"].append(added)

    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    items = _items(text)
    blocks: list[str] = []
    for entry, (first, last, indent) in zip(versions, items, strict=True):
        if entry is newest:
            body = {"name": version, "served": "true", "storage": json.dumps(storage)}
            copied = _set(lines[first:last], indent, body, {"deprecated", "deprecationWarning"})
        changes: dict[str, str] = {"storage": "false"} if storage else {}
        if deprecates and entry is newest:
            changes |= {"deprecated": "true", "deprecationWarning": json.dumps(warning)}
        blocks += _set(lines[first:last], indent, changes, set())
    start, end = items[0][0], items[-1][1]
    result = "".join([*lines[:start], *blocks, *copied, *lines[end:]])
    if not says(result, wanted):
        raise RefusedError(
            f"{place}: cannot edit `versions` line by line",
            "write `versions` in block style, one `- name: …` entry for each version, without anchors",
        )
    return NewVersion(result, newest["name"], deprecates, names)


def _items(text: str) -> list[tuple[int, int, int]]:
    """First line, line after the last, and column of the keys, of each version's entry."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for key in ("spec", "versions"):
        assert isinstance(node, yaml.MappingNode)
        node = next(value for name, value in node.value if name.value == key)
    assert isinstance(node, yaml.SequenceNode)
    starts = [item.start_mark for item in node.value]
    # The end of a block lies where the next token begins; blank and comment lines before it belong to what follows.
    lines = text.splitlines()
    end = min(node.end_mark.line, len(lines))
    while end > starts[-1].line + 1 and (
        not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")
    ):
        end -= 1
    ends = [mark.line for mark in starts[1:]] + [end]
    return [(mark.line, last, mark.column) for mark, last in zip(starts, ends, strict=True)]


def _set(block: list[str], indent: int, values: dict[str, str], without: set[str]) -> list[str]:
    """The lines of a version's entry with scalars of its own keys set (new ones after ``name``) or left out."""
    left = dict(values)
    result: list[str] = []
    for number, line in enumerate(block):
        own = (
            line[:indent].strip() in (("-",) if number == 0 else ("",))
            and line[indent : indent + 1] not in " #\n"
        )
        key = line[indent:].split(":")[0].strip() if own else ""
        if key in left:
            line = f"{line[:indent]}{key}: {left.pop(key)}\n"
        if key not in without:
            result.append(line)
    extra = [f"{' ' * indent}{key}: {value}\n" for key, value in left.items()]
    place = next((n for n, line in enumerate(result) if line[indent:].startswith("name:")), 0)
    return [*result[: place + 1], *extra, *result[place + 1 :]]
