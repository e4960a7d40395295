"""The dice, and words that requests are made of: names, labels, selectors, options, media types; right and wrong."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Dice(random.Random):
    """A seeded source of choices."""

    def one(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.randrange(len(options))]

    def chance(self, probability: float) -> bool:
        """True that often."""
        return self.random() < probability

    def some(self, options: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        """A few different ones, in the order given."""
        count = self.randint(least, min(len(options), most if most is not None else len(options)))
        chosen = sorted(self.sample(range(len(options)), count))
        return [options[number] for number in chosen]


NAMES = ["a", "b", "c", "web", "x1", "n-0", "long-name-with-dashes", "dotted.name", "0"]
BAD_NAMES = [
    "A",
    "a_b",
    "-a",
    "a-",
    "a..b",
    "",
    "x" * 254,
    "a b",
    "ä",
    "a/b",
    "..",
    "a%",
    ".",
    "x" * 64,
    "a:b",
]
LABELS: list[Any] = [
    {"a": "1"},
    {"a": "2", "b": "x"},
    {"b": ""},
    {"example.com/k": "v"},
    {"app": "web", "tier": "back"},
    {},
]
BAD_LABELS: list[Any] = [
    {"a b": "1"}, {"a": "b c"}, {"": "x"}, {"a/b/c": "1"}, {"A.B/": "1"}, {"a": "x" * 64}, {"-a": "b"}, {"a": 1},
    {"a": None}, {"a": True}, {"a": {}}, [], "x", {"/a": "1"}, {"UP.example.com/a": "1"}, {"x" * 64: "1"}, {"a": "é"},
]  # fmt: skip
ANNOTATIONS: list[Any] = [
    {"note": "text"},
    {"example.com/n": '{"a":1}'},
    {"a": ""},
    {"big": "x" * 400},
    {},
    {"uni": "é ☃"},
]
BAD_ANNOTATIONS: list[Any] = [
    {"a b": "1"},
    {"": "1"},
    {"a/b/c": "x"},
    {"a": 5},
    {"a": None},
    ["a"],
    {"_a": "1"},
]
FINALIZERS: list[Any] = [
    ["example.com/f"],
    ["example.com/f", "example.com/g"],
    ["orphan"],
    ["foregroundDeletion"],
    [],
]
BAD_FINALIZERS: list[Any] = [
    ["nodomain"],
    [""],
    ["a b/c"],
    ["example.com/"],
    "x",
    [1],
    ["example.com/f", "example.com/f"],
    ["Example.com/f"],
    ["a/b/c"],
    [None],
]
LABEL_SELECTORS = [
    "a=1", "a==1", "a!=1", "a", "!a", "a in (1,2)", "a notin (1)", "a in ()", "a,b", "b=", "example.com/k=v", "a=1,b!=x",
    "a in (1, 2),!c", "a in (,)", "a notin ()", "a=", "a in (1,)", " a = 1 ", "", "app", "a>0", "a<2", "a>1,a<3",
]  # fmt: skip
BAD_LABEL_SELECTORS = [
    "a=b=c", "=", "a in 1", "a in (1", "a b", "!", ",", "a,,b", "a=b c", "a/b/c=1", "-a=1", "a=-b", "a in", "a>x", "a>1.5",
    "(a)", "a notin", "a=1,", "!a=1", "in (a)", "a in (b,c))", "é=1", "a=" + "x" * 64, "x" * 64, "a!1", "a=1;b=2", "a ni (b)",
]  # fmt: skip
FIELD_SELECTORS = [
    "metadata.name=a",
    "metadata.name!=a",
    "metadata.name=",
    "metadata.namespace={ns}",
    "metadata.name=a,metadata.namespace={ns}",
    "",
    "metadata.namespace!=default",
    "metadata.name==web",
]
BAD_FIELD_SELECTORS = [
    "spec.x=1", "metadata.name", "=a", "metadata.labels.a=1", "metadata.name=a=b", "a,b", "metadata.uid=1", "!metadata.name", "metadata.name>a",
    "metadata.name in (a)", "status.phase=Running", "type=Opaque", "spec.nodeName=", "metadata.name=a,,", ",", "metadata.name=a\\,b", "metadata.name=\\x", "a\\=b=1",
]  # fmt: skip
ACCEPTS = [
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "*/*", "application/*", "",
    "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/cbor;as=Table;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table;v=v1;g=other.k8s.io", "application/json;as=Other;v=v1;g=meta.k8s.io",
    "application/json;as=Table;g=meta.k8s.io;v=v1;includeObject=None", "application/json;q=0.5,application/yaml;q=0.9",
    "application/yaml;q=0.5,application/json", "text/html", "text/plain,*/*;q=0.1", "application/xml", "application/json;charset=utf-8",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;pretty=1",
    "application/yaml,application/json", "application/cbor,application/json;q=0.9", "application/json;stream=watch", "application/vnd.kubernetes.protobuf;type=watch",
    "application/json;profile=x", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "garbage", "application/", "/", ";", "application/json;q=0", "*/*;q=0", "application/cbor-seq",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io", "application/JSON", "application/json;as=Table",
    "application/apply-patch+yaml", "application/json;as=Table;v=v1", "application/json;as=table;v=v1;g=meta.k8s.io", "application/json;q=abc", "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
]  # fmt: skip
CONTENT_TYPES = [
    "application/json", "application/json; charset=utf-8", "application/yaml", "application/x-www-form-urlencoded", "text/plain", "", "application/xml",
    "application/json;a=b", "application/vnd.kubernetes.protobuf", "application/cbor", "garbage", "application/*", "*/*", "application/JSON", "text/yaml",
    "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml", "application/strategic-merge-patch+json", "application/json,application/yaml", ";",
]  # fmt: skip
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
# Headers that a request may have next to those of its forms; the agent's name is that of the field manager.
HEADERS: list[dict[str, str]] = [
    {"User-Agent": "kubectl/v1.33.0 (linux/amd64) kubernetes/1234567"}, {"User-Agent": ""}, {"User-Agent": "a b/c"}, {"User-Agent": "/x"}, {"User-Agent": "x" * 200},
    {"User-Agent": "controller.test/v1"}, {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "identity"}, {"Accept-Encoding": "gzip;q=0"}, {"Accept-Encoding": "deflate, gzip"},
    {"If-None-Match": "*"}, {"If-Match": "x"}, {"X-Unknown": "1"}, {"Cache-Control": "no-cache"}, {"Accept-Language": "de"},
]  # fmt: skip
MANAGERS = ["m1", "m2", "m3", "kubectl", "a manager", "x" * 60]
BAD_MANAGERS = ["", "x" * 129, "a\tb", "a\nb", "☃"]
FIELD_VALIDATION = ["Strict", "Warn", "Ignore"]
BAD_FIELD_VALIDATION = ["", "strict", "Maybe", "Strict,Warn"]
OWNERS: list[Any] = [
    [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-3333-4444-555555555555"}],
    [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "d",
            "uid": "u-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ],
    [],
]
BAD_OWNERS: list[Any] = [
    [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}],
    [{"apiVersion": "", "kind": "", "name": "", "uid": ""}],
    [{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u"}],
    [{"apiVersion": "a/b/c", "kind": "K", "name": "o", "uid": "u"}],
    [{"apiVersion": "v1", "kind": "A", "name": "o", "uid": "u", "controller": True}, {"apiVersion": "v1", "kind": "B", "name": "p", "uid": "w", "controller": True}],
    [{"apiVersion": "v1", "kind": "A", "name": "o", "uid": "u"}, {"apiVersion": "v1", "kind": "A", "name": "o", "uid": "u"}],
    "x", [3], [{"kind": 1}],
]  # fmt: skip


def metadata(dice: Dice, name: str, wrong: float = 0.05) -> dict[str, Any]:
    """Metadata to create an object with."""
    found: dict[str, Any] = {"name": name}
    for key, right, bad in (
        ("labels", LABELS, BAD_LABELS),
        ("annotations", ANNOTATIONS, BAD_ANNOTATIONS),
        ("finalizers", FINALIZERS, BAD_FINALIZERS),
        ("ownerReferences", OWNERS, BAD_OWNERS),
    ):
        if dice.chance({"labels": 0.5, "annotations": 0.25}.get(key, 0.08)):
            found[key] = copy.deepcopy(dice.one(bad if dice.chance(wrong) else right))
    if dice.chance(wrong):
        key, value = dice.one(
            [
                ("uid", "11111111-2222-3333-4444-555555555555"), ("creationTimestamp", "2020-01-01T00:00:00Z"), ("creationTimestamp", None),
                ("generation", 7), ("deletionTimestamp", "2020-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 3), ("selfLink", "/x"),
                ("resourceVersion", "1"), ("resourceVersion", ""), ("resourceVersion", "x"), ("namespace", "default"), ("namespace", "other"), ("namespace", ""), ("generateName", "g-"),
                ("clusterName", "c"), ("unknownField", 1), ("name", ""), ("name", 5), ("name", None), ("managedFields", []), ("managedFields", [{}]),
                ("creationTimestamp", "yesterday"), ("generation", "7"), ("labels", None), ("annotations", None), ("uid", 3), ("uid", ""),
                ("managedFields", [{"manager": "x", "operation": "Update"}]), ("initializers", {}), ("generation", -1), ("generation", 1.5), ("deletionTimestamp", "x"), ("finalizers", None),
            ]
        )  # fmt: skip
        found[key] = value
    return found


def merged(one: Any, other: Any) -> Any:
    """``other`` over ``one``; lists are replaced."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{key: merged(one.get(key), value) for key, value in other.items()}}
    return copy.deepcopy(other)


_REPLACEMENTS: list[Any] = [
    None,
    "",
    "text",
    0,
    1,
    -1,
    1.5,
    True,
    False,
    [],
    {},
    [{}],
    {"a": "b"},
    ["a"],
    2**40,
    "1",
    "a b",
    1e20,
    [None],
    "é",
    10**19,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything below a value."""
    found = []
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, each in children:
        found.append((*path, key))
        found += places(each, (*path, key))
    return found


def damaged(dice: Dice, value: Any, times: int = 1, keep: tuple[str, ...] = ("apiVersion", "kind")) -> Any:
    """A copy with something missing, replaced, added or repeated."""
    value = copy.deepcopy(value)
    for _ in range(times):
        options = [place for place in places(value) if place[0] not in keep]
        if not options:
            break
        *above, last = dice.one(options)
        parent = value
        for key in above:
            parent = parent[key]
        how = dice.randrange(6)
        if how == 0:
            del parent[last]
        elif how in (1, 2):
            parent[last] = copy.deepcopy(dice.one(_REPLACEMENTS))
        elif how == 3 and isinstance(parent, dict):
            parent[dice.one(["extra", "Name", "spec", "x-y", f"{last}s", str(last).upper()])] = copy.deepcopy(
                parent[last]
            )
        elif how == 3:
            parent.append(copy.deepcopy(parent[last]))
        elif how == 4 and isinstance(parent[last], dict):
            parent[last]["unknown"] = dice.one(_REPLACEMENTS)
        elif how == 4 and isinstance(parent[last], list):
            parent[last].append(copy.deepcopy(dice.one(_REPLACEMENTS)))
        elif isinstance(parent[last], str):
            parent[last] = dice.one(
                [
                    "",
                    parent[last] + "x",
                    parent[last].upper(),
                    parent[last] + "/",
                    "-" + parent[last],
                    parent[last] * 2,
                ]
            )
        elif isinstance(parent[last], bool):
            parent[last] = not parent[last]
        elif isinstance(parent[last], int | float):
            parent[last] = dice.one([parent[last] + 1, -parent[last], 0, 2**31, str(parent[last])])
        else:
            parent[last] = None
    return value
