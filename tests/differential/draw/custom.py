"""CRDs, right and wrong, and objects of random ones: validation, defaults, pruning, columns, selectors, versions."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import schemas, words
from tests.differential.draw.kinds import Kind, crd, custom, version
from tests.differential.draw.rest import json_patch, write_options
from tests.differential.draw.words import Dice, damaged
from tests.differential.play import CRDS

_POOL: dict[int, list[Kind]] = {}


def _kinds(dice: Dice) -> list[Kind]:
    """One of a few CRDs of a run; installing one for every conversation would take most of its time."""
    number = dice.randrange(24)
    if number not in _POOL:
        own = Dice(f"schemas of crd {number}")
        schema = schemas.root(own, depth=3, checks=0.5, defaults=0.3)
        if any("x-kubernetes-validations" in each for each in schemas.walk(schema)):
            schemas.bound(schema)
        other = {**copy.deepcopy(schema), "description": "as it was"}
        names: dict[str, Any] = {"scope": "Cluster" if own.chance(0.1) else "Namespaced"}
        subresources: dict[str, Any] = {"status": {}} if own.chance(0.5) else {}
        definition = crd("samples", "Sample", f"dc{number}", [
            version("v1", schema, subresources=subresources, additionalPrinterColumns=_columns(own, schema), selectableFields=_selectable(own, schema)),
            version("v1beta1", other, storage=False, subresources=subresources, **({"deprecated": True, "deprecationWarning": "gone soon"} if own.chance(0.3) else {})),
        ], **names)  # fmt: skip
        _POOL[number] = [custom(definition, {}, [], 0), custom(definition, {}, [], 1)]
    return _POOL[number]


def _plain(name: str) -> bool:
    return name.isalnum()


def _columns(dice: Dice, schema: dict[str, Any]) -> list[dict[str, Any]]:
    columns = []
    for name, each in schema["properties"]["spec"]["properties"].items():
        if _plain(name) and dice.chance(0.7):
            kind = each.get("type", "string")
            suffix = dice.one(["", "", "[*]", "[0]", "[?(@.name=='a')].size"]) if kind == "array" else ""
            columns.append(
                {
                    "name": name.capitalize(),
                    "type": kind
                    if kind in ("string", "integer", "number", "boolean") and dice.chance(0.8)
                    else dice.one(["string", "date", "integer"]),
                    "jsonPath": f".spec.{name}{suffix}",
                }
            )
    columns.append({"name": "Whole", "type": "string", "jsonPath": ".spec", "priority": 1})
    return columns


def _selectable(dice: Dice, schema: dict[str, Any]) -> list[dict[str, Any]]:
    properties = schema["properties"]["spec"]["properties"]
    return [
        {"jsonPath": f".spec.{name}"}
        for name, each in properties.items()
        if each.get("type") in ("string", "integer", "boolean") and _plain(name)
    ][:3]


def draw(dice: Dice, name: str) -> Conversation:
    """Objects of a random CRD three times in four, else CRDs themselves."""
    if dice.chance(0.3):
        return Conversation(
            "crd", name, [_definition(dice, number) for number in range(dice.randint(4, 9))], namespace=False
        )
    both = _kinds(dice)
    steps: list[Step] = []
    for _ in range(dice.randint(8, 18)):
        kind = both[0] if dice.chance(0.8) else both[1]
        steps.append(
            dice.choices([create, put, patch, list_objects, get], [30, 18, 16, 16, 6])[0](dice, kind)
        )
    return Conversation("crd", name, steps, [both[0].crd] if both[0].crd else [])


def made_object(dice: Dice, kind: Kind, name: str) -> dict[str, Any]:
    """An object along its schema, or with a few values that do not fit."""
    wrong = dice.one([0.0, 0.0, 0.04, 0.12])
    made = schemas.value(dice, _served(kind)["schema"]["openAPIV3Schema"], wrong=wrong)
    content = made if isinstance(made, dict) else {}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": words.metadata(dice, kind.named(name), 0.02),
        **{k: v for k, v in content.items() if k != "metadata"},
    }


def _served(kind: Kind) -> dict[str, Any]:
    assert kind.crd is not None
    name = kind.api_version.rpartition("/")[2]
    return next(each for each in kind.crd["spec"]["versions"] if each["name"] == name)


def _options(dice: Dice) -> dict[str, Any]:
    query = write_options(dice, 0.2)
    if dice.chance(0.3):
        query["fieldValidation"] = dice.one(words.FIELD_VALIDATION)
    return query


def create(dice: Dice, kind: Kind) -> Step:
    """A POST of an object along its schema."""
    body = made_object(dice, kind, dice.one(["a", "b", "c"]))
    step: Step = {"method": "POST", "path": kind.collection(), "body": body}
    if query := _options(dice):
        step["query"] = query
    if dice.chance(0.12):
        step |= {"encoding": dice.one(["yaml", "cbor"])}
    return step


def put(dice: Dice, kind: Kind) -> Step:
    """A PUT of an object, or of its status."""
    name = dice.one(["a", "a", "b"])
    body = made_object(dice, kind, name)
    body["metadata"]["resourceVersion"] = "{rv}"
    step: Step = {"method": "PUT", "path": kind.item(name), "body": body}
    if dice.chance(0.2) and kind.sub:
        step["path"] += "/status"
    if query := _options(dice):
        step["query"] = query
    return step


def patch(dice: Dice, kind: Kind) -> Step:
    """A PATCH of one of the four sorts."""
    how = dice.one(["merge", "merge", "json", "apply", "apply", "strategic"])
    whole = made_object(dice, kind, "a")
    body: Any = {key: each for key, each in whole.items() if key not in ("apiVersion", "kind", "metadata")}
    if how == "json":
        body = json_patch(dice, body)
    elif how == "apply":
        body = whole
        whole["metadata"] = {"name": kind.named("a")}
    query = _options(dice)
    if how == "apply":
        query["fieldManager"] = dice.one(["m1", "m2"])
        if dice.chance(0.5):
            query["force"] = "true"
    step: Step = {
        "method": "PATCH",
        "path": kind.item("a"),
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES[how]},
        "query": query,
    }
    if dice.chance(0.15) and kind.sub:
        step["path"] += "/status"
    return step


def list_objects(dice: Dice, kind: Kind) -> Step:
    """A list, in any form."""
    assert kind.crd is not None
    query: dict[str, Any] = {"fieldSelector": f"metadata.name={kind.named('a')}"} if kind.cluster else {}
    selectable = _served(kind).get("selectableFields") or []
    if dice.chance(0.3) and selectable and not kind.cluster:
        query["fieldSelector"] = dice.one(selectable)["jsonPath"][1:] + dice.one(
            ["=a", "=1", "!=b", "=true", "=", "==x"]
        )
    step: Step = {"method": "GET", "path": kind.collection(), "query": query}
    if dice.chance(0.7):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS[:22])}
    return step


def get(dice: Dice, kind: Kind) -> Step:
    """A GET, which keeps the version for a later write."""
    step: Step = {"method": "GET", "path": kind.item("a"), "save": {"rv": "metadata.resourceVersion"}}
    if dice.chance(0.3):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS[:22])}
        del step["save"]
    return step


_BREAKS: list[tuple[str, Any]] = [
    ("type", "strin"), ("type", ""), ("type", None), ("nullable", "yes"), ("x-kubernetes-list-type", "bag"), ("x-kubernetes-list-type", "set"), ("x-kubernetes-list-type", "map"), ("x-kubernetes-list-map-keys", ["name"]), ("x-kubernetes-map-type", "x"),
    ("x-kubernetes-map-type", "atomic"), ("x-kubernetes-int-or-string", True), ("x-kubernetes-embedded-resource", True), ("x-kubernetes-preserve-unknown-fields", False), ("x-kubernetes-preserve-unknown-fields", True),
    ("default", "wrong"), ("default", None), ("default", {}), ("default", 1), ("default", [1]), ("enum", []), ("enum", ["a", "a"]), ("enum", [{}]), ("pattern", "("), ("pattern", "(?!x)"), ("format", "nope"), ("maxLength", -1), ("minimum", "x"),
    ("required", ["a", "a"]), ("required", []), ("required", ["not-there"]), ("additionalProperties", False), ("additionalProperties", True), ("additionalProperties", {"type": "string"}), ("properties", {}), ("items", {"type": "string"}), ("items", [{"type": "string"}]), ("items", None),
    ("uniqueItems", True), ("$ref", "#/x"), ("definitions", {"a": {}}), ("dependencies", {"a": ["b"]}), ("patternProperties", {"a": {}}), ("id", "x"), ("$schema", "y"), ("additionalItems", True), ("title", "T"), ("example", {"a": 1}), ("externalDocs", {"url": "x"}),
    ("anyOf", [{"type": "string"}]), ("allOf", [{"properties": {"new": {"type": "string"}}}]), ("not", {"required": ["name"]}), ("oneOf", [{"required": ["name"]}, {"description": "x"}]), ("anyOf", [{"default": 1}]), ("anyOf", [{"nullable": True}]), ("not", {"x-kubernetes-int-or-string": True}),
    ("anyOf", [{"type": "integer"}, {"type": "string"}]), ("x-kubernetes-validations", [{"rule": "self.nope"}]), ("x-kubernetes-validations", [{"rule": ""}]), ("x-kubernetes-validations", [{"rule": "self =="}]), ("x-kubernetes-validations", [{"rule": "true", "message": ""}]),
    ("x-kubernetes-validations", [{"rule": "1"}]), ("x-kubernetes-validations", [{"rule": "true", "reason": "Bad"}]), ("x-kubernetes-validations", [{"rule": "true", "fieldPath": ".nope"}]), ("x-kubernetes-validations", [{"rule": "true", "messageExpression": "1"}]), ("x-kubernetes-validations", [{"rule": "true"}, {"rule": "true"}]),
    ("x-kubernetes-validations", [{"rule": "oldSelf == self"}]), ("x-kubernetes-validations", "x"), ("x-kubernetes-validations", [{"rule": "true\n", "message": "a\nb"}]), ("multipleOf", 0), ("exclusiveMinimum", True), ("maxItems", 1), ("minProperties", 1), ("unknownWord", 1), ("description", 5),
]  # fmt: skip


def _definition(dice: Dice, number: int) -> Step:
    """A CRD, mostly with one or two things wrong, created as a dry run."""
    schema = schemas.root(dice, depth=2, checks=0.3, defaults=0.15)
    made = crd(
        "drafts",
        "Draft",
        f"dd{number}-{{own}}",
        [version("v1", schema)],
        **({"shortNames": ["dr"]} if dice.chance(0.2) else {}),
    )
    spec = made["spec"]
    if dice.chance(0.3):
        spec["versions"].append(
            version(
                dice.one(["v2", "v1", "v1alpha1", "V3", "2", ""]),
                schemas.root(dice, depth=1, checks=0.2),
                storage=dice.chance(0.1),
            )
        )
    for _ in range(dice.one([0, 1, 1, 1, 2])):
        if dice.chance(0.65):
            key, wrong = dice.one(_BREAKS)
            target = dice.one(schemas.walk(spec["versions"][0]["schema"]["openAPIV3Schema"]))
            target[key] = copy.deepcopy(wrong)
        else:
            _break_definition(dice, made)
    query: dict[str, Any] = {"dryRun": "All"}
    if dice.chance(0.2):
        query["fieldValidation"] = dice.one(words.FIELD_VALIDATION)
    return {"method": "POST", "path": CRDS, "body": made, "query": query}


def _break_definition(dice: Dice, made: dict[str, Any]) -> None:
    spec, names, first = made["spec"], made["spec"]["names"], made["spec"]["versions"][0]
    roll = dice.randrange(12)
    if roll == 0:
        names[dice.one(["plural", "singular", "kind", "listKind"])] = dice.one(
            ["", "Draft", "drafts", "a.b", "x" * 64, "1x", "é", "-a", None]
        )
    elif roll == 1:
        names[dice.one(["shortNames", "categories"])] = dice.one(
            [[], ["Bad"], ["a", "a"], ["drafts"], "x", ["a_b"], [""]]
        )
    elif roll == 2:
        spec["scope"] = dice.one(["", "Other", None, "Cluster", "namespaced"])
    elif roll == 3:
        spec["group"] = dice.one(
            ["", "nodots", "Upper.example.com", "x.k8s.io", "other.example.com", "a b.c"]
        )
    elif roll == 4:
        first[dice.one(["served", "storage"])] = dice.one([False, None, "x"])
    elif roll == 5:
        first["additionalPrinterColumns"] = [
            damaged(
                dice,
                {
                    "name": "A",
                    "type": "string",
                    "jsonPath": ".spec.a",
                    "priority": 0,
                    "format": "int32",
                    "description": "d",
                },
                dice.randint(0, 2),
            )
        ]
    elif roll == 6:
        first["subresources"] = dice.one(
            [
                {},
                {"status": None},
                {"scale": {}},
                {
                    "status": {},
                    "scale": {"specReplicasPath": "spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                {
                    "scale": {
                        "specReplicasPath": ".spec.a[0]",
                        "statusReplicasPath": ".spec.b",
                        "labelSelectorPath": ".x",
                    }
                },
                {"status": {"a": 1}},
                "x",
                {
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.sel",
                    }
                },
            ]
        )
    elif roll == 7:
        first["selectableFields"] = dice.one(
            [
                [{"jsonPath": ".spec.nope"}],
                [{"jsonPath": "spec.a"}],
                [{}],
                [{"jsonPath": ".metadata.name"}],
                [{"jsonPath": ".spec.name"}, {"jsonPath": ".spec.name"}],
                [{"jsonPath": ".spec.items[0]"}],
                "x",
                [{"jsonPath": ""}],
                [{"jsonPath": ".spec"}],
            ]
        )
    elif roll == 8:
        spec["conversion"] = dice.one(
            [
                {"strategy": "None"},
                {"strategy": "Webhook"},
                {"strategy": "x"},
                {},
                {"strategy": "None", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}},
                {
                    "strategy": "Webhook",
                    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "http://x"}},
                },
                {
                    "strategy": "Webhook",
                    "webhook": {
                        "conversionReviewVersions": [],
                        "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 0}},
                    },
                },
            ]
        )
    elif roll == 9:
        spec["preserveUnknownFields"] = dice.one([True, False, "x"])
    elif roll == 10:
        made["metadata"] = dice.one(
            [
                {"name": "other.example.com"},
                {"name": ""},
                {},
                {"name": made["metadata"]["name"], "labels": {"a b": "c"}},
                {"name": made["metadata"]["name"], "finalizers": ["x"]},
                {"name": made["metadata"]["name"], "annotations": {"api-approved.kubernetes.io": "x"}},
            ]
        )
    else:
        made.update(damaged(dice, {key: value for key, value in made.items() if key == "spec"}, 1))
