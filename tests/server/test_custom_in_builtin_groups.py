"""Definitions of kinds in groups that are built in: what kube-apiserver 1.36 answers for them, and that nothing of
theirs reaches a built-in object."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import add_package
from apimachinery.server.catalog.options import ApiOptions, OptionError
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.storage.interface import REVISION_MARK, Value
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.sqlite_checks import checksum
from apimachinery.storage.url import open_storage
from apimachinery.wire.json import encode
from kubewright.testing import ApiServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
RBAC = "rbac.authorization.k8s.io"
BEFORE = "2026-01-02T03:04:05Z"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ANY = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
Json = dict[str, Any]


def definition(plural: str, group: str, kind: str, *versions: str, scope: str = "Cluster") -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"},
        },
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": scope,
            "versions": [
                {"name": name, "served": True, "storage": name == versions[0], "schema": ANY}
                for name in versions
            ],
        },
    }


def wait(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def code_of(server: ApiServer, method: str, path: str, body: Any = None) -> int:
    try:
        server.request(method, path, body)
    except ApiError as error:
        return error.code
    return 200


def read(server: ApiServer, path: str, accept: str = "application/json") -> Any:
    with urllib.request.urlopen(
        urllib.request.Request(server.url + path, headers={"Accept": accept})
    ) as answer:
        return json.loads(answer.read())


def uids(server: ApiServer, path: str) -> dict[str, str]:
    """Which objects there are; what controllers write to them makes no difference."""
    items = server.request("GET", path)["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def conditions(server: ApiServer, name: str) -> dict[str, tuple[str, str]]:
    listed = server.request("GET", f"{CRDS}/{name}").get("status", {}).get("conditions") or []
    return {each["type"]: (each["status"], each["reason"]) for each in listed}


def api_service(server: ApiServer, name: str) -> tuple[str, int, int] | None:
    try:
        found = server.request("GET", f"{SERVICES}/{name}")
    except ApiError:
        return None
    label = found["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"]
    return label, found["spec"]["groupPriorityMinimum"], found["spec"]["versionPriority"]


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.mark.parametrize(
    ("plural", "group", "kind", "versions"),
    [
        ("clusterroles", RBAC, "ClusterRole", ("v9",)),
        ("clusterroles", RBAC, "ClusterRole", ("v9", "v1")),
        ("clusterroles", RBAC, "ClusterRole", ("v1",)),
        ("clusterroles", RBAC, "ClusterRole", ("v1alpha1", "v1beta1")),
        ("things", RBAC, "Thing", ("v1",)),
        ("things", RBAC, "ClusterRole", ("v9",)),
        ("certificatesigningrequests", "certificates.k8s.io", "CertificateSigningRequest", ("v9",)),
        ("customresourcedefinitions", "apiextensions.k8s.io", "CustomResourceDefinition", ("v9",)),
        ("customresourcedefinitions", "apiextensions.k8s.io", "CustomResourceDefinition", ("v1",)),
    ],
)
def test_a_definition_in_a_built_in_group_is_established_announced_and_never_served(
    server, plural, group, kind, versions
):
    own = f"/apis/{group}/v1"
    resources = server.request("GET", own)
    first = resources["resources"][0]["name"]
    kept = uids(server, f"{own}/{first}")
    was = api_service(server, f"v1.{group}")
    name = f"{plural}.{group}"
    extra = [version for version in versions if version != "v1"]
    server.request("POST", CRDS, definition(plural, group, kind, *versions))
    try:
        wait(lambda: conditions(server, name).get("Established") == ("True", "InitialNamesAccepted"))
        assert conditions(server, name)["NamesAccepted"] == ("True", "NoConflicts")
        for version in extra:
            wait(lambda v=version: api_service(server, f"{v}.{group}") == ("true", 1000, 100))
        assert api_service(server, f"v1.{group}") == was
        listed = [each["version"] for each in server.request("GET", f"/apis/{group}")["versions"]]
        assert listed == [*sorted(extra, reverse=True), "v1"]
        assert server.request("GET", own) == resources
        for version in versions:
            # What is built in at that version answers, and nobody else.
            builtin = version == "v1" and plural != "things"
            path = f"/apis/{group}/{version}/{plural}"
            assert code_of(server, "GET", path) == (200 if builtin else 404)
            assert builtin or code_of(server, "POST", path, {"metadata": {"name": "a"}}) == 404
            assert version == "v1" or code_of(server, "GET", f"/apis/{group}/{version}") == 404
        paths = read(server, "/openapi/v3")["paths"]
        for version in extra:
            assert f"apis/{group}/{version}" in paths
            described = read(server, f"/openapi/v3/apis/{group}/{version}")["paths"]
            assert list(described) == [f"/apis/{group}/{version}/{plural}{end}" for end in ("", "/{name}")]
            assert f"/apis/{group}/{version}/{plural}" in read(server, "/openapi/v2")["paths"]
    finally:
        server.request("DELETE", f"{CRDS}/{name}")
    wait(lambda: code_of(server, "GET", f"{CRDS}/{name}") == 404)
    for version in extra:
        wait(lambda v=version: api_service(server, f"{v}.{group}") is None)
    assert api_service(server, f"v1.{group}") == was
    assert uids(server, f"{own}/{first}") == kept
    assert [each["version"] for each in server.request("GET", f"/apis/{group}")["versions"]] == ["v1"]


def test_aggregated_discovery_lists_the_versions_of_definitions_before_the_built_in_ones(server):
    server.request("POST", CRDS, definition("roles", RBAC, "Role", "v9", scope="Namespaced"))
    wait(lambda: "Established" in conditions(server, f"roles.{RBAC}"))
    items = read(server, "/apis", AGGREGATED)["items"]
    group = next(item for item in items if item["metadata"]["name"] == RBAC)
    assert [
        (each["version"], [resource["resource"] for resource in each["resources"]])
        for each in group["versions"]
    ] == [("v9", ["roles"]), ("v1", ["clusterrolebindings", "clusterroles", "rolebindings", "roles"])]
    # A namespace goes though its definition has nothing to delete in it, nothing is counted, nothing collected.
    with server.namespace():
        pass
    server.request("DELETE", f"{CRDS}/roles.{RBAC}")


@pytest.mark.parametrize(
    ("plural", "group", "field"),
    [
        ("deployments", "apps", "spec.group"),
        ("pods", "core", "spec.group"),
        ("clusterroles", RBAC, "metadata.annotations[api-approved.kubernetes.io]"),
    ],
)
def test_groups_without_a_dot_and_without_approval_are_refused(server, plural, group, field):
    refused = definition(plural, group, "Thing", "v9")
    if group == RBAC:
        del refused["metadata"]["annotations"]
    with pytest.raises(ApiError, match=re.escape(f"is invalid: {field}: ")):
        server.request("POST", CRDS, refused)


def test_a_group_that_is_switched_off_is_anybodys(server):
    group, plural = "internal.apiserver.k8s.io", "storageversions"
    server.request("POST", CRDS, definition(plural, group, "StorageVersion", "v1alpha1"))
    path = f"/apis/{group}/v1alpha1/{plural}"
    wait(lambda: code_of(server, "GET", path) == 200)
    body = {"apiVersion": f"{group}/v1alpha1", "kind": "StorageVersion", "metadata": {"name": "a"}}
    server.request("POST", path, body)
    server.request("DELETE", f"{CRDS}/{plural}.{group}")
    wait(lambda: code_of(server, "GET", path) == 404)


class Drawn:
    """A package of a few resources."""

    def __init__(self, name: str, package: ServedPackage, groups: tuple[str, ...]) -> None:
        self.name = name
        self._package = package
        self.groups = tuple(group for group in package.groups if group.name in groups)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package, name)


def test_two_packages_with_one_group_are_refused():
    catalog, package = Catalog(), ServedPackage("kubernetes_api")
    add_package(catalog, Drawn("one", package, ("apps", RBAC)), ApiOptions())
    with pytest.raises(
        OptionError, match=r"two has the group 'rbac\.authorization\.k8s\.io', and one has it too"
    ):
        add_package(catalog, Drawn("two", package, (RBAC,)), ApiOptions())


# Databases that an earlier version wrote.


def obj(
    first: str, api_version: str, kind: str, name: str, uid: str, namespace: str = "", **fields: Any
) -> bytes:
    """An object as it was stored: ``first`` says which of its first fields comes first."""
    types = {"kind": kind, "apiVersion": api_version}
    if first == "apiVersion":
        types = {"apiVersion": api_version, "kind": kind}
    metadata = {"name": name, "uid": uid, "resourceVersion": REVISION_MARK, "creationTimestamp": BEFORE}
    if namespace:
        metadata["namespace"] = namespace
    return encode({**types, "metadata": metadata, **fields})


def write(path: Path, objects: dict[str, bytes]) -> None:
    """Puts objects into a database."""

    async def run() -> None:
        storage = await SqliteStorage.open(path)
        for key, value in objects.items():
            if (found := await storage.get(key)) is not None:
                await storage.update(key, found.revision, Value.cut(value))
            else:
                await storage.create(key, Value.cut(value))
        await storage.close()

    asyncio.run(run())


def as_format_2(path: Path) -> None:
    """Makes a database one of the format before: custom objects lie where a package's would."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT revision, key, created, deleted, value FROM log").fetchall()
        for revision, key, created, deleted, value in rows:
            old = key.replace("/custom:", "/")
            check = checksum(old, revision, created, deleted, value)
            connection.execute(
                "UPDATE log SET key = ?, checksum = ? WHERE revision = ?", (old, check, revision)
            )
        connection.execute("PRAGMA user_version = 2")
    connection.close()


def test_a_database_whose_definition_shadowed_a_built_in_kind_is_separated(tmp_path):
    path, url = tmp_path / "old.db", f"sqlite:///{tmp_path}/old.db"
    crd = definition("clusterroles", RBAC, "ClusterRole", "v9")
    with ApiServer(storage=url) as server:
        server.request("POST", CRDS, crd)
        gears = definition("gears", "example.com", "Gear", "v1")
        server.request("POST", CRDS, gears)
        wait(lambda: code_of(server, "GET", "/apis/example.com/v1/gears") == 200)
        gear = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "a"}}
        made = server.request("POST", "/apis/example.com/v1/gears", gear)
        roles = uids(server, f"/apis/{RBAC}/v1/clusterroles")
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    write(
        path,
        {
            f"/{RBAC}/clusterroles/own": obj(
                "apiVersion", f"{RBAC}/v9", "ClusterRole", "own", "u", rules=rules
            )
        },
    )
    as_format_2(path)
    with ApiServer(storage=url) as server:
        assert uids(server, f"/apis/{RBAC}/v1/clusterroles") == roles
        assert server.request("GET", "/apis/example.com/v1/gears/a") == made
        server.request("DELETE", f"{CRDS}/clusterroles.{RBAC}")
        wait(lambda: code_of(server, "GET", f"{CRDS}/clusterroles.{RBAC}") == 404)
        assert uids(server, f"/apis/{RBAC}/v1/clusterroles") == roles

    async def left() -> list[str]:
        storage = await SqliteStorage.open(path)
        keys = [record.key for record in (await storage.list("/custom:")).records]
        await storage.close()
        return keys

    assert asyncio.run(left()) == ["/custom:example.com/gears/a"]


MALFORMED: dict[str, Any] = {
    "subjects of another type": {"roleRef": {"kind": "ClusterRole", "name": "x"}, "subjects": 5},
    "a subject of another type": {
        "roleRef": {"kind": "ClusterRole", "name": "x"},
        "subjects": [1, {"kind": []}],
    },
    "a role of another type": {"roleRef": 5, "subjects": [{"kind": "User", "name": "eve"}]},
    "a role whose name is none": {"roleRef": {"kind": "ClusterRole", "name": {}}, "subjects": None},
    "rules of another type": {"rules": True},
    "a rule of another type": {"rules": [3, {"verbs": "get"}]},
    "an aggregation of another type": {"aggregationRule": "all", "rules": None},
    "selectors of another type": {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": 1}]}},
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_role_or_binding_gives_nothing_is_reported_and_stops_nobody(what, tmp_path, caplog):
    url, fields = f"sqlite:///{tmp_path}/k.db", MALFORMED[what]
    kinds = {
        "clusterrolebindings": "ClusterRoleBinding",
        "rolebindings": "RoleBinding",
        "clusterroles": "ClusterRole",
        "roles": "Role",
    }
    names = {"cluster": "admin", "": "default/admin"}  # one that a cluster starts with, too
    objects = {}
    for plural, kind in kinds.items():
        name = names["cluster" if plural.startswith("cluster") else ""]
        objects[f"/{RBAC}/{plural}/{name}"] = obj("kind", f"{RBAC}/v1", kind, "admin", "u", **fields)
    write(tmp_path / "k.db", objects)
    with ApiServer(storage=url) as server:
        assert not server.can("eve", "get", "pods")
        assert server.can("system:kube-scheduler", "list", "pods")  # the others count
        # What has a field of another type cannot be read, and an unreadable object cannot be deleted.
        bad_role = not fields.keys() & {"roleRef", "subjects"}
        assert code_of(server, "DELETE", f"/apis/{RBAC}/v1/clusterroles/admin") == (500 if bad_role else 200)
    reported = [record for record in caplog.records if "cannot be served" in record.message]
    assert {getattr(record, "reason", "") for record in reported} - {""}


# Over etcd.

ORDERS = "/backup.kubewright.dev/backupschedules/"


@pytest.fixture
def in_etcd(etcd_url: str) -> Callable[..., Any]:
    """Does something with the storage alone."""

    async def run(use: Callable[[Any], Any]) -> Any:
        storage = await open_storage(etcd_url)
        try:
            return await use(storage)
        finally:
            await storage.close()

    return lambda use: asyncio.run(run(use))


def test_a_definition_over_etcd_takes_nothing_with_it(etcd_url, in_etcd):
    with ApiServer(storage=etcd_url) as server:
        roles = uids(server, f"/apis/{RBAC}/v1/clusterroles")
        name = f"clusterroles.{RBAC}"
        server.request("POST", CRDS, definition("clusterroles", RBAC, "ClusterRole", "v9"))
        wait(lambda: conditions(server, name).get("Established") == ("True", "InitialNamesAccepted"))
        assert code_of(server, "GET", f"/apis/{RBAC}/v9/clusterroles") == 404
        server.request("DELETE", f"{CRDS}/{name}")
        wait(lambda: code_of(server, "GET", f"{CRDS}/{name}") == 404)
        assert uids(server, f"/apis/{RBAC}/v1/clusterroles") == roles


def test_objects_of_a_package_leave_the_place_in_etcd_that_is_of_definitions(etcd_url, in_etcd):
    group = "backup.kubewright.dev"
    ours = obj("kind", f"{group}/v1", "BackupSchedule", "a", "u", "default", spec={"cron": "0 0 * * *"})
    theirs = obj("apiVersion", f"{group}/v1", "BackupSchedule", "b", "v", "default", spec={})

    async def put(storage: Any) -> None:
        await storage.create(f"/custom:{ORDERS[1:]}default/a", Value.cut(ours))
        await storage.create(f"/custom:{ORDERS[1:]}default/b", Value.cut(theirs))

    async def keys(storage: Any) -> list[str]:
        return [r.key for r in (await storage.list("")).records if "backupschedules" in r.key]

    in_etcd(put)
    for _ in range(2):
        with ApiServer(storage=etcd_url, packages=("kubernetes_api", "backup_api")) as server:
            assert (
                server.request("GET", f"/apis/{group}/v1/backupschedules")["items"][0]["metadata"]["uid"]
                == "u"
            )
        assert in_etcd(keys) == [f"{ORDERS}default/a", f"/custom:{ORDERS[1:]}default/b"]
