"""Random CRDs, each created, read, used for some dozen requests of every verb and deleted in one conversation.

What varies: schemas with defaults, patterns and unions, two or three versions with or without conversion, printer columns
right and wrong, subresources, fields to select by, names in groups of built-in kinds, and approval.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import custom, rest, schemas, words
from tests.differential.draw.kinds import Kind, version
from tests.differential.draw.kinds import custom as kind_of
from tests.differential.draw.words import Dice
from tests.differential.play import CRDS

Schema = dict[str, Any]

_GROUPS = ["rbac.authorization.k8s.io", "storage.k8s.io", "x.kubernetes.io", "example.k8s.io", "apps"]
_APPROVALS: list[dict[str, str] | None] = [
    {"api-approved.kubernetes.io": "https://example.com/pull/1"},
    {"api-approved.kubernetes.io": "unapproved, for trying"},
    {"api-approved.kubernetes.io": "someone"},
    {"api-approved.kubernetes.io": ""},
    None,
]
_PATTERNS = [
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$", "^\\S+$", "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$", "^\\d+$|^\\d+%$", "(?i)^true|false$",
    "^[^/]+/[^/]+$", "^\\p{L}+$", "^[\\w.-]{1,5}$", "^$|^a", "\\bx\\b", "^.*$", "^(a|b|)$", "[[:alpha:]]+", "^\\x61", "^[\\x20-\\x7e]*$", "a{2,3}?b", "^(?P<n>a)$", "\\Aa\\z", "^a$\\n?", "(?s)a.b", "(?m)^b$", "\\QA.B\\E",
]  # fmt: skip
# Without * and .. on maps, which kube-apiserver walks in random order.
_COLUMN_PATHS = [
    ".spec",
    ".metadata.name",
    ".metadata.creationTimestamp",
    ".metadata.labels.a",
    ".metadata.labels",
    ".metadata.generation",
    ".metadata.annotations['note']",
    ".spec.nope",
    ".status.phase",
    ".spec.y-z",
    ".kind",
    ".spec['name']",
    ".spec[?(@.name=='a')]",
    ".spec.items[-1]",
    ".spec.items[0:2]",
    ".spec.items[*].name",
    ".spec.items[?(@.size>1)].name",
    ".metadata.managedFields[*].manager",
    ".spec.x.y.z",
    ".spec['with.dot']",
    ".spec.items[0,1]",
    ".spec.items[?(@.size==1)].name",
    ".spec.x y",
    ".spec.nope[0]",
    '.spec.items["a"]',
    ".spec.items[ 0 ]",
    ".spec.{name}",
    ".spec.with\\.dot",
    ".metadata.ownerReferences[0].name",
    ".metadata.deletionTimestamp",
    ".spec.items[::2]",
    ".",
    ".spec.",
    ".spec.name}",
    ".[0]",
    ".spec.items[a]",
    ".spec.items[(@.length-1)]",
    ".spec[",
]
_WRONG_PATHS = ["", "spec", "{.spec.name}", "[", "$.spec.name", "@.spec", " .spec"]
_COLUMN_TYPES = ["string", "string", "integer", "number", "boolean", "date", "date"]
_COLUMN_FORMATS = ["", "int32", "int64", "float", "double", "date", "date-time", "password", "byte"]


def draw(dice: Dice, name: str) -> Conversation:
    """One definition from its creation to its end."""
    definition = _definition(dice)
    steps: list[Step] = [{"method": "POST", "path": CRDS, "body": definition}]
    at = f"{CRDS}/{definition['metadata']['name']}"
    kinds = [kind_of(definition, {}, [], n) for n in range(len(definition["spec"]["versions"]))]
    steps.append(_ready(kinds[0], _patience(definition)))
    # Names accepted among built-in groups may never be established; a busy machine may take seconds over the others.
    steps.append(
        {"method": "GET", "path": at, "until": {"path": "status.acceptedNames.plural"}, "seconds": 10}
    )
    for _ in range(dice.randint(25, 50)):
        kind = dice.one(kinds) if dice.chance(0.4) else kinds[0]
        steps.append(_request(dice, kind))
        if dice.chance(0.03):
            steps.append(_changed(dice, definition, at))
            # The change is in force when the storages of before are gone and those of now can be listed.
            steps.append({"sleep": 1.5})
            steps += [_ready(each) for each in kinds]
    return Conversation("definitions", name, steps)


def _ready(kind: Kind, seconds: float = 3) -> Step:
    """Waits, as far as there is something to wait for, until a version can be listed."""
    return {
        "method": "GET",
        "path": kind.collection(),
        "until": {"path": "items"},
        "seconds": seconds,
        "quiet": True,
    }


def _patience(definition: Schema) -> float:
    """Seconds to wait for the resource: it is not served where nobody can convert."""
    webhook = definition["spec"].get("conversion", {}).get("webhook", {})
    return 1 if webhook.get("clientConfig", {}).get("caBundle") else 10


def _request(dice: Dice, kind: Kind) -> Step:
    make = dice.choices(
        [custom.create, custom.put, custom.patch, custom.list_objects, custom.get, rest.delete, rest.delete_all, _table, _scale],
        [24, 16, 20, 9, 6, 4, 1, 12, 6],
    )[0]  # fmt: skip
    return make(dice, kind)


def _table(dice: Dice, kind: Kind) -> Step:
    path = kind.item("a") if kind.cluster or dice.chance(0.3) else kind.collection()
    if dice.chance(0.1):
        path = f"{kind.item('a')}/{dice.one(['status', 'scale'])}"
    step: Step = {"method": "GET", "path": path}
    step["headers"] = {"Accept": dice.one([each for each in words.ACCEPTS if "as=Table;v=v1;" in each])}
    if dice.chance(0.2):
        step["query"] = {"includeObject": dice.one(["None", "Object", "Metadata"])}
    return step


def _scale(dice: Dice, kind: Kind) -> Step:
    """A request for the scale or the status of an object."""
    step = rest.subresource(dice, kind)
    step["path"] = f"{kind.item('a')}/{dice.one(['scale', 'scale', 'status'])}"
    return step


def _changed(dice: Dice, definition: Schema, at: str) -> Step:
    """A patch of the definition: a default, a column, a limit, a version that is no longer served."""
    number = dice.randrange(len(definition["spec"]["versions"]))
    base = f"/spec/versions/{number}"
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": f"{base}/schema/openAPIV3Schema/properties/spec/properties/added", "value": schemas.schema(dice, 1, 0.2, 0.6)},
        {"op": "add", "path": f"{base}/additionalPrinterColumns", "value": [_column(dice, {})]},
        {"op": "replace", "path": f"{base}/served", "value": dice.chance(0.3)},
        {"op": "add", "path": f"{base}/schema/openAPIV3Schema/properties/spec/maxProperties", "value": 1},
        {"op": "add", "path": "/spec/conversion", "value": _conversion(dice)},
    ]  # fmt: skip
    headers = {"Content-Type": words.PATCH_TYPES["json"]}
    return {"method": "PATCH", "path": at, "headers": headers, "body": [dice.one(operations)]}


def _definition(dice: Dice) -> Schema:
    builtin = dice.chance(0.08)
    group = dice.one(_GROUPS) if builtin else "d-{own}.example.com"
    plural = "samples-{own}" if builtin else "samples"
    metadata: Schema = {"name": f"{plural}.{group}"}
    if builtin or dice.chance(0.03):
        approval = dice.one(_APPROVALS)
        if approval is not None:
            metadata["annotations"] = approval
    spec: Schema = {
        "group": group,
        "scope": "Cluster" if dice.chance(0.12) else "Namespaced",
        "names": {"plural": plural, "singular": plural[:-1] if not builtin else "sample-{own}", "kind": "Sample", "listKind": "SampleList"},
        "versions": _versions(dice),
    }  # fmt: skip
    if builtin:
        spec["names"] |= {"kind": "Sample{own}", "listKind": "Sample{own}List"}
    if dice.chance(0.15):
        spec["conversion"] = _conversion(dice)
    if dice.chance(0.04):
        spec["preserveUnknownFields"] = dice.chance(0.5)
    if dice.chance(0.1):
        spec["names"] |= {"shortNames": ["sm-{own}"], "categories": ["all"]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}  # fmt: skip


def _conversion(dice: Dice) -> Schema:
    """None, or a webhook that nobody answers, perhaps with a bundle that is no certificate."""
    if dice.chance(0.4):
        return {"strategy": "None"}
    client: Schema = {"url": "https://127.0.0.1:1/convert"}
    if dice.chance(0.4):
        client["caBundle"] = dice.one(["", "bm9uZQ==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="])
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def _versions(dice: Dice) -> list[Schema]:
    names = dice.one([["v1"], ["v1"], ["v1", "v1beta1"], ["v2", "v1"], ["v1", "v1alpha1", "v1beta1"]])
    stored = dice.randrange(len(names)) if dice.chance(0.3) else 0
    first = _schema(dice)
    made = []
    for number, name in enumerate(names):
        schema = first if not number else _variant(dice, first)
        more: Schema = {}
        if dice.chance(0.6):
            more["subresources"] = _subresources(dice)
        if dice.chance(0.6):
            more["additionalPrinterColumns"] = [_column(dice, schema) for _ in range(dice.randint(1, 5))]
        if dice.chance(0.2) and (fields := _selectable(schema)):
            more["selectableFields"] = fields
        if number and dice.chance(0.2):
            more["deprecated"] = True
            if dice.chance(0.5):
                more["deprecationWarning"] = "use another"
        made.append(version(name, schema, storage=number == stored, **more))
    return made


def _schema(dice: Dice) -> Schema:
    schema = schemas.root(dice, dice.randint(1, 4), dice.one([0.1, 0.3, 0.6]), dice.one([0.0, 0.2, 0.5]))
    for each in schemas.walk(schema):
        if each.get("type") == "string" and "default" not in each and "enum" not in each and dice.chance(0.1):
            each["pattern"] = dice.one(_PATTERNS)
        if each.get("properties") and dice.chance(0.12):
            _unite(dice, each)
        if "enum" in each and each.get("nullable") and dice.chance(0.5):
            each["enum"] = [*each["enum"], None]
    spec = schema["properties"]["spec"]
    if dice.chance(0.15):
        spec["default"] = {}
    if dice.chance(0.3):
        spec["properties"]["replicas"] = {"type": "integer", **dice.one([{}, {"default": 2}, {"maximum": 3}])}
    if "status" in schema["properties"] and dice.chance(0.5):
        schema["properties"]["status"]["properties"] |= {
            "replicas": {"type": "integer"},
            "selector": {"type": "string"},
        }
    if any("x-kubernetes-validations" in each for each in schemas.walk(schema)):
        schemas.bound(schema)
    return schema


def _unite(dice: Dice, found: Schema) -> None:
    """Puts a junctor on an object: fields required, or values of fields."""
    names = sorted(found["properties"])
    branches: list[Schema] = [{"required": [dice.one(names)]} for _ in range(2)]
    branches.append({"properties": {dice.one(names): dice.one([{"enum": ["a", 1, True]}, {"minLength": 2}, {"minimum": 2}, {"not": {"enum": [1]}}])}})  # fmt: skip
    word = dice.one(["anyOf", "oneOf", "allOf", "not"])
    found[word] = dice.one(branches) if word == "not" else dice.some(branches, 1, 2)


def _variant(dice: Dice, schema: Schema) -> Schema:
    """The schema of another version: other lists, a field less or more, another default."""
    other = copy.deepcopy(schema)
    if dice.chance(0.4):
        schemas.retype(dice, other)
    properties = other["properties"]["spec"]["properties"]
    if dice.chance(0.3):
        properties[dice.one(["size", "name", "more"])] = schemas.schema(dice, 1, 0.2, 0.5)
    other["description"] = "another version"
    return other


def _subresources(dice: Dice) -> Schema:
    found: Schema = {}
    if dice.chance(0.8):
        found["status"] = {}
    if dice.chance(0.5):
        found["scale"] = {"specReplicasPath": dice.one([".spec.replicas", ".spec.size", ".spec.x.y"]), "statusReplicasPath": ".status.replicas"}  # fmt: skip
        if dice.chance(0.5):
            found["scale"]["labelSelectorPath"] = dice.one([".status.selector", ".spec.name"])
    return found


def _column(dice: Dice, schema: Schema) -> Schema:
    fields = schema.get("properties", {}).get("spec", {}).get("properties", {})
    path = dice.one(_COLUMN_PATHS) if dice.chance(0.5) or not fields else f".spec.{dice.one(sorted(fields))}"
    if dice.chance(0.02):
        path = dice.one(_WRONG_PATHS)
    column: Schema = {"name": dice.one(["A", "Name", "Age", "B c", "é"]), "type": dice.one(_COLUMN_TYPES), "jsonPath": path}  # fmt: skip
    if dice.chance(0.15):
        column["priority"] = dice.one([0, 1, -1])
    if dice.chance(0.1):
        column["format"] = dice.one(_COLUMN_FORMATS)
    if dice.chance(0.1):
        column["description"] = "a column"
    return column


def _selectable(schema: Schema) -> list[Schema]:
    properties = schema["properties"]["spec"]["properties"]
    scalars = [
        name for name, each in properties.items() if each.get("type") in ("string", "integer", "boolean")
    ]
    return [{"jsonPath": f".spec.{name}"} for name in scalars if name.isalnum()][:2]
