"""The client against lightkube, the official client and kr8s, on one server of ours in a process of its own.

Each measurement is an interpreter of its own (client_peers.py), ours and its peers by turns; the server is the same
for all. A peer that has no such call (kr8s has neither apply nor a plain watch of raw versions) is left out.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.measuring import ROOT, Peer, Row, compare, installed, python

from apimachinery.client.config import Config
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import ConfigMap, Namespace
from kubernetes_api.meta_v1 import ObjectMeta

PODS, EVENTS, TURNS = 10_000, 5_000, 3
PATIENCE = 20.0
IMPORTS = {
    "ours": "from kubernetes_api.client import Client; import kubernetes_api.core_v1.client",
    "lightkube": "from lightkube import Client; import lightkube.resources.core_v1",
    "kubernetes": "import kubernetes.client",
    "kr8s": "import kr8s, kr8s.objects",
}
CONTAINER: dict[str, Any] = {
    "image": "registry.example/team/app:1.2.3",
    "args": ["--listen=:8080", "--verbose"],
    "env": [{"name": f"V{n}", "value": f"value-{n}"} for n in range(8)],
    "ports": [{"name": "web", "containerPort": 8080}],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    "livenessProbe": {"httpGet": {"path": "/healthz", "port": "web"}, "periodSeconds": 10},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [{**CONTAINER, "name": "app"}, {**CONTAINER, "name": "side"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    },
}


def measure() -> list[Row]:
    peers = [name for name in ("lightkube", "kubernetes", "kr8s") if installed(name)]
    rows = compare(
        "client: import",
        python("-c", IMPORTS["ours"]),
        [Peer(name, python("-c", IMPORTS[name]), target=1.0) for name in peers],
    )
    with served() as kubeconfig:
        version = fill(kubeconfig)
        for title, work, more in (
            ("client: get × 1,000", "get", ()),
            (f"client: list of {PODS:,} pods", "list", ()),
            (f"client: watch, {EVENTS:,} events", "watch", (version, str(EVENTS))),
            ("client: apply × 500", "apply", ()),
        ):
            found = by_turns(["ours", *peers], work, kubeconfig, more)
            for peer in peers:
                if peer in found:
                    rows.append(row(title, peer, found, "seconds", 1.0))
            if work == "list":
                for peer in peers:
                    rows.append(row(f"{title}, peak memory (1 s = 1 GB)", peer, found, "peak", 1e9))
    return rows


def row(title: str, peer: str, found: dict[str, list[dict[str, float]]], what: str, unit: float) -> Row:
    ours, theirs = (statistics.median(each[what] for each in found[name]) / unit for name in ("ours", peer))
    return Row(bench=title, peer=peer, ours=ours, theirs=theirs, target=1.0)


def by_turns(
    names: list[str], work: str, kubeconfig: Path, more: tuple[str, ...]
) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {}
    script = str(Path(__file__).with_name("client_peers.py"))
    path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
    for _ in range(TURNS):
        for name in names:
            if any(each["seconds"] > PATIENCE for each in found.get(name, ())):
                continue  # once says enough
            done = subprocess.run(
                [sys.executable, script, name, work, str(kubeconfig), *more],
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            if done.returncode:
                print(f"  ({name} failed at {work}: {done.stderr.strip().splitlines()[-1]})", file=sys.stderr)
            elif answer := json.loads(done.stdout):
                found.setdefault(name, []).append(answer)
    return found


@contextmanager
def served() -> Iterator[Path]:
    """A server in a process of its own, and the kubeconfig that leads to it."""
    with tempfile.TemporaryDirectory(prefix="kubewright-bench-") as folder:
        kubeconfig = Path(folder) / "config"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
        process = subprocess.Popen(
            [sys.executable, "-m", "kubewright", "serve", "--storage", "memory://", "--port", str(port),
             "--kubeconfig", str(kubeconfig), "--controllers", "none", "--log-level", "error", "--anonymous-admin"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until = time.monotonic() + 30
            while not kubeconfig.exists():
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("the server for benchmarks did not start")
                time.sleep(0.05)
            yield kubeconfig
        finally:
            process.terminate()
            process.wait(20)


def fill(kubeconfig: Path) -> str:
    """Pods to list and events to watch; the version before the events."""
    with Client(Config.load(kubeconfig).with_namespace("bench")) as client:
        core = client.core_v1
        core.namespaces.create(Namespace(metadata=ObjectMeta(name="bench")))
        for number in range(PODS):
            pod: Any = {
                **POD,
                "metadata": {"name": f"p{number:05}", "labels": {"app": "bench", "n": str(number)}},
            }
            core.pods.create(pod)
        made = core.configmaps.create(ConfigMap(metadata=ObjectMeta(name="changing")))
        assert made.metadata is not None
        for number in range(EVENTS):
            core.configmaps.patch("changing", {"data": {"n": str(number)}})
        return made.metadata.resource_version or ""
