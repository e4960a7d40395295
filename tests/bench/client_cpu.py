"""CPU seconds (of the client alone) and peak memory of clients doing the same work on one server, in one run.

    python -m tests.bench.client_cpu [LIBRARY,LIBRARY]

Each measurement is an interpreter of its own, which imports only what the library and its work need; libraries by
turns, medians of TURNS; SCALE=0.2 does a fifth of the work. Clients for threads have a table, and those for asyncio
(``_async``, kubernetes_asyncio, kopf). ``informer`` is a local copy of 20,000 pods: an informer where a library has one
(ours, kopf's index), else its list in a dict; kr8s is left out there, for its list of half as many takes most of a
minute. ``metadata`` is a copy of metadata alone, which no other library here has. ``operator`` gives each of 500
ConfigMaps a ServiceAccount that it owns: ours, kopf with lightkube as its client, and lightkube alone with two watches,
a queue and a worker, without retries. What is not installed is left out; PYTHONPATH may name more.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from typing import Any

NAMESPACE = "bench"
SCALE = float(os.environ.get("SCALE", "1"))
CALLS, CONCURRENT, WRITES, EVENTS, LISTED, MIRRORED, OPERATED = (
    int(count * SCALE) for count in (1_000, 1_000, 500, 10_000, 10_000, 20_000, 500)
)
TURNS = int(os.environ.get("TURNS", "3"))
PEERS = {
    "lightkube": "lightkube",
    "kubernetes": "kubernetes",
    "kubernetes_asyncio": "kubernetes_asyncio",
    "kr8s": "kr8s",
    "kopf": "kopf",
    "ours_async": "apimachinery",
    "lightkube_async": "lightkube",
}
ASYNC = ("ours_async", "lightkube_async", "kubernetes_asyncio", "kopf")
WORKS = (
    tuple(os.environ["WORKS"].split(","))
    if "WORKS" in os.environ
    else (
        "import",
        "get",
        "concurrent",
        "list",
        "watch",
        "create",
        "patch",
        "informer",
        "metadata",
        "operator",
    )
)
TITLES = {
    "import": "import",
    "get": f"get × {CALLS:,}",
    "concurrent": f"{CONCURRENT:,} gets at once",
    "list": f"list of {LISTED:,} pods",
    "watch": f"watch, {EVENTS:,} events",
    "create": f"create × {WRITES}",
    "patch": f"patch × {WRITES}",
    "informer": f"informer of {MIRRORED:,} pods",
    "metadata": f"metadata of {MIRRORED:,} pods",
    "operator": f"operator, {OPERATED} objects",
}
Works = dict[str, Callable[..., object]]


def a_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def in_threads(call: Callable[[], object]) -> list[object]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(32) as pool:
        return list(pool.map(lambda _: call(), range(CONCURRENT)))


def ours(kubeconfig: str) -> Works:
    from apimachinery.client.config import Config
    from apimachinery.client.retry import RetryPolicy
    from kubernetes_api.client import Client
    from kubernetes_api.core_v1 import ConfigMap
    from kubernetes_api.meta_v1 import ObjectMeta

    config = Config.load(kubeconfig).with_namespace(NAMESPACE)
    core = Client(config, retry=RetryPolicy()).core_v1

    def watch(version: str) -> None:
        left = EVENTS
        for _ in core.configmaps.watch(resource_version=version):
            left -= 1
            if not left:
                return

    def informer() -> object:
        made = core.pods.informer(namespace="more")
        with made:
            made.wait_until_synced(120)
            return made.store.list()

    def metadata() -> object:
        from apimachinery.client.calls import ListOptions
        from apimachinery.client.informer import Informer
        from apimachinery.client.partial import PARTIAL
        from apimachinery.client.reflector import Reflector

        pods = core.pods
        made = Informer(Reflector(pods._client, pods._target("more"), PARTIAL, ListOptions(), None))
        with made:
            made.wait_until_synced(120)
            return made.store.list()

    def operator(namespace: str) -> None:
        import threading

        from apimachinery.controller import Controller, Operator
        from kubernetes_api.core_v1 import ServiceAccount

        served: set[str] = set()
        done = threading.Event()

        def reconcile(context: Any, _: ConfigMap) -> None:
            context.apply(ServiceAccount(metadata=ObjectMeta(name=context.request.name)))
            served.add(context.request.name)
            if len(served) == OPERATED:
                done.set()

        made = Controller(for_=ConfigMap, owns=[ServiceAccount], reconcile=reconcile, name="bench")
        with Operator(Client(config, retry=RetryPolicy()), [made], namespace=namespace):
            assert done.wait(300)

    return {
        "get": lambda: [core.pods.get("p00000") for _ in range(CALLS)],
        "concurrent": lambda: in_threads(lambda: core.pods.get("p00000")),
        "list": lambda: list(core.pods.list()),
        "watch": watch,
        "create": lambda tag: [
            core.configmaps.create(ConfigMap(metadata=ObjectMeta(name=f"o{tag}{n}"), data={"a": "b"}))
            for n in range(WRITES)
        ],
        "patch": lambda: [core.configmaps.patch("patched", {"data": {"n": str(n)}}) for n in range(WRITES)],
        "informer": informer,
        "metadata": metadata,
        "operator": operator,
    }


def ours_async(kubeconfig: str) -> Works:
    import asyncio

    from apimachinery.client.config import Config
    from kubernetes_api.async_client import AsyncClient
    from kubernetes_api.core_v1 import ConfigMap
    from kubernetes_api.meta_v1 import ObjectMeta

    config = Config.load(kubeconfig).with_namespace(NAMESPACE)

    def run(work: Callable[[Any], Any]) -> object:
        async def story() -> object:
            async with AsyncClient(config) as client:
                return await work(client.core_v1)

        return asyncio.run(story())

    async def get(core: Any) -> object:
        return [await core.pods.get("p00000") for _ in range(CALLS)]

    async def concurrent(core: Any) -> object:
        return await asyncio.gather(*(core.pods.get("p00000") for _ in range(CONCURRENT)))

    async def listed(core: Any) -> object:
        return [pod async for pod in core.pods.list()]

    async def watch(core: Any, version: str) -> None:
        left = EVENTS
        async with await core.configmaps.watch(resource_version=version) as events:
            async for _ in events:
                left -= 1
                if not left:
                    return

    async def create(core: Any, tag: str) -> object:
        return [
            await core.configmaps.create(ConfigMap(metadata=ObjectMeta(name=f"oa{tag}{n}"), data={"a": "b"}))
            for n in range(WRITES)
        ]

    async def patch(core: Any) -> object:
        return [await core.configmaps.patch("patched", {"data": {"n": str(n)}}) for n in range(WRITES)]

    async def mirror(made: Any) -> object:
        async with made:
            await made.wait_until_synced(120)
            return made.store.list()

    async def metadata(core: Any) -> object:
        from apimachinery.client.async_informer import AsyncInformer
        from apimachinery.client.async_reflector import AsyncReflector
        from apimachinery.client.calls import ListOptions
        from apimachinery.client.partial import PARTIAL

        pods = core.pods
        return await mirror(
            AsyncInformer(AsyncReflector(pods._client, pods._target("more"), PARTIAL, ListOptions(), None))
        )

    async def operator(namespace: str) -> None:
        from apimachinery.controller import AsyncController, AsyncOperator
        from kubernetes_api.core_v1 import ServiceAccount

        served: set[str] = set()
        done = asyncio.Event()

        async def reconcile(context: Any, _: ConfigMap) -> None:
            await context.apply(ServiceAccount(metadata=ObjectMeta(name=context.request.name)))
            served.add(context.request.name)
            if len(served) == OPERATED:
                done.set()

        made = AsyncController(for_=ConfigMap, owns=[ServiceAccount], reconcile=reconcile, name="bench")
        async with AsyncOperator(AsyncClient(config), [made], namespace=namespace):
            async with asyncio.timeout(300):
                await done.wait()

    return {
        "get": lambda: run(get),
        "concurrent": lambda: run(concurrent),
        "list": lambda: run(listed),
        "watch": lambda version: run(lambda core: watch(core, version)),
        "create": lambda tag: run(lambda core: create(core, tag)),
        "patch": lambda: run(patch),
        "informer": lambda: run(lambda core: mirror(core.pods.informer(namespace="more"))),
        "metadata": lambda: run(metadata),
        "operator": lambda namespace: asyncio.run(operator(namespace)),
    }


def lightkube(kubeconfig: str) -> Works:
    from lightkube import Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap, Pod

    client = Client(KubeConfig.from_file(kubeconfig), namespace=NAMESPACE)

    def watch(version: str) -> None:
        left = EVENTS
        for _ in client.watch(ConfigMap, resource_version=version):
            left -= 1
            if not left:
                return

    def informer() -> object:
        found = client.list(Pod, namespace="more", chunk_size=500)
        return {pod.metadata.name: pod for pod in found}

    def operator(namespace: str) -> None:
        import queue
        import threading

        from lightkube.resources.core_v1 import ServiceAccount

        mine = Client(KubeConfig.from_file(kubeconfig), namespace=namespace, field_manager="bench")
        waiting: queue.Queue[str] = queue.Queue()

        def watch_all(kind: Any) -> None:
            for _, obj in mine.watch(kind):
                waiting.put(obj.metadata.name)

        for kind in (ConfigMap, ServiceAccount):
            threading.Thread(target=watch_all, args=(kind,), daemon=True).start()
        served: set[str] = set()
        while len(served) < OPERATED:
            name = waiting.get(timeout=300)
            mine.apply(_account(mine.get(ConfigMap, name)), force=True)
            served.add(name)

    return {
        "get": lambda: [client.get(Pod, "p00000") for _ in range(CALLS)],
        "concurrent": lambda: in_threads(lambda: client.get(Pod, "p00000")),
        "list": lambda: list(client.list(Pod, chunk_size=500)),
        "watch": watch,
        "create": lambda tag: [
            client.create(ConfigMap(metadata=ObjectMeta(name=f"l{tag}{n}"), data={"a": "b"}))
            for n in range(WRITES)
        ],
        "patch": lambda: [client.patch(ConfigMap, "patched", {"data": {"n": str(n)}}) for n in range(WRITES)],
        "informer": informer,
        "operator": operator,
    }


def _account(obj: Any) -> Any:
    """The ServiceAccount of a ConfigMap, as lightkube's models."""
    from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
    from lightkube.resources.core_v1 import ServiceAccount

    name = obj.metadata.name
    owner = OwnerReference("v1", "ConfigMap", name, obj.metadata.uid, controller=True)
    return ServiceAccount(
        metadata=ObjectMeta(name=name, namespace=obj.metadata.namespace, ownerReferences=[owner])
    )


def lightkube_async(kubeconfig: str) -> Works:
    import asyncio

    from lightkube import AsyncClient, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap, Pod

    config = KubeConfig.from_file(kubeconfig)

    def run(work: Callable[[Any], Any]) -> object:
        async def story() -> object:
            client = AsyncClient(config, namespace=NAMESPACE)
            try:
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(story())

    async def get(client: Any) -> object:
        return [await client.get(Pod, "p00000") for _ in range(CALLS)]

    async def concurrent(client: Any) -> object:
        return await asyncio.gather(*(client.get(Pod, "p00000") for _ in range(CONCURRENT)))

    async def listed(client: Any) -> object:
        return [pod async for pod in client.list(Pod, chunk_size=500)]

    async def watch(client: Any, version: str) -> None:
        left = EVENTS
        async for _ in client.watch(ConfigMap, resource_version=version):
            left -= 1
            if not left:
                return

    async def create(client: Any, tag: str) -> object:
        return [
            await client.create(ConfigMap(metadata=ObjectMeta(name=f"la{tag}{n}"), data={"a": "b"}))
            for n in range(WRITES)
        ]

    async def patch(client: Any) -> object:
        return [await client.patch(ConfigMap, "patched", {"data": {"n": str(n)}}) for n in range(WRITES)]

    async def informer(client: Any) -> object:
        return {pod.metadata.name: pod async for pod in client.list(Pod, namespace="more", chunk_size=500)}

    return {
        "get": lambda: run(get),
        "concurrent": lambda: run(concurrent),
        "list": lambda: run(listed),
        "watch": lambda version: run(lambda client: watch(client, version)),
        "create": lambda tag: run(lambda client: create(client, tag)),
        "patch": lambda: run(patch),
        "informer": lambda: run(informer),
    }


def kubernetes(kubeconfig: str) -> Works:
    from kubernetes import client as k
    from kubernetes import config
    from kubernetes import watch as watching

    api = k.CoreV1Api(config.new_client_from_config(kubeconfig))

    def all_of(namespace: str) -> list[Any]:
        found: list[Any] = []
        token = None
        while True:
            page = api.list_namespaced_pod(namespace, limit=500, _continue=token)
            found += page.items
            token = page.metadata._continue
            if not token:
                return found

    def watch(version: str) -> None:
        left = EVENTS
        stream = watching.Watch().stream(api.list_namespaced_config_map, NAMESPACE, resource_version=version)
        for _ in stream:
            left -= 1
            if not left:
                return

    return {
        "get": lambda: [api.read_namespaced_pod("p00000", NAMESPACE) for _ in range(CALLS)],
        "concurrent": lambda: in_threads(lambda: api.read_namespaced_pod("p00000", NAMESPACE)),
        "list": lambda: all_of(NAMESPACE),
        "watch": watch,
        "create": lambda tag: [
            api.create_namespaced_config_map(NAMESPACE, a_map(f"k{tag}{n}")) for n in range(WRITES)
        ],
        "patch": lambda: [
            api.patch_namespaced_config_map("patched", NAMESPACE, {"data": {"n": str(n)}})
            for n in range(WRITES)
        ],
        "informer": lambda: {pod.metadata.name: pod for pod in all_of("more")},
    }


def kubernetes_asyncio(kubeconfig: str) -> Works:
    import asyncio

    from kubernetes_asyncio import client as k
    from kubernetes_asyncio import config
    from kubernetes_asyncio import watch as watching

    def run(work: Callable[[Any], Any]) -> object:
        async def story() -> object:
            async with await config.new_client_from_config(kubeconfig) as made:
                return await work(k.CoreV1Api(made))

        return asyncio.run(story())

    async def get(api: Any) -> object:
        return [await api.read_namespaced_pod("p00000", NAMESPACE) for _ in range(CALLS)]

    async def concurrent(api: Any) -> object:
        return await asyncio.gather(
            *(api.read_namespaced_pod("p00000", NAMESPACE) for _ in range(CONCURRENT))
        )

    async def all_of(api: Any, namespace: str) -> list[Any]:
        found: list[Any] = []
        token = None
        while True:
            page = await api.list_namespaced_pod(
                namespace, limit=500, **({"_continue": token} if token else {})
            )
            found += page.items
            token = page.metadata._continue
            if not token:
                return found

    async def watch(api: Any, version: str) -> None:
        left = EVENTS
        stream = watching.Watch().stream(api.list_namespaced_config_map, NAMESPACE, resource_version=version)
        async for _ in stream:
            left -= 1
            if not left:
                return

    async def create(api: Any, tag: str) -> object:
        return [await api.create_namespaced_config_map(NAMESPACE, a_map(f"a{tag}{n}")) for n in range(WRITES)]

    async def patch(api: Any) -> object:
        return [
            await api.patch_namespaced_config_map(
                "patched", NAMESPACE, {"data": {"n": str(n)}}, _content_type="application/merge-patch+json"
            )
            for n in range(WRITES)
        ]

    async def informer(api: Any) -> object:
        return {pod.metadata.name: pod for pod in await all_of(api, "more")}

    return {
        "get": lambda: run(get),
        "concurrent": lambda: run(concurrent),
        "list": lambda: run(lambda api: all_of(api, NAMESPACE)),
        "watch": lambda version: run(lambda api: watch(api, version)),
        "create": lambda tag: run(lambda api: create(api, tag)),
        "patch": lambda: run(patch),
        "informer": lambda: run(informer),
    }


def kr8s(kubeconfig: str) -> Works:
    import kr8s as library
    from kr8s.objects import ConfigMap, Pod

    api = library.api(kubeconfig=kubeconfig, namespace=NAMESPACE)

    def patch() -> None:
        found = ConfigMap.get("patched", namespace=NAMESPACE, api=api)
        for n in range(WRITES):
            found.patch({"data": {"n": str(n)}})

    return {
        "get": lambda: [Pod.get("p00000", namespace=NAMESPACE, api=api) for _ in range(CALLS)],
        "concurrent": lambda: in_threads(lambda: Pod.get("p00000", namespace=NAMESPACE, api=api)),
        "list": lambda: list(api.get("pods", namespace=NAMESPACE)),
        "create": lambda tag: [
            ConfigMap({**a_map(f"r{tag}{n}")}, api=api, namespace=NAMESPACE).create() for n in range(WRITES)
        ],
        "patch": patch,
    }


def kopf(kubeconfig: str) -> Works:
    import asyncio

    import kopf as library

    os.environ["KUBECONFIG"] = kubeconfig

    def informer() -> object:
        seen: dict[str, Any] = {}

        @library.on.login()
        def login(**context: Any) -> Any:
            return library.login_with_kubeconfig(**context)

        @library.index("pods")
        def pods(name: str, body: Any, **_: Any) -> Any:
            seen[name] = body
            return {name: body}

        async def run() -> None:
            stop = asyncio.Event()
            task = asyncio.create_task(library.operator(namespaces=["more"], standalone=True, stop_flag=stop))
            while len(seen) < MIRRORED:
                await asyncio.sleep(0.1)
            stop.set()
            await task

        asyncio.run(run())
        return seen

    def operator(namespace: str) -> None:
        from lightkube import AsyncClient, KubeConfig
        from lightkube.resources.core_v1 import ConfigMap

        served: set[str] = set()
        stop = asyncio.Event()

        @library.on.login()
        def login(**context: Any) -> Any:
            return library.login_with_kubeconfig(**context)

        async def run() -> None:
            client = AsyncClient(KubeConfig.from_file(kubeconfig), namespace=namespace, field_manager="bench")

            @library.on.create("v1", "configmaps")
            async def create(name: str, body: Any, **_: Any) -> None:
                await client.apply(_account(ConfigMap.from_dict(dict(body))), force=True)
                served.add(name)
                if len(served) == OPERATED:
                    stop.set()

            await library.operator(namespaces=[namespace], standalone=True, stop_flag=stop)
            await client.close()

        asyncio.run(run())

    return {"informer": informer, "operator": operator}


LIBRARIES: dict[str, Callable[[str], Works]] = {
    "ours": ours,
    "ours_async": ours_async,
    "lightkube": lightkube,
    "lightkube_async": lightkube_async,
    "kubernetes": kubernetes,
    "kubernetes_asyncio": kubernetes_asyncio,
    "kr8s": kr8s,
    "kopf": kopf,
}


def one(library: str, work: str, kubeconfig: str, *more: str) -> None:
    """One measurement, in this interpreter."""
    os.environ["KUBECONFIG"] = kubeconfig
    works = LIBRARIES[library](kubeconfig)
    kept: object = None
    if work != "import":
        if work not in works:
            print("null")
            return
        before = spent()
        kept = works[work](*more)
        seconds = spent() - before
    else:
        seconds = spent()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    del kept
    print(json.dumps({"cpu": seconds, "peak": peak}))


def spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    import importlib.util
    import subprocess

    from tests.bench.bench_client import POD, served

    from apimachinery.client.config import Config
    from kubernetes_api.client import Client
    from kubernetes_api.core_v1 import ConfigMap, Namespace
    from kubernetes_api.meta_v1 import ObjectMeta

    names = ["ours", *(name for name, module in PEERS.items() if importlib.util.find_spec(module))]
    if sys.argv[1:]:
        names = [name for name in names if name in sys.argv[1].split(",")]
    results: dict[tuple[str, str], list[dict[str, float]]] = {}
    with served() as kubeconfig, Client(Config.load(kubeconfig).with_namespace(NAMESPACE)) as client:
        core = client.core_v1
        for namespace, count in ((NAMESPACE, LISTED), ("more", MIRRORED)):
            core.namespaces.create(Namespace(metadata=ObjectMeta(name=namespace)))
            for number in range(count):
                pod: Any = {**POD, "metadata": {"name": f"p{number:05}", "labels": {"n": str(number)}}}
                core.pods.create(pod, namespace=namespace)
        made = core.configmaps.create(ConfigMap(metadata=ObjectMeta(name="patched")))
        for number in range(EVENTS):
            core.configmaps.patch("patched", {"data": {"n": str(number)}})
        assert made.metadata is not None
        for turn in range(TURNS):
            for work in WORKS:
                more = {"watch": [made.metadata.resource_version or ""], "create": [f"{turn}-"]}.get(work, [])
                for name in names:
                    if work == "operator":
                        more = [f"{turn}-{name.replace('_', '-')}"]
                        core.namespaces.create(Namespace(metadata=ObjectMeta(name=more[0])))
                        for number in range(OPERATED):
                            core.configmaps.create(
                                ConfigMap(metadata=ObjectMeta(name=f"o{number}")), namespace=more[0]
                            )
                    command = [sys.executable, __file__, name, work, str(kubeconfig), *more]
                    done = subprocess.run(
                        command, capture_output=True, text=True, timeout=600, check=False, env=os.environ
                    )
                    if done.returncode:
                        said = (done.stderr.strip().splitlines() or ["?"])[-1]
                        print(f"  ({name} failed at {work}: {said})", file=sys.stderr)
                    elif answer := json.loads(done.stdout.splitlines()[-1]):
                        results.setdefault((work, name), []).append(answer)
                        shown = f"{TITLES[work]}: {name} {answer['cpu']:.2f} s, {answer['peak']:.0f} MB"
                        print(f"  {turn + 1}/{TURNS} {shown}", file=sys.stderr, flush=True)
    for title, members in (
        ("threads", [name for name in names if name not in ASYNC]),
        ("asyncio", [name for name in names if name in ASYNC]),
    ):
        print(f"{title}:\n")
        show(members, results)
        print()


def show(names: list[str], results: dict[tuple[str, str], list[dict[str, float]]]) -> None:
    """A table, CPU seconds and MB."""
    import statistics

    print("| work | " + " | ".join(names) + " | first |")
    print("|---|" + "---|" * (len(names) + 1))
    for what, unit in (("cpu", "s"), ("peak", "MB")):
        for work in WORKS:
            if not any((work, name) in results for name in names):
                continue
            cells, values = [], {}
            for name in names:
                found = results.get((work, name))
                if found:
                    values[name] = statistics.median(each[what] for each in found)
                    cells.append(f"{values[name]:.2f}" if what == "cpu" else f"{values[name]:.0f}")
                else:
                    cells.append("–")
            first = min(values, key=lambda name: values[name]) if values else ""
            print(f"| {TITLES[work]}, {unit} | " + " | ".join(cells) + f" | {first} |")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        one(*sys.argv[1:])
    else:
        main()
