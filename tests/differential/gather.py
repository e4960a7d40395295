"""``python -m tests.differential.gather CLONES FOLDER``: the manifests in git clones, as ``--manifests`` takes them.

CLONES has a folder for each project, a git directory or with one; FOLDER gets a JSON file for each: a list of its CRDs
and of its objects, of each kind at most so many whose shape differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MOST_OF_A_KIND = 60
MOST_BYTES = 1_500_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def git_directory(clone: Path) -> Path:
    """Where git keeps a clone: the folder itself, or one in it."""
    return next((each for each in (clone / ".git", clone / "repo") if each.is_dir()), clone)


def documents(clone: Path) -> Iterator[dict[str, Any]]:
    """Every object in the YAML and JSON files of a clone's newest commit; templates and what cannot be read are left
    out."""
    git = ["git", f"--git-dir={git_directory(clone)}"]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", "--name-only", "HEAD"], capture_output=True, check=False
    )
    names = [
        each
        for each in listed.stdout.decode("utf-8", "replace").split("\0")
        if each.endswith((".yaml", ".yml", ".json"))
    ]
    asked = "".join(f"HEAD:{name}\n" for name in names if "\n" not in name).encode()
    found = subprocess.run(
        [*git, "cat-file", "--batch"], input=asked, capture_output=True, check=False
    ).stdout
    place = 0
    while place < len(found):
        end = found.index(b"\n", place)
        head = found[place:end].split()
        if len(head) != 3 or not head[2].isdigit():
            place = end + 1
            continue
        raw, place = found[end + 1 : end + 1 + int(head[2])], end + 2 + int(head[2])
        if len(raw) <= MOST_BYTES and b"{{" not in raw and b"apiVersion" in raw:
            try:
                read = [json.loads(json.dumps(each)) for each in yaml.load_all(raw, _LOADER)]
            except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError):
                continue
            for each in read:
                yield from _objects(each)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        return
    if isinstance(value.get("items"), list) and str(value.get("kind", "")).endswith("List"):
        for each in value["items"]:
            yield from _objects(each)
    elif isinstance(value.get("metadata"), dict) and all(
        isinstance(value.get(key), str) for key in ("apiVersion", "kind")
    ):
        yield value


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_shape(value[key])}" for key in sorted(value)) + "}"
    return (
        "[" + ",".join(sorted({_shape(each) for each in value})) + "]"
        if isinstance(value, list)
        else type(value).__name__
    )


def gathered(clone: Path) -> list[dict[str, Any]]:
    """What is kept of a clone: its definitions by name, and objects that differ in shape."""
    definitions: dict[str, dict[str, Any]] = {}
    objects: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for each in documents(clone):
        if each["kind"] == "CustomResourceDefinition":
            if each["apiVersion"] == "apiextensions.k8s.io/v1":
                definitions.setdefault(str(each["metadata"].get("name")), each)
            continue
        same = objects.setdefault((each["apiVersion"], each["kind"]), {})
        if len(same) < MOST_OF_A_KIND:
            same.setdefault(_shape(each), each)
    return [*definitions.values(), *(each for same in objects.values() for each in same.values())]


_OF_SERVERS = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields", "generation"}
    | {"deletionGracePeriodSeconds"}
)


def tabulated(table: Path) -> list[dict[str, Any]]:
    """The different objects of a table of validations, without what servers write."""
    found: dict[str, dict[str, Any]] = {}
    for text in table.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        for obj in (each for key in ("obj", "old") for each in _objects(line.get(key))):
            metadata = {key: each for key, each in obj["metadata"].items() if key not in _OF_SERVERS}
            made = {**obj, "metadata": {"name": "a", **metadata}}
            found.setdefault(json.dumps(made, sort_keys=True), made)
    return list(found.values())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="gather", description=__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", action="store_true", help="CLONES has tables (builtin-*.jsonl) instead")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for table in sorted(options.clones.glob("builtin-*.jsonl")) if options.tables else ():
        (options.folder / f"{table.stem}.json").write_text(json.dumps(tabulated(table)))
    if options.tables:
        return
    for clone in sorted(each for each in options.clones.iterdir() if each.is_dir()):
        if found := gathered(clone):
            (options.folder / f"{clone.name}.json").write_text(json.dumps(found))
            print(f"{clone.name}: {len(found)}", flush=True)


if __name__ == "__main__":
    main()
