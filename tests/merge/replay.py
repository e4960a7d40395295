"""Recorded conversations with kube-apiserver, replayed against the merge logic alone.

What a server does around merging is modelled in as little as it takes: objects by place, decoding (typed form of
built-in kinds; pruning and defaults of custom ones), fields that a path never sets, and no-op writes. Values that
only a server gives (uid, times, defaults of built-in kinds) are taken from the answer. A step is computable when
its answer follows from the request and the object before by merging; a refusal is, when merging is what refuses.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from apimachinery.merge import json_patch, merge_patch, scale, strategic
from apimachinery.merge.apply import FieldOwnership, keep_times
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.errors import MergeError, UnknownVersion
from apimachinery.merge.field_set import from_paths
from apimachinery.merge.from_openapi import custom_resource
from apimachinery.schema.builtin import compile_builtin
from apimachinery.schema.custom import compile_custom
from apimachinery.schema.typed_form import compile_typed_form

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT.parent / "shared/parity/scenarios"

SERVED = ("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation", "selfLink")
WITH_STATUS = {"deployments", "pods", "services", "nodes", "jobs", "statefulsets", "horizontalpodautoscalers"}
REFUSALS = re.compile(
    r"^(Apply failed|failed to create typed|invalid object type|metadata\.managedFields must be nil|map: map|"
    r"unknown patch type|invalid patch format|The order in patch|expected a |list element types|merging lists|"
    r"error decoding patch: json: cannot unmarshal|json: cannot unmarshal|Invalid JSON Patch|Request entity is too "
    r"large|the server rejected our request due to an error in our request)"
)
PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
PLACE = re.compile(
    r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))(?:/namespaces/\{ns\})?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>status|scale))?$"
)


@dataclass(slots=True)
class Verdict:
    """One computable step, and where it disagrees (empty where it agrees)."""

    scenario: str
    step: str
    fault: str = ""


@cache
def builtins() -> tuple[dict[str, Any], MergeTypes, dict[tuple[str, str], tuple[str, str]]]:
    """Definitions, merge types, and (apiVersion, plural) → (kind, definition)."""
    definitions = json.loads((ROOT / "generated/kubernetes_api/definitions.json").read_text())
    table: dict[str, Any] = {}
    resources = {}
    for package in sorted((ROOT / "generated/kubernetes_api").iterdir()):
        if (package / "merge_schema.py").exists():
            table |= import_module(f"kubernetes_api.{package.name}.merge_schema").TYPES
        if (package / "resources.py").exists():
            for r in import_module(f"kubernetes_api.{package.name}.resources").RESOURCES:
                resources[r.api_version, r.plural] = (r.kind, r.definition)
    return definitions, MergeTypes(table), resources


@cache
def typed_form(definition: str) -> Any:
    facts = yaml.load((ROOT / "specs/kubernetes/zero_values.yaml").read_text(), Loader=yaml.CSafeLoader)
    table = {name: (fact.get("written") or {}, fact.get("kept") or ()) for name, fact in facts.items()}
    return compile_typed_form(definition, builtins()[0], table)


@dataclass(slots=True)
class Resource:
    """What a path leads to."""

    kind: str
    api_version: str
    custom: dict[str, Any] | None
    definition: str = ""
    has_status: bool = False
    replicas: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def type_of(self, api_version: str) -> Any:
        if self.custom is None:
            if api_version == "autoscaling/v1":
                return builtins()[1].named("io.k8s.api.autoscaling.v1.Scale")
            if api_version != self.api_version:
                raise UnknownVersion
            return builtins()[1].named(self.definition)
        if api_version not in self.custom:
            raise MergeError(f"no version {api_version}")
        return _custom_type(json.dumps(self.custom[api_version]))

    def convert(self, value: Any, api_version: str) -> Any:
        self.type_of(api_version)
        return {**value, "apiVersion": api_version}

    def settle(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The object as decoding leaves it."""
        obj = copy.deepcopy(obj)
        if self.custom is None:
            compile_builtin(self.definition, builtins()[0]).prune(obj)
            typed_form(self.definition)(obj)
            if self.kind == "ConfigMap" and isinstance(obj.get("data"), dict):
                obj["data"] = {key: text or "" for key, text in obj["data"].items()}
            return obj
        schema = self.custom[self.api_version]
        if schema is not None:
            compiled = compile_custom(schema)
            compiled.prune(obj)
            compiled.default(obj)
        metadata = obj.get("metadata", {})
        for name in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
            if name in metadata and not metadata[name]:
                del metadata[name]
        return {key: value for key, value in obj.items() if value is not None}

    def ownership(self, sub: str) -> FieldOwnership:
        ignored = []
        if sub == "scale":
            return FieldOwnership(
                api_version="autoscaling/v1",
                kind="Scale",
                type=builtins()[1].named("io.k8s.api.autoscaling.v1.Scale"),
                subresource=sub,
                empty={"metadata": {}, "spec": {}, "status": {}},
            )
        if sub == "status":
            ignored = [("spec",), ("metadata", "labels") if self.custom is None else ("metadata",)]
        elif self.has_status:
            ignored = [("status",)]
        empty = {} if self.custom is not None else self.settle({})
        versions = self.custom or [self.api_version]
        return FieldOwnership(
            api_version=self.api_version,
            kind=self.kind,
            type=self.type_of(self.api_version),
            subresource=sub,
            converter=self,
            ignored={version: from_paths(ignored) for version in versions} if ignored else None,
            empty=empty,
        )


@cache
def _custom_type(schema: str) -> Any:
    return custom_resource(json.loads(schema))


class World:
    """What a server would hold."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.objects: dict[str, dict[str, Any]] = {}
        self.crds: dict[str, dict[str, Any]] = {}
        self.seconds = 0

    def now(self) -> str:
        self.seconds += 1
        return f"2026-01-01T00:{self.seconds // 60:02d}:{self.seconds % 60:02d}Z"

    def resource(self, api_version: str, plural: str) -> Resource | None:
        group, _, _ = api_version.rpartition("/")
        spec = self.crds.get(f"{plural}.{group}")
        if spec is not None:
            found = Resource(spec["names"]["kind"], api_version, {})
            for version in spec["versions"]:
                name = f"{group}/{version['name']}"
                found.custom[name] = version.get("schema", {}).get("openAPIV3Schema")
                parts = version.get("subresources") or {}
                found.has_status = found.has_status or "status" in parts
                path = parts.get("scale", {}).get("specReplicasPath", "")
                found.replicas[name] = tuple(path.strip(".").split(".")) if path else ()
            return found if api_version in found.custom else None
        known = builtins()[2].get((api_version, plural))
        if known is None:
            return None
        replicas = {api_version: ("spec", "replicas")}
        return Resource(known[0], api_version, None, known[1], plural in WITH_STATUS, replicas)


def replay(path: Path) -> Iterator[Verdict]:
    """The verdict on each computable step of a scenario."""
    scenario = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    world = World(f"p-{path.stem[:30]}-RUN")
    for step in scenario["steps"]:
        if "method" not in step or "as" in step:
            continue
        match = PLACE.match(step["path"].replace("{run}", "RUN"))
        if match is None:
            continue
        fault = _play(world, step, match)
        if fault is not None:
            yield Verdict(path.stem, step.get("id", step["method"]), fault)


def _sent(world: World, value: Any) -> Any:
    """A request's content as the recorded server saw it, in the placeholders of the answers."""
    return json.loads(json.dumps(value).replace("{run}", "RUN").replace("{ns}", world.namespace))


def _play(world: World, step: dict[str, Any], match: re.Match[str]) -> str | None:
    method, name, sub = step["method"], match["name"], match["sub"] or ""
    body = _sent(world, step["body"]) if "body" in step else None
    if match["plural"] == "customresourcedefinitions":
        if step.get("expect", {}).get("status", 200) >= 300 or not isinstance(body, dict | list):
            return None
        if method == "POST":
            world.crds[body["metadata"]["name"]] = body["spec"]
        elif method == "PUT":
            world.crds[name] = body["spec"]
        elif method == "PATCH" and name in world.crds:
            change = json_patch.apply if isinstance(body, list) else merge_patch.apply
            world.crds[name] = change({"spec": world.crds[name]}, body)["spec"]
        return None
    api_version = match["core"] or f"{match['group']}/{match['version']}"
    resource = world.resource(api_version, match["plural"])
    if resource is None:
        return None
    answer = step.get("expect") or {"status": 200, "body": None}
    said = answer["body"]
    if "stringData" in str(body) or "11111111-1111" in str(body):
        body = None  # what the server makes of it does not follow from merging
    if "text" in step:
        if step.get("headers", {}).get("Content-Type") != "application/apply-patch+yaml":
            return _without_request(world, match, said, answer)
        try:
            body = yaml.load(_sent(world, step["text"]), Loader=yaml.CSafeLoader)
        except yaml.YAMLError:
            return None
        body = {} if body is None else body
    place = f"{match['group'] or ''}/{match['plural']}/{name or _name(step.get('body'))}"
    if method == "GET":
        live = world.objects.get(place)
        if live is None or sub == "scale" or answer["status"] != 200 or not isinstance(said, dict):
            return None
        return _differing_owners(live, said) if "managedFields" in str(said) else None
    if method == "DELETE":
        if answer["status"] == 200:
            world.objects.pop(place, None)
        return None
    if method not in ("POST", "PUT", "PATCH"):
        return None
    if said is not None and answer["status"] < 300 and said.get("kind") in ("Status", "Table"):
        return None
    live = world.objects.get(place)
    if live is not None and resource.custom is not None:
        live = {**live, "apiVersion": api_version}
    try:
        new = (
            None
            if body is None and "text" not in step and not _says_null(step)
            else _written(world, step, resource, sub, live, body, said if answer["status"] < 300 else None)
        )
    except MergeError as error:
        if answer["status"] < 300:
            return f"refused: {error}"
        return _differing_refusal(error, said)
    if new is None:
        if said is not None and answer["status"] < 300 and said.get("kind") == resource.kind:
            world.objects[place] = _reset(live, said, sub)
        return None
    if answer["status"] >= 300:
        computable = REFUSALS.match(said.get("message") or "") and answer["status"] != 415
        return "not refused" if computable and "force" not in str(step.get("query")) else None
    fault = ""
    if said is not None:
        fault = _differing_object(resource, sub, new, said)
        if not fault and sub != "scale" and "managedFields" not in str(step.get("ignore")):
            fault = _differing_owners(new, said)
    if "dryRun" not in step.get("query", {}):
        world.objects[place] = new if not fault or said is None else _reset(new, said, sub)
    return fault


def _says_null(step: dict[str, Any]) -> bool:
    return "body" in step and step["body"] is None


def _name(body: Any) -> str:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _without_request(world: World, match: re.Match[str], said: Any, answer: Any) -> None:
    """A request of broken text, whose effect, if any, is only read from the answer."""
    if answer["status"] < 300 and isinstance(said, dict) and match["name"]:
        place = f"{match['group'] or ''}/{match['plural']}/{match['name']}"
        world.objects[place] = _reset(world.objects.get(place), said, "")


def _reset(new: Any, said: Any, sub: str) -> dict[str, Any]:
    """The object to go on with after a disagreement: as answered, with the times that were computed."""
    if sub == "scale":
        return new
    said = copy.deepcopy(said)
    times = {
        _owner(entry): entry.get("time") for entry in (new or {}).get("metadata", {}).get("managedFields", [])
    }
    for entry in said["metadata"].get("managedFields", []):
        if entry.get("time") == "<time>":
            entry["time"] = times.get(_owner(entry)) or "2026-01-01T00:00:00Z"
    return said


def _written(
    world: World, step: dict[str, Any], resource: Resource, sub: str, live: Any, body: Any, said: Any
) -> dict[str, Any] | None:
    method = step["method"]
    agent = step.get("headers", {}).get("User-Agent", "parity/1")
    manager = step.get("query", {}).get("fieldManager") or agent.partition("/")[0]
    kind = PATCHES.get((step.get("headers", {}).get("Content-Type") or "").partition(";")[0])
    if method == "PATCH" and kind is None:
        return None
    if kind == "apply" and not step.get("query", {}).get("fieldManager"):
        return None
    force = str(step.get("query", {}).get("force", "false")) not in ("false", "0")
    if kind is not None and kind != "apply" and "force" in step.get("query", {}):
        return None
    if live is None and (sub or kind not in (None, "apply")):
        return None
    if sub == "scale":
        return _scaled(world, resource, live, body, kind, manager, force)
    ownership = resource.ownership(sub)
    now = world.now()
    if kind == "apply":
        new = ownership.apply(live, body, manager, force=force, now=now)
        entries = (
            new["metadata"].pop("managedFields", None) if "managedFields" in new.get("metadata", {}) else None
        )
        new = _served(resource, sub, live, {**new, "metadata": dict(new["metadata"])}, said)
        if entries:
            new = {**new, "metadata": {**new["metadata"], "managedFields": entries}}
        return keep_times(live, new) if live is not None else new
    if kind == "strategic":
        if resource.custom is not None:
            return None
        patched = strategic.apply(live, body, builtins()[1].patch_type(resource.definition))
    elif kind == "merge":
        patched = merge_patch.apply(live, body)
    elif kind == "json":
        patched = json_patch.apply(live, body)
    else:
        patched = body
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata", {}), dict):
        return None
    new = _served(resource, sub, live, patched, said)
    new = ownership.update(live, new, manager, now=now)
    return keep_times(live, new) if live is not None else new


def _served(resource: Resource, sub: str, live: Any, obj: dict[str, Any], said: Any) -> dict[str, Any]:
    """``obj`` as a server would hold it: decoded, with what only it gives, without what the path never sets."""
    entries = (obj.get("metadata") or {}).get("managedFields")
    obj = resource.settle(obj)
    metadata = dict(obj.get("metadata") or {})
    source = (said or live or {}).get("metadata", {})
    for name in SERVED:
        metadata.pop(name, None)
        if name in source:
            metadata[name] = source[name]
    metadata.pop("managedFields", None)
    if entries is not None and not (resource.custom is not None and entries == []):
        metadata["managedFields"] = entries
    obj["metadata"] = metadata
    if sub == "status":
        obj = {**(live or {}), "status": obj.get("status")}
        obj["metadata"] = {**{k: v for k, v in live["metadata"].items() if k != "managedFields"}}
        obj["metadata"].update({name: source[name] for name in SERVED if name in source})
        if obj["status"] is None:
            del obj["status"]
        if "managedFields" in live["metadata"]:
            obj["metadata"]["managedFields"] = live["metadata"]["managedFields"]
    elif resource.has_status:
        obj.pop("status", None)
        if live is not None and "status" in live:
            obj["status"] = live["status"]
        elif resource.custom is None and said is not None and "status" in said:
            obj["status"] = said["status"]
    if resource.custom is None and said is not None and resource.kind != "ConfigMap":
        obj = _defaulted(obj, said)
    return obj


def _defaulted(obj: Any, said: Any) -> Any:
    """``obj`` with what the answer has beside it: defaults."""
    if isinstance(obj, dict) and isinstance(said, dict):
        out = {key: _defaulted(value, said.get(key)) for key, value in obj.items()}
        return {
            **{key: value for key, value in said.items() if key not in obj and key != "managedFields"},
            **out,
        }
    if isinstance(obj, list) and isinstance(said, list) and len(obj) == len(said):
        return [_defaulted(item, other) for item, other in zip(obj, said, strict=True)]
    return obj


def _scaled(
    world: World, resource: Resource, live: Any, body: Any, kind: str | None, manager: str, force: bool
) -> dict[str, Any] | None:
    path = resource.replicas.get(resource.api_version)
    if not path or live is None:
        return None
    holder: Any = live
    for name in path[:-1]:
        holder = holder.get(name, {})
    entries = scale.to_scale(live["metadata"].get("managedFields"), resource.replicas)
    metadata = {"name": live["metadata"]["name"], "uid": "u"}
    shown = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {**metadata, "managedFields": entries} if entries else metadata,
        "spec": {"replicas": holder.get(path[-1], 0)},
        "status": {},
    }
    ownership = resource.ownership("scale")
    now = world.now()
    if kind == "apply":
        new = ownership.apply(shown, body, manager, force=force, now=now)
    else:
        change = {"json": json_patch.apply, "merge": merge_patch.apply}.get(kind or "", lambda _, new: new)
        if kind == "strategic":
            if resource.custom is not None:
                return None
            new = strategic.apply(shown, body, builtins()[1].patch_type("io.k8s.api.autoscaling.v1.Scale"))
        else:
            new = change(shown, body)
        new = {**shown, "spec": new["spec"]}
        new = ownership.update(shown, new, manager, now=now)
    after = new["metadata"].get("managedFields", [])
    out = copy.deepcopy(live)
    holder = out
    for name in path[:-1]:
        holder = holder.setdefault(name, {})
    holder[path[-1]] = new["spec"]["replicas"]
    folded = scale.to_parent(
        live["metadata"].get("managedFields"), after, resource.api_version, resource.replicas
    )
    out["metadata"]["managedFields"] = folded
    return keep_times(live, out)


def _owner(entry: dict[str, Any]) -> tuple[str, ...]:
    version = entry["apiVersion"] if entry["operation"] == "Update" else ""
    return (entry["operation"], entry.get("manager", ""), version, entry.get("subresource", ""))


def _differing_owners(new: Any, said: Any) -> str:
    def shown(obj: Any) -> dict[tuple[str, ...], Any]:
        out = {}
        for entry in obj["metadata"].get("managedFields") or []:
            # What recordings have in place of a uid is escaped in a key, as a text with < is.
            fields = json.dumps(entry["fieldsV1"]).replace(r"\\u003c", "<").replace(r"\\u003e", ">")
            out[_owner(entry)] = (entry["apiVersion"], json.loads(fields), "time" in entry)
        return out

    mine, theirs = shown(new), shown(said)
    return "" if mine == theirs else f"managedFields: {_diff(theirs, mine)}"


def _differing_object(resource: Resource, sub: str, new: Any, said: Any) -> str:
    if sub == "scale":
        path = resource.replicas[resource.api_version]
        value: Any = new
        for name in path:
            value = value.get(name, {})
        return "" if (value or 0) == said["spec"].get("replicas", 0) else "replicas differ"
    mine, theirs = copy.deepcopy(new), copy.deepcopy(said)
    for obj in (mine, theirs):
        for name in (*SERVED, "managedFields"):
            obj["metadata"].pop(name, None)
    return "" if mine == theirs else f"object: {_diff(theirs, mine)}"


def _differing_refusal(error: MergeError, said: Any) -> str:
    mine = (error.code, error.reason, error.message.replace("RUN-RUN", "RUN"))
    theirs = (said.get("code"), said.get("reason", ""), said.get("message", mine[2]))
    if mine != theirs:
        return f"refusal: {theirs} is {mine}"
    causes = said.get("details", {}).get("causes")
    if causes and causes != [
        {"reason": c.reason, "message": c.message, "field": c.field} for c in error.causes
    ]:
        return f"causes: {causes}"
    return ""


def _diff(theirs: Any, mine: Any) -> str:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        parts = [
            f"{key}: {_diff(theirs.get(key, '-'), mine.get(key, '-'))}"
            for key in {**theirs, **mine}
            if theirs.get(key, "-") != mine.get(key, "-")
        ]
        return "{" + "; ".join(parts) + "}"
    return f"{json.dumps(theirs, default=str)} is {json.dumps(mine, default=str)}"
