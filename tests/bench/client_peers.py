"""One client library at a time, in an interpreter of its own: what it takes for the work named on the command line.

    python client_peers.py LIBRARY WORK KUBECONFIG …

prints seconds and peak resident memory in bytes as JSON. Run by bench_client.py, so that no library pays for another.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

NAMESPACE = "bench"
GETS, APPLIES = 1_000, 500


def ours(kubeconfig: str) -> dict[str, Callable[..., object]]:
    from apimachinery.client.config import Config
    from kubernetes_api.client import Client
    from kubernetes_api.core_v1 import apply
    from kubernetes_api.meta_v1 import apply as meta

    core = Client(Config.load(kubeconfig).with_namespace(NAMESPACE)).core_v1

    def do_apply() -> None:
        for number in range(APPLIES):
            core.configmaps.apply(
                apply.ConfigMap(metadata=meta.ObjectMeta(name="applied"), data={"n": str(number)}),
                field_manager="bench",
            )

    def do_watch(version: str, count: str) -> None:
        left = int(count)
        for _ in core.configmaps.watch(resource_version=version):
            left -= 1
            if not left:
                break

    return {
        "get": lambda: [core.pods.get("p00000") for _ in range(GETS)],
        "list": lambda: list(core.pods.list()),
        "watch": do_watch,
        "apply": do_apply,
    }


def lightkube(kubeconfig: str) -> dict[str, Callable[..., object]]:
    from lightkube import Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap, Pod

    client = Client(KubeConfig.from_file(kubeconfig), namespace=NAMESPACE)

    def do_apply() -> None:
        for number in range(APPLIES):
            client.apply(
                ConfigMap(
                    apiVersion="v1",
                    kind="ConfigMap",
                    metadata=ObjectMeta(name="applied"),
                    data={"n": str(number)},
                ),
                field_manager="bench",
            )

    def do_watch(version: str, count: str) -> None:
        left = int(count)
        for _ in client.watch(ConfigMap, resource_version=version):
            left -= 1
            if not left:
                break

    return {
        "get": lambda: [client.get(Pod, "p00000") for _ in range(GETS)],
        "list": lambda: list(client.list(Pod, chunk_size=500)),
        "watch": do_watch,
        "apply": do_apply,
    }


def kubernetes(kubeconfig: str) -> dict[str, Callable[..., object]]:
    from kubernetes import client as k
    from kubernetes import config, watch

    api = k.CoreV1Api(config.new_client_from_config(kubeconfig))

    def do_list() -> list[Any]:
        found: list[Any] = []
        token = None
        while True:
            page = api.list_namespaced_pod(NAMESPACE, limit=500, _continue=token)
            found += page.items
            token = page.metadata._continue
            if not token:
                return found

    def do_apply() -> None:
        for number in range(APPLIES):
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "applied"},
                "data": {"n": str(number)},
            }
            api.patch_namespaced_config_map(
                "applied",
                NAMESPACE,
                body,
                field_manager="bench",
                _content_type="application/apply-patch+yaml",
            )

    def do_watch(version: str, count: str) -> None:
        left = int(count)
        stream = watch.Watch().stream(api.list_namespaced_config_map, NAMESPACE, resource_version=version)
        for _ in stream:
            left -= 1
            if not left:
                break

    return {
        "get": lambda: [api.read_namespaced_pod("p00000", NAMESPACE) for _ in range(GETS)],
        "list": do_list,
        "watch": do_watch,
        "apply": do_apply,
    }


def kr8s(kubeconfig: str) -> dict[str, Callable[..., object]]:
    import kr8s as library
    from kr8s.objects import Pod

    api = library.api(kubeconfig=kubeconfig, namespace=NAMESPACE)
    return {
        "get": lambda: [Pod.get("p00000", namespace=NAMESPACE, api=api) for _ in range(GETS)],
        "list": lambda: list(api.get("pods", namespace=NAMESPACE)),
    }


LIBRARIES = {"ours": ours, "lightkube": lightkube, "kubernetes": kubernetes, "kr8s": kr8s}


def main() -> None:
    library, work, kubeconfig, *more = sys.argv[1:]
    os.environ["KUBECONFIG"] = kubeconfig
    works = LIBRARIES[library](kubeconfig)
    if work not in works:
        print("null")
        return
    began = time.perf_counter()
    kept = works[work](*more)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    del kept
    print(json.dumps({"seconds": seconds, "peak": peak}))


if __name__ == "__main__":
    main()
