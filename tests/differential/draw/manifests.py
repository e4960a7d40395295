"""Manifests of real projects, written and read in every form: as they are, and changed along their schemas.

``--manifests FOLDER`` has a JSON file for each project, a list of documents with its CRDs among them
(``tests/differential/gather.py`` makes it of clones).
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.builtin import branch, definition_of
from tests.differential.draw.kinds import Kind, served
from tests.differential.draw.rest import delete_options, json_patch, write_options
from tests.differential.draw.words import Dice, damaged, merged

_TABLES = [accept for accept in words.ACCEPTS if "as=Table;v=v1" in accept]
_FORMS = ["application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf"]
# What is of the whole cluster and changes nothing for other conversations; others are only tried.
_HARMLESS = {"ClusterRole", "ClusterRoleBinding", "PersistentVolume", "CSIDriver", "VolumeAttachment", "DeviceClass", "Node"}  # fmt: skip
_LEFT = {"Namespace", "CustomResourceDefinition", "APIService"}
_READ_ONLY = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")  # fmt: skip


@dataclass
class Objects:
    """A kind that manifests of a project have, and these."""

    project: str
    kind: Kind
    schema: dict[str, Any]
    found: list[dict[str, Any]]


class Manifests:
    """Draws from the documents of a folder."""

    def __init__(self, folder: Path) -> None:
        self._found: list[Objects] = []
        for path in sorted(folder.glob("*.json")):
            self._found += _objects(path.stem, json.loads(path.read_text()))
        if not self._found:
            raise SystemExit(f"{folder}: no manifests")

    def draw(self, dice: Dice, name: str) -> Conversation:
        """Objects of one kind of one project: written, changed, read, deleted."""
        chosen = self._one(dice)
        steps: list[Step] = []
        first = _sendable(dice, chosen, dice.one(chosen.found), "a")
        steps.append(_create(dice, chosen, first, plain=True))
        for _ in range(dice.randint(8, 14)):
            make = dice.choices([_another, _read, _replace, _patch, _apply, _status, _delete], [20, 16, 18, 20, 14, 8, 4])[0]  # fmt: skip
            steps.append(make(dice, chosen, first))
        if _only_tried(chosen.kind):
            for step in steps:
                if step["method"] != "GET":
                    step.setdefault("query", {})["dryRun"] = "All"
        return Conversation("manifests", name, steps, [chosen.kind.crd] if chosen.kind.crd else [])

    def commands(self, dice: Dice, name: str) -> Conversation:
        """A manifest as it is, through kubectl's verbs one after the other."""
        chosen = self._one(dice)
        own = [
            _sendable(dice, chosen, each, f"a{number}")
            for number, each in enumerate(dice.some(chosen.found, 1, 3))
        ]
        own = own or [_sendable(dice, chosen, dice.one(chosen.found), "a")]
        text = "\n---\n".join(json.dumps(each) for each in own)
        tried = " --dry-run=server" if _only_tried(chosen.kind) else ""
        manager = dice.one(["", " --field-manager=other", " --force-conflicts"])
        last = own[-1]
        named = f"{chosen.kind.plural}.{chosen.kind.api_version.rpartition('/')[0]}/{last['metadata'].get('name', 'a')}".replace(
            "./", "/"
        )
        labelled = merged(last, {"metadata": {"labels": {"added": "1"}}})
        lines: list[tuple[str, Any]] = [
            ("create -f -", text), ("get -f - -o yaml", text), ("get -f -", text), ("apply -f -", text),
            (f"apply --server-side{manager} -f -", text), ("diff -f -", text), ("diff --server-side -f -", text), ("apply -f -", text),
            ("apply -f - -o yaml", json.dumps(labelled)), (f"patch {named} --type=merge -p '{{\"metadata\":{{\"annotations\":{{\"p\":\"1\"}}}}}}' -o yaml", ""),
            ("get -f - -o wide", text), ("describe -f -", json.dumps(last)), ("replace -f -", text), ("delete --wait=false -f -", text),
        ]  # fmt: skip
        if dice.chance(0.3):
            lines.insert(0, ("create --dry-run=server -o yaml -f -", text))
        if dice.chance(0.2):
            lines = lines[1:]
        steps: list[Step] = []
        for line, stdin in lines:
            changes = (
                line.split()[0] in ("create", "apply", "replace", "patch", "delete") and "dry-run" not in line
            )
            steps.append({"kubectl": line + (tried if changes else ""), "stdin": stdin})
        return Conversation("commands", name, steps, [chosen.kind.crd] if chosen.kind.crd else [])

    def _one(self, dice: Dice) -> Objects:
        """Kinds that are built in as often as those of projects; a rare kind as often as a common one."""
        builtin = dice.chance(0.5)
        own = [each for each in self._found if (each.kind.crd is None) == builtin] or self._found
        kinds = sorted({(each.kind.api_version, each.kind.kind) for each in own})
        wanted = dice.one(kinds)
        return dice.one([each for each in own if (each.kind.api_version, each.kind.kind) == wanted])


def _only_tried(kind: Kind) -> bool:
    return kind.cluster and kind.crd is None and kind.kind not in _HARMLESS


def _objects(project: str, documents: list[dict[str, Any]]) -> list[Objects]:
    custom: dict[tuple[str, str], tuple[Kind, dict[str, Any]]] = {}
    for each in documents:
        if each["kind"] == "CustomResourceDefinition":
            custom |= _of_definition(each)
    found: dict[tuple[str, str], Objects] = {}
    for each in documents:
        key = (each["apiVersion"], each["kind"])
        if key not in found:
            kind, schema = custom.get(key) or (served(*key), {})
            if kind is None or each["kind"] in _LEFT:
                continue
            found[key] = Objects(project, kind, schema or definition_of(*key) or {}, [])
        found[key].found.append(each)
    return list(found.values())


def _of_definition(crd: dict[str, Any]) -> dict[tuple[str, str], tuple[Kind, dict[str, Any]]]:
    crd = copy.deepcopy(crd)
    crd.pop("status", None)
    crd["metadata"] = {
        key: value for key, value in crd["metadata"].items() if key in ("name", "annotations", "labels")
    }
    spec = crd.get("spec")
    if not isinstance(spec, dict) or not {"group", "names", "versions", "scope"} <= spec.keys():
        return {}  # a part of one, for a test
    spec.pop("conversion", None)  # nobody answers for a webhook
    found = {}
    for version in spec["versions"]:
        api_version = f"{spec['group']}/{version['name']}"
        kind = Kind(
            f"/apis/{api_version}", spec["names"]["plural"], spec["names"]["kind"], api_version, {}, cluster=spec.get("scope") == "Cluster",
            sub=tuple(version.get("subresources") or ()), crd=crd,
        )  # fmt: skip
        if version.get("served"):
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            found[api_version, kind.kind] = (kind, schema)
    return found


def _sendable(dice: Dice, chosen: Objects, document: dict[str, Any], name: str) -> dict[str, Any]:
    """A manifest in the conversation's namespace; now and then with what only a server writes, as it was found."""
    body = copy.deepcopy(document)
    metadata = body["metadata"]
    metadata.pop("namespace", None)
    if chosen.kind.cluster or "name" not in metadata or dice.chance(0.7):
        metadata["name"] = chosen.kind.named(name)
        metadata.pop("generateName", None)
    if dice.chance(0.85):
        for key in _READ_ONLY:
            metadata.pop(key, None)
    metadata.pop("deletionTimestamp", None)
    if chosen.kind.cluster:
        metadata.pop("finalizers", None)
    return body


def _changed(dice: Dice, chosen: Objects, body: dict[str, Any]) -> dict[str, Any]:
    """A manifest with a field or more set, left out or damaged."""
    roll = dice.random()
    if roll < 0.65 and chosen.schema:
        for _ in range(dice.randint(1, 3)):
            body = merged(body, branch(dice, chosen.schema, body, 6, top=True))
        return body
    if roll < 0.92:
        return dict(damaged(dice, body, dice.randint(1, 2), keep=("apiVersion", "kind", "metadata")))
    return dict(damaged(dice, body, 1))


def _encoded(dice: Dice, chosen: Objects, step: Step) -> Step:
    forms = (
        ["json", "json", "yaml", "cbor"] if chosen.kind.crd else ["json", "json", "yaml", "cbor", "protobuf"]
    )
    how = dice.one(forms)
    if how != "json":
        step["encoding"] = how
    return step


def _create(dice: Dice, chosen: Objects, body: dict[str, Any], *, plain: bool = False) -> Step:
    step: Step = {"method": "POST", "path": chosen.kind.collection(), "body": body}
    if not plain:
        _encoded(dice, chosen, step)
        if query := write_options(dice, 0.15):
            step["query"] = query
    return _answered(dice, step)


def _answered(dice: Dice, step: Step) -> Step:
    if dice.chance(0.2):
        step.setdefault("headers", {})["Accept"] = dice.one([*_FORMS, *_TABLES])
    return step


def _another(dice: Dice, chosen: Objects, first: dict[str, Any]) -> Step:
    body = _sendable(dice, chosen, dice.one(chosen.found), dice.one(["a", "b", "c", "d"]))
    return _create(dice, chosen, _changed(dice, chosen, body) if dice.chance(0.8) else body)


def _read(dice: Dice, chosen: Objects, first: dict[str, Any]) -> Step:
    kind = chosen.kind
    path = dice.one(
        [
            kind.item("a"),
            kind.item("a"),
            kind.collection(),
            f"{kind.item('a')}/{dice.one(kind.sub or ('status',))}",
        ]
    )
    step: Step = {
        "method": "GET",
        "path": path,
        "headers": {"Accept": dice.one([*_FORMS, *_TABLES, *words.ACCEPTS[:20]])},
    }
    if path == kind.collection():
        labels = first["metadata"].get("labels")
        query: dict[str, Any] = {}
        if kind.cluster:
            query["fieldSelector"] = f"metadata.name={kind.named('a')}"
        if isinstance(labels, dict) and labels and dice.chance(0.3):
            key = dice.one(sorted(labels))
            query["labelSelector"] = dice.one(
                [f"{key}={labels[key]}", f"!{key}", f"{key}!={labels[key]}", f"{key} in ({labels[key]},x)"]
            )
        if dice.chance(0.2):
            query |= {"watch": "1", "timeoutSeconds": "1", "resourceVersion": "0"}
            step["headers"]["Accept"] = dice.one(_FORMS[:1] + _TABLES[:1])
        step["query"] = query
    return step


def _replace(dice: Dice, chosen: Objects, first: dict[str, Any]) -> Step:
    body = _changed(
        dice, chosen, {**first, "metadata": {**first["metadata"], "name": chosen.kind.named("a")}}
    )
    step = _encoded(dice, chosen, {"method": "PUT", "path": chosen.kind.item("a"), "body": body})
    if query := write_options(dice, 0.15):
        step["query"] = query
    return _answered(dice, step)


def _part(dice: Dice, chosen: Objects, first: dict[str, Any]) -> dict[str, Any]:
    """Fields of one top-level value, for a patch."""
    body = _changed(dice, chosen, first)
    keys = [key for key in body if key not in ("apiVersion", "kind", "metadata")] or ["metadata"]
    changed = [key for key in keys if body.get(key) != first.get(key)] or keys
    key = dice.one(changed)
    value = body[key]
    if isinstance(value, dict) and value and dice.chance(0.7):
        inner = [
            each
            for each in value
            if not isinstance(first.get(key), dict) or value[each] != first[key].get(each)
        ] or list(value)
        value = {each: value[each] for each in inner}
    return {key: value}


def _patch(dice: Dice, chosen: Objects, first: dict[str, Any]) -> Step:
    how = dice.one(["merge", "strategic", "json"] if chosen.kind.crd is None else ["merge", "merge", "json"])
    body: Any = json_patch(dice, first) if how == "json" else _part(dice, chosen, first)
    step: Step = {
        "method": "PATCH",
        "path": chosen.kind.item("a"),
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES[how]},
    }
    if query := write_options(dice, 0.15):
        step["query"] = query
    return _answered(dice, step)


def _apply(dice: Dice, chosen: Objects, first: dict[str, Any]) -> Step:
    body = copy.deepcopy(first)
    if dice.chance(0.5):
        body = {
            "apiVersion": body["apiVersion"],
            "kind": body["kind"],
            "metadata": {},
            **_part(dice, chosen, first),
        }
    elif dice.chance(0.6):
        body = _changed(dice, chosen, body)
    if isinstance(body.get("metadata"), dict):
        body["metadata"]["name"] = chosen.kind.named("a")
        body["metadata"].pop("managedFields", None)
    step: Step = {
        "method": "PATCH",
        "path": chosen.kind.item("a"),
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES["apply"]},
    }
    step["query"] = {"fieldManager": dice.one(["m1", "m2"])}
    if dice.chance(0.5):
        step["query"]["force"] = "true"
    return _answered(dice, step)


def _status(dice: Dice, chosen: Objects, first: dict[str, Any]) -> Step:
    """A write of the status, drawn along its schema."""
    schema = {"properties": {"status": (chosen.schema.get("properties") or {}).get("status", {})}}
    status: Any = {"status": copy.deepcopy(first.get("status", {}))}
    for _ in range(dice.randint(1, 3)):
        status = merged(status, branch(dice, schema, status, 6))
    path = f"{chosen.kind.item('a')}/status"
    if dice.chance(0.5):
        return {
            "method": "PATCH",
            "path": path,
            "body": status,
            "headers": {"Content-Type": words.PATCH_TYPES["merge"]},
        }
    metadata = {**first["metadata"], "name": chosen.kind.named("a")}
    return _encoded(
        dice, chosen, {"method": "PUT", "path": path, "body": {**first, "metadata": metadata, **status}}
    )


def _delete(dice: Dice, chosen: Objects, first: dict[str, Any]) -> Step:
    step: Step = {"method": "DELETE", "path": chosen.kind.item("a")}
    if dice.chance(0.5):
        step["body"] = delete_options(dice)
    return step
