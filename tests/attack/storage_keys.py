"""Storage keys: whatever packages, definitions and APIServices are served together, no two resources share a prefix.

Worlds are drawn out of names that clash: groups that are built in, begin alike or are called as a part of a key is, and
plurals and kinds of others. The law is written down here once more, without a line of the server: a group is served by
the package that has it, else by definitions; what has another owner, or is another kind, has other keys.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections.abc import Iterator
from typing import Any, cast

from apimachinery.meta.resources import Group, Resource
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_crds import served_versions
from apimachinery.server.catalog.from_packages import add_package
from apimachinery.server.catalog.options import ApiOptions, OptionError
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.storage.etcd.keys import Keys
from tests.attack.target import Target

Json = dict[str, Any]
RBAC, EXTENSIONS, REGISTRATION = "rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"
GROUPS = (
    "", "core", "apps", "sales", RBAC, EXTENSIONS, REGISTRATION, "events.k8s.io", "internal.apiserver.k8s.io",
    "example.com", "a.example.com", "custom.example.com", "example.com.custom", "core.example.com", "services.specs.io",
)  # fmt: skip
PLURALS = (
    "pods", "roles", "clusterroles", "customresourcedefinitions", "apiservices", "events", "services", "specs",
    "endpoints", "storageversions", "widgets", "widget",
)  # fmt: skip
VERSIONS = ("v1", "v9", "v1beta1")
VERBS = ("create", "delete", "get", "list", "watch")
KEYS = Keys("/registry")
LIVE = 12
CRDS = f"/apis/{EXTENSIONS}/v1/customresourcedefinitions"
APIS = f"/apis/{REGISTRATION}/v1/apiservices"
HEADERS = {"Content-Type": "application/json"}


class Drawn:
    """A package of drawn resources."""

    def __init__(self, name: str, resources: list[Resource]) -> None:
        self.name = name
        self._resources = resources
        groups: dict[str, dict[str, None]] = {}
        for resource in resources:
            groups.setdefault(resource.group, {})[resource.version] = None
        self.groups = tuple(Group(name=name, versions=tuple(versions)) for name, versions in groups.items())

    def resources(self) -> list[Resource]:
        return self._resources

    def table(self, api_version: str, stem: str, name: str) -> Json:
        return {}


def kind_of(plural: str) -> str:
    return plural.capitalize()


def drawn_package(chance: random.Random, name: str) -> Drawn:
    """A package of a few kinds, each in some versions; now and then one plural has two kinds."""
    resources: list[Resource] = []
    for group, plural in {(chance.choice(GROUPS), chance.choice(PLURALS)): None for _ in range(6)}:
        kinds = [kind_of(plural)] * 9 + ["Other"]
        resources += [
            Resource(
                group=group,
                version=version,
                kind=chance.choice(kinds),
                plural=plural,
                singular="",
                namespaced=chance.random() < 0.5,
                verbs=VERBS,
                served=chance.random() < 0.9,
                storage=False,
            )
            for version in chance.sample(VERSIONS, chance.randint(1, 2))
        ]
    return Drawn(name, resources)


def definition(chance: random.Random, group: str, plural: str) -> Json:
    """A definition, established."""
    versions = chance.sample(VERSIONS, chance.randint(1, 3))
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "kind": kind_of(plural)}
    return {
        "apiVersion": f"{EXTENSIONS}/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"},
        },
        "spec": {
            "group": group,
            "names": names,
            "scope": chance.choice(("Cluster", "Namespaced")),
            "versions": [
                {"name": name, "served": True, "storage": not number, "schema": schema}
                for number, name in enumerate(versions)
            ],
        },
        "status": {"acceptedNames": names},
    }


def worlds(chance: random.Random, number: int) -> Iterator[str]:
    """What is wrong with any of so many worlds."""
    for at in range(number):
        for fault in _world(chance):
            yield f"world {at}: {fault}"


def _world(chance: random.Random) -> Iterator[str]:
    catalog, owners = Catalog(), {}
    for number in range(chance.randint(1, 3)):
        package = drawn_package(chance, f"package{number}")
        taken = {group.name for group in package.groups} & owners.keys()
        odd = any(group.name == "core" for group in package.groups) or len(
            {(r.group, r.plural, r.kind) for r in package.resources() if r.served}
        ) > len({(r.group, r.plural) for r in package.resources() if r.served})
        before = Catalog()
        before.claimed.update(catalog.claimed)
        try:
            add_package(before, cast(ServedPackage, package), ApiOptions())
        except OptionError as refused:
            if not taken and not odd:
                yield f"refused: {refused}"
            continue
        if taken or odd:
            yield f"{package.name} was taken, with groups of others ({sorted(taken)}) or two kinds of one plural"
        add_package(catalog, cast(ServedPackage, package), ApiOptions())
        owners |= {group.name: package.name for group in package.groups}
    builtin = {served.named: served for served in catalog}
    groups = {group for group, _, _ in builtin}
    custom: dict[str, list[Served]] = {}
    for _ in range(chance.randint(1, 8)):
        group, plural = chance.choice([each for each in GROUPS if "." in each]), chance.choice(PLURALS)
        name = f"{plural}.{group}"
        if name in custom and chance.random() < 0.5:
            del custom[name]
            catalog.set_custom(name, [])
            continue
        custom[name] = served_versions(definition(chance, group, plural), 1, False)
        catalog.set_custom(name, custom[name])
    yield from _served_as_the_law_says(catalog, builtin, groups, custom)
    resources = [(owners.get(served.group, ""), served) for served in builtin.values()]
    yield from _apart(
        resources + [(f"crd {name}", served) for name, found in custom.items() for served in found]
    )
    for name in custom:
        catalog.set_custom(name, [])
    if {served.named: served for served in catalog} != builtin or catalog.groups.keys() != groups:
        yield "definitions left something behind, or took something with them"


def _served_as_the_law_says(
    catalog: Catalog,
    builtin: dict[tuple[str, str, str], Served],
    groups: set[str],
    custom: dict[str, list[Served]],
) -> Iterator[str]:
    expected = dict(builtin)
    expected |= {each.named: each for found in custom.values() for each in found if each.group not in groups}
    if {served.named: served for served in catalog} != expected:
        yield f"served: {sorted({served.named for served in catalog} ^ expected.keys())}"
    for named, served in expected.items():
        if catalog.find(*named) is not served:
            yield f"{named} is answered by another"


def _apart(resources: list[tuple[str, Served]]) -> Iterator[str]:
    """Who has another owner, or is of another kind, has keys of his own."""
    for (owner, one), (other_owner, other) in itertools.combinations(resources, 2):
        if (owner, one.group, one.plural, one.kind) == (other_owner, other.group, other.plural, other.kind):
            continue
        places = KEYS.to_etcd(one.prefix), KEYS.to_etcd(other.prefix)
        for a, b in ((one.prefix, other.prefix), places):
            if a.startswith(b) or b.startswith(a):  # type: ignore[arg-type]
                yield f"{owner} {one.named} and {other_owner} {other.named} share {a!r}"
    for _, served in resources:
        key = served.key("ns" if served.namespaced else "", "a")
        if KEYS.from_etcd(KEYS.to_etcd(key)) != key:
            yield f"{key} comes back from etcd as {KEYS.from_etcd(KEYS.to_etcd(key))}"


def attack(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Worlds, and definitions and APIServices over what a running server has built in."""
    yield from worlds(chance, max(100, options.requests // 10))
    before = _objects(target)
    for _ in range(LIVE * options.times):
        yield from _shadow(target, chance)
        if (now := _objects(target)) != before:
            changed = sorted(str(key) for key in dict(before.items() ^ now.items()))
            yield f"built-in objects changed: {changed[:5]}"
            before = now


def _shadow(target: Target, chance: random.Random) -> Iterator[str]:
    """A definition and an APIService in a built-in group, objects through them, and both deleted again."""
    group = chance.choice((RBAC, EXTENSIONS, REGISTRATION, "certificates.k8s.io", "storage.k8s.io"))
    plural = chance.choice((*PLURALS, "certificatesigningrequests", "storageclasses", "clusterrolebindings"))
    crd = definition(chance, group, plural)
    del crd["status"]
    name = crd["metadata"]["name"]
    served = _json(target, f"/apis/{group}/v1")["resources"]
    if (code := _send(target, "POST", CRDS, crd)) != 201:
        yield f"{name}: {code}"
        return
    _until(lambda: _established(target, name))
    spec = {"group": group, "version": "v8", "groupPriorityMinimum": 1, "versionPriority": 1}
    spec |= {"service": {"namespace": "default", "name": "nobody"}, "insecureSkipTLSVerify": True}
    _send(target, "POST", APIS, {"metadata": {"name": f"v8.{group}"}, "spec": spec})
    for version in crd["spec"]["versions"]:
        if version["name"] == "v1":
            continue
        path = f"/apis/{group}/{version['name']}/{plural}"
        for method, end in (
            ("GET", ""),
            ("POST", ""),
            ("DELETE", ""),
            ("PUT", "/admin"),
            ("DELETE", "/admin"),
        ):
            body = {
                "apiVersion": f"{group}/{version['name']}",
                "kind": kind_of(plural),
                "metadata": {"name": "admin"},
            }
            if (code := _send(target, method, path + end, body)) != 404:
                yield f"{method} {path + end}: {code}"
    if _json(target, f"/apis/{group}/v1")["resources"] != served:
        yield f"{name} changed what {group}/v1 serves"
    _send(target, "DELETE", f"{APIS}/v8.{group}")
    _send(target, "DELETE", f"{CRDS}/{name}")
    _until(lambda: _send(target, "GET", f"{CRDS}/{name}") == 404)
    for version in crd["spec"]["versions"]:
        if version["name"] != "v1" or group == REGISTRATION:
            _until(lambda v=version["name"]: _send(target, "GET", f"{APIS}/{v}.{group}") == 404)


def _established(target: Target, name: str) -> bool:
    listed = _json(target, f"{CRDS}/{name}").get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in listed)


def _objects(target: Target) -> dict[tuple[str, str], str]:
    """The uids of the objects that whoever shadows them is after, by path and name."""
    paths = [CRDS, APIS, f"/apis/{RBAC}/v1/clusterroles", f"/apis/{RBAC}/v1/clusterrolebindings"]
    return {
        (path, item["metadata"]["name"]): item["metadata"]["uid"]
        for path in paths
        for item in _json(target, path)["items"]
    }


def _json(target: Target, path: str) -> Any:
    return json.loads(target.ask("GET", path)[1])


def _send(target: Target, method: str, path: str, obj: Any = None) -> int:
    body = b"" if obj is None or method in ("GET", "DELETE") else json.dumps(obj).encode()
    return target.ask(method, path, body, HEADERS)[0]


def _until(holds: Any, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError("a definition did not come or go")
        time.sleep(0.02)
