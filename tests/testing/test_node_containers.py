"""What a container of the simulated node is made of: its variables and mounts, the files that it is given, its
resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from apimachinery.server.node.behaviour import Command, NodeBehaviour
from apimachinery.server.node.given_files import given_files
from kubernetes_api.client import Client
from kubewright.testing import ApiServer

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(node=True) as running:
        yield running


def pod(server: ApiServer, name: str, /, *, spec: Any = None, metadata: Any = None, **container: Any) -> Any:
    """Creates a pod of one container, which has to have settled."""
    containers = [{"name": "c", "image": "i", **container}]
    body = {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": containers, **(spec or {})},
    }
    server.request("POST", PODS, body)
    server.settle()
    return server.request("GET", f"{PODS}/{name}")


def waiting(found: Any) -> tuple[str, str]:
    state = found["status"]["containerStatuses"][0]["state"]["waiting"]
    return state["reason"], state.get("message", "")


def said(server: ApiServer, found: Any, line: str) -> str:
    ran = NodeBehaviour().execute(Command(found, "c", ("sh", "-c", line)))
    assert isinstance(ran.stdout, bytes)
    return (ran.stdout + ran.stderr).decode()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("..", "unable to provision SubPath `..`: must not contain '..'"),
        ("/tmp", "error SubPath `/tmp` must not be an absolute path"),
        (None, 'missing value for "PLACE"'),
    ],
)
def test_a_mount_that_leaves_its_volume(server: ApiServer, value: str | None, message: str) -> None:
    mount = {"name": "v", "mountPath": "/logs", "subPathExpr": "$(PLACE)"}
    environment = [] if value is None else [{"name": "PLACE", "value": value}]
    volumes = [{"name": "v", "emptyDir": {}}]
    name = f"mounts-{len(message)}"
    found = pod(server, name, spec={"volumes": volumes}, volumeMounts=[mount], env=environment)
    assert found["status"]["phase"] == "Pending"
    assert waiting(found) == ("CreateContainerConfigError", message)


def test_a_mount_is_made_once_its_annotation_is_there(server: ApiServer) -> None:
    field = {"fieldRef": {"fieldPath": "metadata.annotations['place']"}}
    mount = {"name": "v", "mountPath": "/logs", "subPathExpr": "$(PLACE)/logs"}
    environment = [{"name": "PLACE", "valueFrom": field}]
    volumes = [{"name": "v", "emptyDir": {}}]
    found = pod(server, "later", spec={"volumes": volumes}, volumeMounts=[mount], env=environment)
    assert waiting(found)[0] == "CreateContainerConfigError"
    server.request("PATCH", f"{PODS}/later", {"metadata": {"annotations": {"place": "here"}}}, MERGE)
    server.settle()
    assert server.request("GET", f"{PODS}/later")["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ({"secretKeyRef": {"name": "none", "key": "k"}}, 'secret "none" not found'),
        ({"configMapKeyRef": {"name": "some", "key": "k"}}, "couldn't find key k in ConfigMap default/some"),
        ({"configMapKeyRef": {"name": "none", "key": "k", "optional": True}}, ""),
    ],
)
def test_a_variable_that_refers_to_nothing(server: ApiServer, variable: Any, message: str) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    server.request("POST", path, {"metadata": {"name": "some"}, "data": {"other": "x"}})
    try:
        found = pod(server, f"refers-{len(message)}", env=[{"name": "X", "valueFrom": variable}])
    finally:
        server.request("DELETE", f"{path}/some")
    if message:
        assert waiting(found) == ("CreateContainerConfigError", message)
    else:
        assert found["status"]["phase"] == "Running"


def test_a_command_with_an_open_stdin_runs_where_it_does_not_read(server: ApiServer) -> None:
    script = ["sh", "-c", "while true; do echo polo; sleep 60; done"]
    for name, command in (("talks", script), ("listens", ["cat"])):
        assert pod(server, name, command=command, stdin=True, tty=True)["status"]["phase"] == "Running"
    with cast(Client, server.client()) as client:
        assert client.core_v1.pods.read_log("talks", namespace="default") == "polo\n"
        with client.core_v1.pods.attach("listens", stdin=True) as process:
            process.write(b"words")
            process.end_stdin()
            assert process.wait().stdout == b"words"


def test_hosts_are_a_kubelets(server: ApiServer) -> None:
    aliases = [{"ip": "123.45.67.89", "hostnames": ["foo", "bar"]}]
    found = pod(server, "hosts", spec={"hostAliases": aliases, "subdomain": "web"})
    text = said(server, found, "cat /etc/hosts")
    assert text.startswith("# Kubernetes-managed hosts file.\n")
    assert f"\n{found['status']['podIP']}\thosts.web.default.svc.cluster.local\thosts\n" in text
    assert text.endswith("\n# Entries added by HostAliases.\n123.45.67.89\tfoo\tbar\n")
    found = pod(server, "on-host", spec={"hostNetwork": True})
    assert said(server, found, "head -n 1 /etc/hosts") == "# Kubernetes-managed hosts file (host network).\n"


def test_what_is_mounted_hides_what_is_given(server: ApiServer) -> None:
    volumes = [{"name": "v", "hostPath": {"path": "/etc/hosts"}}]
    mounts = [{"name": "v", "mountPath": path} for path in ("/etc/hosts", "/etc/hosts-original")]
    found = pod(server, "mounted", spec={"volumes": volumes}, volumeMounts=mounts)
    assert said(server, found, "cat /etc/hosts /etc/hosts-original") == "127.0.0.1\tlocalhost\n" * 2
    volumes[0]["hostPath"] = {"path": "/etc"}
    found["spec"]["volumes"], found["spec"]["containers"][0]["volumeMounts"] = (
        volumes,
        [{"name": "v", "mountPath": "/host/etc"}],
    )
    assert said(server, found, "cat /host/etc/hosts") == "127.0.0.1\tlocalhost\n"


def test_what_is_given_can_be_written_over_but_not_removed(server: ApiServer) -> None:
    found = pod(server, "writes")
    assert said(server, found, "echo x > /etc/hosts; cat /etc/hosts") == "x\n"
    assert said(server, found, "rm /etc/hosts") == "rm: can't remove '/etc/hosts': Device or resource busy\n"
    assert "busy" in said(server, found, "mv /etc/hosts /tmp/hosts")


@pytest.mark.parametrize(
    ("requests", "limits", "files"),
    [
        ({}, {}, ("max 100000", "1", "max")),
        ({"cpu": "2m"}, {"cpu": "10m", "memory": "35Mi"}, ("1000 100000", "1", "36700160")),
        ({"cpu": "100m", "memory": "20Mi"}, {}, ("max 100000", "4", "max")),
        ({"cpu": "2"}, {"cpu": "2500m"}, ("250000 100000", "79", "max")),
        ({}, {"cpu": "1"}, ("100000 100000", "39", "max")),
    ],
)
def test_control_groups_have_the_limits(requests: Any, limits: Any, files: tuple[str, ...]) -> None:
    container = {"name": "c", "resources": {"requests": requests, "limits": limits}}
    given = given_files({"metadata": {"name": "p"}, "spec": {"containers": [container]}}, container)
    names = ("cpu.max", "cpu.weight", "memory.max")
    assert tuple(given[f"/sys/fs/cgroup/{name}"].decode().strip() for name in names) == files


@pytest.mark.parametrize(("policy", "restarts"), [("NotRequired", 0), ("RestartContainer", 1)])
def test_a_resize_is_seen_in_the_status(server: ApiServer, policy: str, restarts: int) -> None:
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    policies = [{"resourceName": "cpu", "restartPolicy": policy}]
    name = f"resized-{restarts}"
    shown = pod(server, name, resources=resources, resizePolicy=policies)["status"]["containerStatuses"][0]
    assert (shown["resources"], shown["allocatedResources"]) == (resources, resources["requests"])
    wanted = {"requests": {"cpu": "150m"}, "limits": {"cpu": "300m"}}
    patch = {"spec": {"containers": [{"name": "c", "resources": wanted}]}}
    strategic = "application/strategic-merge-patch+json"
    server.request("PATCH", f"{PODS}/{name}/resize", patch, strategic)
    server.settle()
    found = server.request("GET", f"{PODS}/{name}")
    shown = found["status"]["containerStatuses"][0]
    assert (shown["resources"], shown["allocatedResources"]) == (wanted, wanted["requests"])
    assert (shown["restartCount"], shown["ready"]) == (restarts, True)
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"] == 2
    assert said(server, found, "head -n 1 /sys/fs/cgroup/cpu.max") == "30000 100000\n"


def test_containers_share_volumes_below_their_mounts(server: ApiServer) -> None:
    volumes = [{"name": "shared", "emptyDir": {}}, {"name": "other", "emptyDir": {}}]
    found = pod(server, "shares", spec={"volumes": volumes}, env=[{"name": "PLACE", "value": "deep"}])
    (container,) = found["spec"]["containers"]
    container["volumeMounts"] = [
        {"name": "shared", "mountPath": "/data"},
        {"name": "shared", "mountPath": "/part", "subPathExpr": "$(PLACE)"},
        {"name": "other", "mountPath": "/data/other/"},
    ]
    beside = {"name": "d", "image": "i", "volumeMounts": [{"name": "shared", "mountPath": "/elsewhere"}]}
    found["spec"]["containers"].append(beside)
    shell = NodeBehaviour().execute

    def run(name: str, line: str) -> str:
        ran = shell(Command(found, name, ("sh", "-c", line)))
        assert isinstance(ran.stdout, bytes)
        return (ran.stdout + ran.stderr).decode()

    assert run("c", "echo a > /data/a; echo b > /part/b; echo c > /data/other/c; echo d > /d") == ""
    assert (
        run("c", "cat /data/a /data/deep/b /data/other/c /d; test -d /data/deep; echo $?")
        == "a\nb\nc\nd\n0\n"
    )
    assert run("d", "cat /elsewhere/a /elsewhere/deep/b; ls /elsewhere; ls /data") == (
        "a\nb\na\ndeep\nls: /data: No such file or directory\n"
    )
    assert run("d", "rm /elsewhere/a; cat /elsewhere/a") == "cat: /elsewhere/a: No such file or directory\n"
    assert run("c", "ls /data") == "deep\nother\n"


def test_sysctls_are_those_of_the_pod(server: ApiServer) -> None:
    given = [{"name": "kernel.shm_rmid_forced", "value": "1"}]
    found = pod(server, "tuned", spec={"securityContext": {"sysctls": given}})
    assert said(server, found, "sysctl kernel.shm_rmid_forced") == "kernel.shm_rmid_forced = 1\n"
    assert said(server, found, "sysctl net.x") == "sysctl: error: 'net.x' is an unknown key\n"


def test_a_pod_whose_ports_another_has_is_not_admitted(server: ApiServer) -> None:
    ports = [{"containerPort": 21017, "hostPort": 21017}]
    node = {"nodeName": "kubewright-node"}
    assert pod(server, "first", spec=node, ports=ports)["status"]["phase"] == "Running"
    status = pod(server, "second", spec=node, ports=ports)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NodePorts")
    assert status["message"].startswith(
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free"
    )
    server.request("DELETE", f"{PODS}/first")
    server.settle()
    assert pod(server, "third", spec=node, ports=ports)["status"]["phase"] == "Running"
