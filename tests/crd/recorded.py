"""The recorded conversations of the area crd, played without a server as far as that goes.

Creates of CRDs and of custom objects are computed whole: status, message, causes, warnings, and the spec
that comes back. Updates are computed on the object that the recording shows as stored. What needs a server
(reads, lists, watches, deletes, managed fields) is left out, and so is a step that a later part of the API
decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.crd import check_crd, default_crd, prepare_crd_for_create, prepare_crd_for_update
from apimachinery.crd.objects import validate_custom_resource
from apimachinery.merge import json_patch, merge_patch
from apimachinery.merge.errors import MergeError
from apimachinery.meta.errors import ApiError
from apimachinery.meta.field_errors import FieldError, invalid
from apimachinery.schema.builtin import BuiltinSchema, compile_builtin
from apimachinery.schema.custom import CustomSchema, compile_custom
from apimachinery.schema.typed_form import compile_typed_form
from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.strict import duplicate_fields, field_texts, strict_error
from kubernetes_api.zero_values import ZERO_VALUES

ROOT = Path(__file__).parents[2]
SHARED = ROOT / "../shared"
SCENARIOS = SHARED / "parity/scenarios"
CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SUFFIX = "4711"
"""What stands for the run's own part of names, ``{run}`` in requests and ``RUN`` in answers."""

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
Json = dict[str, Any]


@cache
def definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "generated/kubernetes_api/definitions.json").read_bytes())
    return found


@cache
def crd_schema() -> BuiltinSchema:
    return compile_builtin(CRD, definitions())


@cache
def crd_form() -> Any:
    return compile_typed_form(CRD, definitions(), ZERO_VALUES)


@dataclass
class Answer:
    """What a step answers: status, message and causes of a refusal, or the spec; and the warnings."""

    status: int
    message: str = ""
    causes: list[tuple[str, str, str]] = field(default_factory=list)
    spec: Any = None
    warnings: list[str] = field(default_factory=list)
    made: Json | None = field(default=None, compare=False, repr=False)


@dataclass
class Step:
    """One computed step beside the recorded one."""

    name: str
    wanted: Answer
    got: Answer

    @property
    def same_body(self) -> bool:
        wanted, got = self.wanted, self.got
        return wanted.status == got.status and wanted.spec == got.spec and _shape(wanted) == _shape(got)

    @property
    def same_text(self) -> bool:
        return self.same_body and self.wanted == self.got


def _shape(answer: Answer) -> list[tuple[str, str]]:
    return [(reason, at) for reason, at, _ in answer.causes]


def play(path: Path) -> Iterator[Step]:
    """Yields every step of a scenario that is computed, with its recorded answer."""
    scenario = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    world = World()
    for raw in scenario["steps"]:
        step = json.loads(
            json.dumps({k: v for k, v in raw.items() if k != "expect"}).replace("{run}", SUFFIX)
        )
        got = world.compute(step)
        expect = json.loads(json.dumps(raw.get("expect"), default=str).replace("RUN", SUFFIX))
        expect = expect and json.loads(re.sub(r"<uid:\d+>", "<uid>", json.dumps(expect)))
        if expect is not None and got is not None:
            wanted = recorded_answer(expect)
            forget(step.get("ignore", []), wanted, got)
            yield Step(f"{path.stem}: {step.get('id')}", wanted, got)
        if expect is not None:
            world.note(step, expect)
        elif got is not None and got.made is not None and got.status < 300:
            world.note(step, {"status": got.status, "body": got.made})


def recorded_answer(expect: Json) -> Answer:
    body = expect.get("body") or {}
    warnings = [
        each.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for each in _warnings(expect)
    ]
    if expect["status"] < 300:
        return Answer(expect["status"], spec=body.get("spec"), warnings=warnings)
    causes = (body.get("details") or {}).get("causes") or []
    told = [(each.get("reason", ""), each.get("field", ""), each.get("message", "")) for each in causes]
    return Answer(expect["status"], body.get("message", ""), told, warnings=warnings)


def _warnings(expect: Json) -> list[str]:
    found: list[str] = (expect.get("headers") or {}).get("warning") or []
    return found


def forget(ignored: list[str], wanted: Answer, got: Answer) -> None:
    """Does not compare what the recording does not hold: orders that change from run to run."""
    for path in ignored:
        if path == "body.message":
            wanted.message = got.message
        elif path == "body.details.causes":
            wanted.causes = got.causes
        elif path == "body.spec":
            wanted.spec = got.spec
        elif path.startswith("body.details.causes.") and path.endswith((".message", ".field")):
            place = path.split(".")[3]
            chosen = range(len(wanted.causes)) if place == "*" else [int(place)]
            at = 2 if path.endswith("message") else 1
            if len(wanted.causes) == len(got.causes):
                for index in chosen:
                    cause = list(wanted.causes[index])
                    cause[at] = got.causes[index][at]
                    wanted.causes[index] = (cause[0], cause[1], cause[2])


class World:
    """The CRDs and objects that the steps so far have made, as the recording shows them."""

    def __init__(self) -> None:
        self.crds: dict[str, Json] = {}
        self.compiled: dict[tuple[str, str], tuple[CustomSchema, Json]] = {}
        self.objects: dict[str, Json] = {}

    def compute(self, step: Json) -> Answer | None:
        method, path = step.get("method"), step.get("path", "")
        if method == "POST" and path == CRDS:
            return self._create_crd(step)
        if method == "PATCH" and path.startswith(f"{CRDS}/") and path.endswith("/status"):
            name = path.split("/")[-2]
            made = patched(self.crds.get(name, {}), step, (step.get("headers") or {}).get("Content-Type", ""))
            if made is not None and name in self.crds:
                self.crds[name]["status"] = made["status"]
            return None
        if method == "PATCH" and path.startswith(f"{CRDS}/"):
            return self._patch_crd(step, path.rpartition("/")[2])
        target = self._target(path)
        if target is None or (
            "text" in step and "yaml" in json.dumps(step.get("headers", {})) and method == "PATCH"
        ):
            return None
        if method == "POST":
            return self._create(step, *target)
        if method in ("PUT", "PATCH"):
            return self._update(step, *target)
        return None

    def note(self, step: Json, expect: Json) -> None:
        """Takes over what the server answered."""
        body = json.loads(json.dumps(expect.get("body")))
        if not isinstance(body, dict) or expect["status"] >= 300 or (step.get("query") or {}).get("dryRun"):
            return
        if body.get("kind") == "CustomResourceDefinition":
            self._learn(body)
        elif (
            step.get("method") in ("POST", "PUT", "PATCH", "GET")
            and "metadata" in body
            and "items" not in body
        ):
            self.objects[f"{body['apiVersion']}/{body['metadata'].get('name')}"] = body

    def _learn(self, crd: Json) -> None:
        if "spec" not in crd or "name" not in crd.get("metadata", {}):
            return
        self.crds[crd["metadata"]["name"]] = crd
        for version in crd["spec"]["versions"]:
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                key = (crd["spec"]["group"], version["name"])
                self.compiled[key] = (compile_custom(schema), crd)

    def _target(self, path: str) -> tuple[str, str, str] | None:
        parts = path.split("/")
        if len(parts) < 5 or parts[1] != "apis" or (parts[2], parts[3]) not in self.compiled:
            return None
        crd = self.compiled[parts[2], parts[3]][1]
        rest = parts[4:]
        namespaced = rest[0] == "namespaces" and len(rest) > 2
        if namespaced != (crd["spec"]["scope"] == "Namespaced"):
            return None
        rest = rest[2:] if namespaced else rest
        storage = next(each for each in crd["spec"]["versions"] if each["storage"])
        if len(rest) > 2 or storage["name"] != parts[3]:
            return None
        return parts[2], parts[3], "/".join(rest[1:])

    def _create_crd(self, step: Json) -> Answer | None:
        if "body" not in step:
            return None
        crd = deepcopy(step["body"])
        if crd.get("apiVersion") != "apiextensions.k8s.io/v1":
            return None
        answer = read_crd(crd, (step.get("query") or {}).get("fieldValidation", "Warn"))
        if answer.status:
            return answer
        if (crd.get("metadata") or {}).get("generateName"):
            crd["metadata"]["name"] = crd["metadata"]["generateName"] + "bcdfg"
        default_crd(crd)
        prepare_crd_for_create(crd)
        return self._judged(crd, check_crd(crd), answer, 201)

    def _judged(self, crd: Json, faults: list[FieldError], answer: Answer, good: int) -> Answer:
        if faults:
            name = crd["metadata"].get("name", "")
            return refusal(
                invalid("CustomResourceDefinition", "apiextensions.k8s.io", name, faults), answer.warnings
            )
        crd_form()(crd)
        self._learn(deepcopy(crd))
        answer.status, answer.spec, answer.made = good, crd["spec"], crd
        return answer

    def _patch_crd(self, step: Json, name: str) -> Answer | None:
        content = (step.get("headers") or {}).get("Content-Type", "")
        old = self.crds.get(name)
        if old is None or step.get("query"):
            return None
        crd = patched(old, step, content)
        if crd is None or crd["metadata"]["name"] != name or crd_schema().decode_fault(crd):
            return None
        answer = Answer(0, warnings=field_texts([], crd_schema().prune(crd)))
        default_crd(crd)
        prepare_crd_for_update(crd, old)
        crd["metadata"]["resourceVersion"] = "1"
        stored = deepcopy(old)
        stored.setdefault("status", {})["conditions"] = [{"type": "Established", "status": "True"}]
        return self._judged(crd, check_crd(crd, stored), answer, 200)

    def _create(self, step: Json, group: str, version: str, name: str) -> Answer | None:
        schema, crd = self.compiled[group, version]
        read = read_object(step, schema, crd["spec"]["names"]["kind"], version)
        if isinstance(read, Answer) or read is None:
            return read
        obj, warnings = read
        if obj.get("kind") != crd["spec"]["names"]["kind"] or obj.get("apiVersion") != f"{group}/{version}":
            return None
        schema.default(obj)
        meta = obj.setdefault("metadata", {})
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = meta["generateName"] + "bcdfg"
        return judged_object(obj, None, schema, crd, warnings, 201)

    def _update(self, step: Json, group: str, version: str, name: str) -> Answer | None:
        schema, crd = self.compiled[group, version]
        old = self.objects.get(f"{group}/{version}/{name}")
        content = (step.get("headers") or {}).get("Content-Type", "")
        if old is None or (step.get("query") or {}).get("fieldManager") or step.get("query"):
            return None
        if step["method"] == "PUT":
            body = step.get("body") or {}
            if "resourceVersion" not in (body.get("metadata") or {}):
                return None
            obj = deepcopy(body)
        else:
            made = patched(old, step, content)
            if made is None:
                return None
            obj = made
        if "metadata" not in obj:
            return None
        obj["metadata"]["resourceVersion"] = "1"
        if obj.get("apiVersion") != f"{group}/{version}" or obj["metadata"].get("name") != name:
            return None
        obj["metadata"].pop("managedFields", None)
        carry_over(obj["metadata"], old["metadata"])
        texts = field_texts([], schema.prune(obj))
        schema.default(obj)
        return judged_object(obj, old, schema, crd, texts, 200)


def carry_over(meta: Json, old: Json) -> None:
    """Takes over, in place, what an update cannot say or may leave out: uid, times, generation, namespace."""
    for name in ("namespace", "uid"):
        if not meta.get(name) and old.get(name):
            meta[name] = old[name]
    for name in ("creationTimestamp", "deletionTimestamp", "generation"):
        if old.get(name):
            meta[name] = old[name]
    if old.get("deletionGracePeriodSeconds") is not None and meta.get("deletionGracePeriodSeconds") is None:
        meta["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]


def read_crd(crd: Json, mode: str) -> Answer:
    """Decodes a CRD in place: an answer of status 0 and its warnings, or the refusal."""
    kind = "CustomResourceDefinition"
    fault = crd_schema().decode_fault(crd)
    if fault is not None:
        return Answer(400, f'{kind} in version "v1" cannot be handled as a {kind}: {fault}')
    texts = field_texts([], crd_schema().prune(crd))
    if texts and mode == "Strict":
        return Answer(400, f'{kind} in version "v1" cannot be handled as a {kind}: {strict_error(texts)}')
    return Answer(0, warnings=texts if mode == "Warn" else [])


def read_object(
    step: Json, schema: CustomSchema, kind: str, version: str
) -> tuple[Json, list[str]] | Answer | None:
    """Decodes the body of a create: the pruned object and its warnings, or the refusal."""
    mode = (step.get("query") or {}).get("fieldValidation") or "Warn"
    if mode not in ("Ignore", "Warn", "Strict"):
        return None
    said: list[str] = []
    if "yaml" in (step.get("headers") or {}).get("Content-Type", ""):
        lines: list[str] = []
        obj = wire_yaml.decode(step["text"].encode(), lines)
        said = lines
    else:
        data = step["text"].encode() if "text" in step else json.dumps(step.get("body")).encode()
        try:
            obj = json.loads(data)
        except ValueError:
            return None
        said = field_texts(duplicate_fields(data, obj), []) if isinstance(obj, dict) else []
    if not isinstance(obj, dict) or not obj.get("kind"):
        return None
    fault = schema.decode_fault(obj)
    if fault is not None:
        return Answer(400, f'{kind} in version "{version}" cannot be handled as a {kind}: {fault}')
    texts = [*said, *field_texts([], schema.prune(obj))]
    if texts and mode == "Strict":
        if said and said[0].startswith("line "):
            texts = [
                "yaml: unmarshal errors:\n" + "\n".join(f"  {each}" for each in said),
                *texts[len(said) :],
            ]
        return Answer(
            400, f'{kind} in version "{version}" cannot be handled as a {kind}: {strict_error(texts)}'
        )
    return obj, texts if mode == "Warn" else []


def judged_object(
    obj: Json, old: Json | None, schema: CustomSchema, crd: Json, texts: list[str], good: int
) -> Answer:
    """Validates an object, CEL rules included, and gives the answer."""
    group, names = crd["spec"]["group"], crd["spec"]["names"]
    version = obj["apiVersion"].rpartition("/")[2]
    raw = next(each for each in crd["spec"]["versions"] if each["name"] == version)
    rules = compile_rules(raw["schema"]["openAPIV3Schema"])
    if ((raw.get("subresources") or {}).get("status")) is not None:
        obj.pop("status", None)
        if old is not None and "status" in old:
            obj["status"] = old["status"]
    outcome = validate_custom_resource(obj, old, schema, rules=rules, namespaced=False, scale=None)
    faults = [each for each in outcome.faults if not each.field.startswith("metadata.namespace")]
    warnings = [*texts, *outcome.warnings]
    if faults:
        name = (obj.get("metadata") or {}).get("name", "")
        return refusal(invalid(names["kind"], group, name, faults), warnings)
    spec = obj.get("spec")
    spec = json.loads(UUID.sub("<uid>", json.dumps(spec)))
    return Answer(good, spec=normal(spec), warnings=warnings, made=obj)


def refusal(error: ApiError, warnings: list[str]) -> Answer:
    causes = [(each.reason, each.field, each.message) for each in error.causes]
    return Answer(error.code, error.message, causes, warnings=warnings)


def normal(value: Any) -> Any:
    """Writes a float that is whole as an integer, as the encoder does."""
    if isinstance(value, dict):
        return {name: normal(each) for name, each in value.items()}
    if isinstance(value, list):
        return [normal(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e18 else value


def patched(old: Json, step: Json, content: str) -> Json | None:
    """The object after a merge patch or JSON patch, None for any other patch or one that fails."""
    if "body" not in step:
        return None
    if content == "application/merge-patch+json":
        found: Json = merge_patch.apply(old, step["body"])
        return found
    if content == "application/json-patch+json":
        try:
            changed: Json = json_patch.apply(old, step["body"])
        except MergeError:
            return None
        return changed
    return None
