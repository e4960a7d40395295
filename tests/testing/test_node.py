"""The simulated node: pods run, become ready, end and fail as they are told to; logs and commands are answered."""

from __future__ import annotations

import asyncio
import gc
import lzma
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from apimachinery.client.channels import STDOUT
from apimachinery.client.errors import ApiError, BadRequest
from apimachinery.http.messages import Request, Response
from apimachinery.server.node.behaviour import Command, NodeBehaviour, Plan, PodRule, Ran, parse_duration
from apimachinery.server.node.streams import NodeStreams
from kubernetes_api.async_client import AsyncClient
from kubernetes_api.client import Client
from kubewright.testing import ApiServer

MANAGER = Path(__file__).parents[3] / "shared/reference/bin/kube-controller-manager.xz"
PODS = "/api/v1/namespaces/default/pods"


def run(command: Command) -> Ran:
    if command.argv == ("greet",):
        return Ran(b"hello " + command.stdin, b"a warning\n", 3)
    if command.argv == ("slow",):
        time.sleep(0.2)
        return Ran(b"x" * 300_000)
    return files(command)


files = NodeBehaviour().execute
RULES = (
    PodRule(selector="app=slow", plan=Plan(start_after=0.3, ready_after=0.3)),
    PodRule(name="once-*", plan=Plan(succeed_after=0.1)),
)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    behaviour = NodeBehaviour(
        rules=RULES,
        execute=run,
        listens=lambda pod, port: port != 9,
        logs=lambda pod, container: f"{container} one\ntwo\nthree\n",
    )
    with ApiServer(node=behaviour) as running:
        yield running


@pytest.fixture
def client(server: ApiServer) -> Iterator[Client]:
    from apimachinery.client.config import Config

    with Client(Config.load(server.kubeconfig)) as made:
        yield made


@pytest.fixture
def pod(server: ApiServer) -> Iterator[Callable[..., Any]]:
    made: list[str] = []

    def make(name: str, labels: Any = None, containers: Any = ("c",), **spec: Any) -> Any:
        notes = {f"node.kubewright.dev/{k.replace('_', '-')}": spec.pop(k) for k in [*spec] if "_" in k}
        body = {
            "metadata": {"name": name, "labels": labels or {}, "annotations": notes},
            "spec": {"containers": [{"name": c, "image": "i"} for c in containers], **spec},
        }
        made.append(name)
        return server.request("POST", PODS, body)

    yield make
    for name in made:
        try:
            server.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        except ApiError as error:
            assert error.code == 404


def get(server: ApiServer, name: str) -> Any:
    try:
        return server.request("GET", f"{PODS}/{name}")
    except ApiError:
        return None


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def phase(server: ApiServer, name: str) -> str:
    return str(get(server, name)["status"].get("phase"))


def is_ready(found: Any) -> bool:
    conditions = found["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def test_a_pod_is_bound_runs_is_ready_and_goes(server: ApiServer, pod: Callable[..., Any]) -> None:
    pod("a")
    until(lambda: is_ready(get(server, "a")))
    found = get(server, "a")
    assert found["spec"]["nodeName"] == "kubewright-node"
    assert found["status"]["phase"] == "Running"
    assert found["status"]["podIP"].startswith("10.244.")
    (container,) = found["status"]["containerStatuses"]
    assert container["ready"]
    assert container["state"]["running"]
    server.request("DELETE", f"{PODS}/a")
    until(lambda: get(server, "a") is None)


def test_what_others_add_to_the_capacity_can_be_allocated(server: ApiServer) -> None:
    node, merge = "/api/v1/nodes/kubewright-node", "application/merge-patch+json"
    server.request("PATCH", f"{node}/status", {"status": {"capacity": {"example.com/foo": "5"}}}, merge)
    server.clock.advance("11s")
    server.settle()
    status = server.request("GET", node)["status"]
    assert status["allocatable"]["example.com/foo"] == status["capacity"]["example.com/foo"] == "5"


def test_stages_come_by_rule_and_annotation(
    server: ApiServer, client: Client, pod: Callable[..., Any]
) -> None:
    created = pod("slow", {"app": "slow"})
    pod("once-1", restartPolicy="Never")
    pod("bad", restartPolicy="Never", fail_after="50ms", exit_code="7")
    pod("lost", image_error="true")
    stages: list[tuple[str, bool]] = []
    version = created["metadata"]["resourceVersion"]
    with client.core_v1.pods.watch(
        namespace="default", field_selector="metadata.name=slow", resource_version=version, timeout_seconds=90
    ) as events:
        for event in events:
            status = event.object.status
            assert status is not None
            ready = any(c.type == "Ready" and c.status == "True" for c in status.conditions or [])
            stages.append((status.phase or "", ready))
            if ready:
                break
    assert [stage for stage, _ in groupby(stages)] == [
        ("Pending", False),
        ("Running", False),
        ("Running", True),
    ]
    until(lambda: phase(server, "once-1") == "Succeeded")
    until(lambda: phase(server, "bad") == "Failed")
    ended = get(server, "bad")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (7, "Error")
    waiting = get(server, "lost")["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "ImagePullBackOff"


def test_a_container_that_fails_is_restarted(server: ApiServer, pod: Callable[..., Any]) -> None:
    pod("crash", fail_after="100ms")

    def container() -> Any:
        return (get(server, "crash")["status"].get("containerStatuses") or [{}])[0]

    until(lambda: container().get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff")
    assert container()["restartCount"] == 1
    assert container()["lastState"]["terminated"]["exitCode"] == 1
    until(lambda: container()["restartCount"] == 2)


def test_deletion_takes_what_it_is_told_to_within_the_grace(
    server: ApiServer, pod: Callable[..., Any]
) -> None:
    pod("stubborn", terminate_after="10m", terminationGracePeriodSeconds=1)
    until(lambda: is_ready(get(server, "stubborn")))
    began = time.monotonic()
    server.request("DELETE", f"{PODS}/stubborn")
    assert get(server, "stubborn")["metadata"]["deletionTimestamp"]
    until(lambda: get(server, "stubborn") is None)
    assert 0.9 < time.monotonic() - began < 100  # and not ten minutes


def test_watchers_see_the_containers_end_before_a_pod_goes(
    server: ApiServer, client: Client, pod: Callable[..., Any]
) -> None:
    pod("ending", exit_code="3")
    until(lambda: is_ready(get(server, "ending")))
    version = get(server, "ending")["metadata"]["resourceVersion"]
    seen = []
    with client.core_v1.pods.watch(
        namespace="default", resource_version=version, field_selector="metadata.name=ending"
    ) as events:
        server.request("DELETE", f"{PODS}/ending")
        for event in events:
            status = event.object.status
            assert status is not None
            ready = next(c.status for c in status.conditions or [] if c.type == "Ready")
            seen.append((event.type, status.phase, ready))
            if event.type == "DELETED":
                break
    assert seen[-2:] == [("MODIFIED", "Failed", "False"), ("DELETED", "Failed", "False")]


def test_other_schedulers_and_nodes_are_left_alone(server: ApiServer, pod: Callable[..., Any]) -> None:
    pod("mine", schedulerName="mine")
    pod("elsewhere", nodeName="other")
    pod("after")
    until(lambda: is_ready(get(server, "after")))
    assert "nodeName" not in get(server, "mine")["spec"]
    assert not is_ready(get(server, "elsewhere"))


def test_the_node_is_there(server: ApiServer) -> None:
    node = server.request("GET", "/api/v1/nodes/kubewright-node")
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
    assert "taints" not in node["spec"]
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/kubewright-node"
    assert server.request("GET", lease)["spec"]["holderIdentity"] == "kubewright-node"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h2m3.5s", 3723.5), ("200ms", 0.2), ("0", 0.0), ("5", None), ("soon", None), ("", None)],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


# ------------------------------------------------------------------ what a kubelet answers


def test_logs(client: Client, server: ApiServer, pod: Callable[..., Any]) -> None:
    pod("talks", containers=("c", "d"))
    until(lambda: is_ready(get(server, "talks")))
    pods = client.core_v1.pods
    assert pods.read_log("talks", container="d", namespace="default") == "d one\ntwo\nthree\n"
    assert pods.read_log("talks", container="d", tail_lines=1, namespace="default") == "three\n"
    assert len([*pods.follow_log("talks", container="c", namespace="default")]) == 3
    with pytest.raises(
        BadRequest, match=r"a container name must be specified for pod talks, choose one of: \[c d\]"
    ):
        pods.read_log("talks")
    with pytest.raises(BadRequest, match="container x is not valid for pod talks"):
        pods.read_log("talks", container="x")


@pytest.fixture(params=["websocket", "SPDY"])
def over(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What the node speaks: of SPDY alone, as before websockets, with a server's answer of those days."""
    upgrades = []
    answer = NodeStreams.answer

    async def old(self: NodeStreams, asked: Request, route: Any, pod: Any) -> Any:
        upgrade = asked.headers.get("upgrade", "").lower()
        if request.param == "SPDY" and upgrade == "websocket":
            text = b"unable to upgrade: missing upgrade headers in request: unknown\n"
            return Response(400, text, "text/plain; charset=utf-8")
        upgrades.append(upgrade)
        return await answer(self, asked, route, pod)

    monkeypatch.setattr(NodeStreams, "answer", old)
    yield request.param
    assert {"websocket": "websocket", "SPDY": "spdy/3.1"}[request.param] in upgrades


def test_commands(client: Client, server: ApiServer, pod: Callable[..., Any], over: str) -> None:
    pod("runs")
    until(lambda: is_ready(get(server, "runs")))
    pods = client.core_v1.pods
    result = pods.exec("runs", ["greet"], stdin=b"you")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"hello you", b"a warning\n")
    assert pods.exec("runs", ["greet"]).text == "hello "
    assert len(pods.exec("runs", ["slow"]).stdout) == 300_000
    assert pods.exec("runs", ["none"]).exit_code == 127
    with pods.start_exec("runs", ["cat"], stdin=True) as process:
        process.write(b"a" * 100_000)
        process.write(b"b")
        process.resize(80, 24)
        process.end_stdin()
        assert process.wait().stdout == b"a" * 100_000 + b"b"
    with pods.attach("runs") as process:
        assert process.read() == (STDOUT, b"c one\ntwo\nthree\n")
        assert process.read() is None
        assert process.exit_code == 0
    with pytest.raises(BadRequest, match="container x is not valid"):
        pods.exec("runs", ["greet"], container="x")
    with pytest.raises(ApiError, match='pods "nobody" not found'):
        pods.exec("nobody", ["greet"])


def test_ports(client: Client, server: ApiServer, pod: Callable[..., Any], over: str) -> None:
    pod("listens")
    until(lambda: is_ready(get(server, "listens")))
    with client.core_v1.pods.port_forward("listens", 8080) as connection:
        for data in (b"ping", b"pong" * 10_000):
            connection.write(data)
            found = b""
            while len(found) < len(data):
                found += connection.read()
            assert found == data


def test_a_port_at_which_nothing_listens(
    client: Client, server: ApiServer, pod: Callable[..., Any], over: str
) -> None:
    pod("deaf")
    until(lambda: is_ready(get(server, "deaf")))
    with (
        client.core_v1.pods.port_forward("deaf", 9) as connection,
        pytest.raises(
            ApiError, match=r"error forwarding port 9 to pod deaf_default\(.+\): connection refused"
        ),
    ):
        connection.read()


def test_files_are_copied_both_ways(
    client: Client, server: ApiServer, pod: Callable[..., Any], tmp_path: Path, over: str
) -> None:
    pod("keeps")
    until(lambda: is_ready(get(server, "keeps")))
    pods = client.core_v1.pods
    source = tmp_path / "site"
    (source / "deep").mkdir(parents=True)
    (source / "index.html").write_text("hello")
    (source / "deep" / "page").write_bytes(bytes(range(256)) * 100)
    pods.copy_to("keeps", source, "/srv/www")
    assert pods.exec("keeps", ["cat", "/srv/www/index.html"]).text == "hello"
    pods.copy_from("keeps", "/srv/www", tmp_path / "back")
    assert (tmp_path / "back/deep/page").read_bytes() == bytes(range(256)) * 100
    with pytest.raises(ApiError, match="No such file or directory"):
        pods.copy_from("keeps", "/nowhere", tmp_path / "x")


def test_the_same_in_tasks(server: ApiServer, pod: Callable[..., Any], tmp_path: Path, over: str) -> None:
    pod("runs")
    until(lambda: is_ready(get(server, "runs")))

    async def story() -> None:
        from apimachinery.client.config import Config

        async with AsyncClient(Config.load(server.kubeconfig)) as client, asyncio.timeout(60):
            pods = client.core_v1.pods
            assert (await pods.exec("runs", ["greet"], stdin=b"you")).exit_code == 3
            async with await pods.port_forward("runs", 80) as connection:
                await connection.write(b"ping")
                assert await connection.read() == b"ping"
            (tmp_path / "f").write_text("x")
            await pods.copy_to("runs", tmp_path / "f", "/f")
            assert (await pods.exec("runs", ["cat", "/f"])).text == "x"

    asyncio.run(story())


def test_over_tls() -> None:
    with ApiServer(node=True, tls=True) as server:
        server.request(
            "POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        )
        until(lambda: is_ready(get(server, "p")))
        from apimachinery.client.config import Config

        config = Config.load(server.kubeconfig)
        with Client(config) as client:
            assert client.core_v1.pods.exec("p", ["echo", "hi"]).text == "hi\n"

        async def story() -> None:
            async with AsyncClient(config) as other:
                assert (await other.core_v1.pods.exec("p", ["echo", "hi"])).text == "hi\n"

        asyncio.run(story())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it leaves its socket open
def test_the_official_client_runs_commands(server: ApiServer, pod: Callable[..., Any]) -> None:
    pytest.importorskip("kubernetes")
    from kubernetes import client as official
    from kubernetes import config
    from kubernetes.stream import stream

    pod("runs")
    until(lambda: is_ready(get(server, "runs")))
    core = official.CoreV1Api(config.new_client_from_config(str(server.kubeconfig)))
    said = stream(
        core.connect_get_namespaced_pod_exec,
        "runs",
        "default",
        command=["echo", "hi"],
        stdout=True,
        stderr=True,
    )
    assert said == "hi\n"
    core.api_client.close()
    del core
    gc.collect()


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kubectl_runs_commands(server: ApiServer, pod: Callable[..., Any]) -> None:
    pod("runs")
    until(lambda: is_ready(get(server, "runs")))
    base = ["kubectl", "--kubeconfig", str(server.kubeconfig)]
    for arguments, said in (
        (["exec", "runs", "--", "echo", "hi"], "hi\n"),
        (["exec", "-i", "runs", "--", "cat"], "input"),
        (["logs", "runs"], "c one\ntwo\nthree\n"),
    ):
        done = subprocess.run(
            [*base, *arguments], input="input", capture_output=True, text=True, timeout=30, check=False
        )
        assert done.stdout == said, done.stderr


@pytest.mark.shared
@pytest.mark.skipif(not MANAGER.is_file(), reason=f"{MANAGER} is not there")
def test_a_rollout_completes_beside_the_stock_controller_manager(tmp_path: Path) -> None:
    program = tmp_path / "kube-controller-manager"
    program.write_bytes(lzma.decompress(MANAGER.read_bytes()))
    program.chmod(0o755)
    with ApiServer(node=True) as server:
        arguments = [
            str(program),
            f"--kubeconfig={server.kubeconfig}",
            "--leader-elect=false",
            "--controllers=deployment-controller,replicaset-controller,job-controller",
            "--secure-port=0",
            "--use-service-account-credentials=false",
        ]
        with (
            (tmp_path / "log").open("wb") as output,
            subprocess.Popen(
                arguments, stdout=output, stderr=output, env={**os.environ, "GOMAXPROCS": "1"}
            ) as manager,
        ):
            try:
                spec: dict[str, Any] = {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
                    },
                }
                path = "/apis/apps/v1/namespaces/default/deployments"
                server.request("POST", path, {"metadata": {"name": "web"}, "spec": spec})

                def rolled_out(image: str) -> bool:
                    found = server.request("GET", f"{path}/web")
                    status = found.get("status", {})
                    images = {
                        p["spec"]["containers"][0]["image"] for p in server.request("GET", PODS)["items"]
                    }
                    return (
                        status.get("observedGeneration") == found["metadata"]["generation"]
                        and status.get("updatedReplicas") == status.get("readyReplicas") == 3
                        and status.get("replicas") == 3
                        and images == {image}
                    )

                until(lambda: rolled_out("web:1"), 60)
                change = [
                    {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}
                ]
                server.request("PATCH", f"{path}/web", change, "application/json-patch+json")
                until(lambda: rolled_out("web:2"), 60)
                job = {
                    "metadata": {"name": "once"},
                    "spec": {
                        "template": {
                            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
                        }
                    },
                }
                jobs = "/apis/batch/v1/namespaces/default/jobs"
                server.request("POST", jobs, job)
                until(lambda: server.request("GET", f"{jobs}/once")["status"].get("succeeded") == 1, 60)
            finally:
                manager.kill()


def test_a_command_has_the_values_of_other_objects() -> None:
    said = "$COLOR $X_key $HOST $MEMORY $CPU $WEB_1_SERVICE_PORT_HTTP $WEB_1_PORT_80_TCP"
    line = f'test "{said}" = "red hush 127.0.0.1 2 64 80 tcp://10.0.0.9:80" && exit 7'
    environment = [
        {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "values", "key": "color"}}},
        {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {
            "name": "MEMORY",
            "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}},
        },
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    container: dict[str, Any] = {"name": "c", "image": "i", "command": ["sh", "-c", line], "env": environment}
    container["resources"] = {"requests": {"memory": "1500Ki"}}
    container["envFrom"] = [{"prefix": "X_", "secretRef": {"name": "values"}}]
    with ApiServer(node=True) as other:
        for plural, data in (("configmaps", {"color": "red"}), ("secrets", {"key": "aHVzaA=="})):
            body: dict[str, Any] = {"metadata": {"name": "values"}, "data": data}
            other.request("POST", f"/api/v1/namespaces/default/{plural}", body)
        ports = [{"name": "http", "port": 80}]
        service = {"metadata": {"name": "web-1"}, "spec": {"clusterIP": "10.0.0.9", "ports": ports}}
        other.request("POST", "/api/v1/namespaces/default/services", service)
        body = {"metadata": {"name": "p"}, "spec": {"containers": [container], "restartPolicy": "Never"}}
        other.request("POST", PODS, body)
        until(lambda: phase(other, "p") == "Failed", 60)
        ended = get(other, "p")["status"]["containerStatuses"][0]["state"]["terminated"]
        assert ended["exitCode"] == 7


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kubectl_sees_runs_that_were_and_debugs() -> None:
    with ApiServer(node=True) as other:
        base = ["kubectl", "--kubeconfig", str(other.kubeconfig)]

        def kubectl(*words: str) -> str:
            done = subprocess.run([*base, *words], capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        kubectl("run", "p", "--image=i", "--command", "--", "sh", "-c", "echo once; sleep 0.2; exit 4")
        until(lambda: get(other, "p")["status"].get("containerStatuses", [{}])[0].get("restartCount"), 60)
        until(lambda: kubectl("logs", "p", "--previous") == "once\n", 60)
        kubectl("run", "q", "--image=i")
        until(lambda: is_ready(get(other, "q")), 60)
        kubectl("debug", "q", "--image=i", "--container=d", "--profile=general", "--", "sh", "-c", "exit 3")

        def debugged() -> Any:
            return get(other, "q")["status"].get("ephemeralContainerStatuses", [{}])[0].get("state", {})

        until(lambda: debugged().get("terminated", {}).get("exitCode") == 3, 60)
        assert is_ready(get(other, "q"))
