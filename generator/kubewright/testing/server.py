"""The context manager: a server with its kubeconfig, CRDs, clients and namespaces, and nothing left behind."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast
from urllib.parse import urlsplit

from apimachinery.access.control import AccessOptions
from apimachinery.meta.errors import ApiError, Cause
from apimachinery.meta.release import RELEASE
from apimachinery.server.catalog.options import ApiOptions, parse_controllers
from apimachinery.server.network.services import Address
from apimachinery.server.operate.kubeconfig import kubeconfig, write_kubeconfig
from apimachinery.server.process import BuildApi, Server, ServerOptions
from kubewright.tools.serve.proxying import made_identity

from .clock import TestClock
from .definitions import CRDS_PATH, read_crds, wait_until_served
from .thread import ServerThread, StartError
from .users import Recording, Users

if TYPE_CHECKING:
    from apimachinery.client.async_connection import AsyncClient
    from apimachinery.client.config import Config
    from apimachinery.client.connection import Client
    from apimachinery.server.node.behaviour import NodeBehaviour
    from apimachinery.server.node.faults import NodeFaults

    from .webhooks import Judge, RegisteredWebhooks, Webhook

PATIENCE_SECONDS = 10.0
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ApiServer:
    """An API server for tests. Use it in a ``with`` statement, or call ``start`` and ``stop``.

    ``crds`` are files or folders of CRD manifests (YAML or JSON) to create before it is ready; ``storage`` a URL such
    as ``sqlite:////tmp/x/db``; ``controllers`` are the loops that end namespaces, collect garbage, gather cluster
    roles and sign certificates (``all``, ``none``, names). ``node``: True, or how it behaves (``NodeBehaviour``), runs
    pods on a simulated node; ``nodes`` is how many of them there are, in three zones. ``build`` serves an API of your
    own.

    ``controllers="workloads"`` with nodes is a cluster in a process. ``faults.kill("kubewright-node-1")``,
    ``faults.cut_off("zone-b")`` and ``faults.never_pull("bad:*")`` break it, and ``faults.heal()`` mends it.

    RBAC decides, as in a cluster. The administrator's token is in the kubeconfig. Over plain http a request without
    credentials is the administrator's too, since kubectl sends no token there; with ``tls`` it is ``system:anonymous``.

    ``clock.advance("1h")`` moves its time: what waits for it (CronJobs, the end of tokens, jobs and events, restarts of
    containers) happens at once. ``settle`` returns when the controllers have nothing left to do at the present time.

    ``proxy_networks`` (CIDR) are those whose addresses ``services/proxy``, ``pods/proxy`` and ``nodes/proxy`` reach.
    ``services`` maps ``(namespace, name)`` of Services to the addresses where something of the test answers for them
    (webhooks, aggregated servers); it may be changed at any time.
    """

    def __init__(
        self,
        *,
        crds: Iterable[str | Path] = (),
        storage: str = "memory://",
        tls: bool = False,
        controllers: str = "all",
        packages: Iterable[str] = ("kubernetes_api",),
        emulated_version: str = RELEASE,
        port: int = 0,
        node: NodeBehaviour | bool = False,
        nodes: int = 0,
        proxy_networks: Iterable[str] = (),
        build: BuildApi | None = None,
    ) -> None:
        behaviour = _behaviour(node, nodes)
        self._crds = [Path(path) for path in crds]
        self._storage = storage
        self._tls = tls
        self._port = port
        self._api_options = ApiOptions(
            packages=tuple(packages),
            controllers=_controllers(controllers, simulated=behaviour is not None),
            node=behaviour,
            emulated_version=emulated_version,
            proxy_networks=tuple(proxy_networks),
        )
        self._build = build or _generated_api(self._api_options)
        self._thread: ServerThread[Server] | None = None
        self._webhooks: RegisteredWebhooks | None = None
        self._folder: Path | None = None
        self._context: ssl.SSLContext | None = None
        self._authority = b""
        self._users = Users()
        self.services: dict[tuple[str, str], Address] = {}
        self.clock = TestClock()

    def start(self) -> Self:
        """Serves when it returns. Raises StartError, and what the storage or the CRDs raise (ApiError)."""
        if self._thread is not None:
            raise StartError("the server runs already; make another ApiServer for a second one")
        self._folder = Path(tempfile.mkdtemp(prefix="kubewright-test-"))
        try:
            self._thread = ServerThread(self._server(self._folder))
            write_kubeconfig(self.kubeconfig, self.kubeconfig_text)
            for path in self._crds:
                self.create_crds(path)
        except BaseException:
            self.stop()
            raise
        return self

    def settle(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Returns when the controllers and the simulated node have nothing left to do until time passes. Raises
        TimeoutError, which names those that are at work."""
        running, ends = self._running(), time.monotonic() + seconds
        while busy := running.call(self.clock.busy):
            if time.monotonic() > ends:
                raise TimeoutError(f"at work after {seconds:g} s: {', '.join(busy)}")
            time.sleep(0.001)

    def stop(self) -> None:
        """Ends the server and removes its files; harmless when repeated."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None
        if self._webhooks is not None:
            self._webhooks.stop()
            self._webhooks = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *fault: object) -> None:
        self.stop()

    # How to reach it.

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return self._running().server.url

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._running().server.port

    @property
    def kubeconfig_text(self) -> str:
        """A kubeconfig for it."""
        return self.kubeconfig_for("admin")

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> str:
        """A kubeconfig whose token is that of a user; ``system:serviceaccount:NS:NAME`` is one as well."""
        token = self._users.token(user, groups)
        return kubeconfig(self.url, authority=self._authority, token=token)

    @property
    def kubeconfig(self) -> Path:
        """The path of that kubeconfig, there until ``stop``."""
        self._running()
        assert self._folder is not None
        return self._folder / "kubeconfig"

    def client(self, user: str = "admin", groups: Iterable[str] = ()) -> Client:
        """A synchronous client of the SDK, to close when done; with a user's name, as that user in those groups. It is
        that of ``kubernetes_api``, as in production: ``client.core_v1.pods``."""
        return sync_client_class()(self._config(user, groups))

    def async_client(self, user: str = "admin", groups: Iterable[str] = ()) -> AsyncClient:
        """As ``client``, awaited."""
        return async_client_class()(self._config(user, groups))

    def _config(self, user: str, groups: Iterable[str]) -> Config:
        from apimachinery.client.config import Config

        if user == "admin":
            return Config.load(self.kubeconfig)
        assert self._folder is not None
        path = self._folder / f"kubeconfig-{len(list(self._folder.iterdir()))}"
        write_kubeconfig(path, self.kubeconfig_for(user, groups))
        return Config.load(path)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        *,
        user: str = "admin",
        groups: Iterable[str] = (),
    ) -> Any:
        """One plain call, as a user: the JSON of the answer. Raises ApiError for a refusal."""
        target = urlsplit(self.url)
        connection = (
            http.client.HTTPSConnection(str(target.hostname), target.port, context=self._context, timeout=60)
            if self._context
            else http.client.HTTPConnection(str(target.hostname), target.port, timeout=60)
        )
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        headers["Authorization"] = f"Bearer {self._users.token(user, groups)}"
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        shown = json.loads(raw) if "json" in answer.headers.get("Content-Type", "") else raw.decode()
        if answer.status >= 400:
            raise _refusal(answer.status, shown)
        return shown

    @property
    def faults(self) -> NodeFaults:
        """What is out of order of the simulated nodes. Raises StartError where there are none."""
        node = self._api_options.node
        if node is None:
            raise StartError("there are no nodes; make it with ApiServer(nodes=3)")
        return cast("NodeBehaviour", node).faults

    # Who may do what.

    def can(
        self,
        user: str,
        verb: str,
        resource: str,
        *,
        namespace: str = "",
        name: str = "",
        groups: Iterable[str] = (),
    ) -> bool:
        """Whether a user may; ``resource`` is PLURAL[.GROUP][/SUBRESOURCE], or a path such as ``/metrics``."""
        if resource.startswith("/"):
            asked: dict[str, Any] = {"nonResourceAttributes": {"verb": verb, "path": resource}}
        else:
            plural, _, subresource = resource.partition("/")
            plural, _, group = plural.partition(".")
            what = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
            asked = {"resourceAttributes": {**what, "namespace": namespace, "name": name}}
        held = self._users.groups(user, groups)
        review = self.request("POST", _REVIEWS, {"spec": {"user": user, "groups": held, **asked}})
        return bool(review["status"]["allowed"])

    def check_role(
        self,
        user: str,
        *,
        allows: Iterable[str] = (),
        refuses: Iterable[str] = (),
        namespace: str = "default",
        groups: Iterable[str] = (),
    ) -> None:
        """Asserts what a user may and may not do in a namespace, each written ``VERB RESOURCE[.GROUP][/SUB] [NAME]``.

        Raises AssertionError with everything that is otherwise.
        """
        wrong = []
        for expected, lines in ((True, allows), (False, refuses)):
            for line in lines:
                verb, resource, *rest = line.split()
                name = rest[0] if rest else ""
                if self.can(user, verb, resource, namespace=namespace, name=name, groups=groups) != expected:
                    wrong.append(f"{user} may {'not ' if expected else ''}{line} in {namespace}")
        assert not wrong, "\n".join(wrong)

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """Records what is done meanwhile, by whom: ``roles("user", "name")`` are the least roles that allow it."""
        access = self._running().server.access
        recorded = Recording()
        access.record = recorded.add
        try:
            yield recorded
        finally:
            access.record = None

    # What tests need.

    def create_crds(self, path: str | Path) -> list[str]:
        """Creates the CRDs of a file or folder and waits until they are served; other kinds are left out.

        Gives their names. Raises StartError where there is none, ApiError where one is refused.
        """
        manifests = list(read_crds(Path(path)))
        if not manifests:
            raise StartError(f"{path} holds no CustomResourceDefinition")
        for manifest in manifests:
            self.request("POST", CRDS_PATH, manifest)
        for manifest in manifests:
            self._wait_until_served(manifest)
        return [manifest["metadata"]["name"] for manifest in manifests]

    def register_webhook(
        self,
        kind: Literal["mutating", "validating"],
        judge: Judge,
        *,
        resources: Iterable[str],
        operations: Iterable[str] = ("CREATE", "UPDATE"),
        service: tuple[str, str] | None = None,
        **fields: Any,
    ) -> Webhook:
        """A webhook that is a Python function, in force when this returns; the server asks it over TLS.

        ``resources`` are PLURAL[.GROUP][/SUBRESOURCE]. With ``service`` (namespace, name) it is behind that Service,
        else at a URL. ``fields`` are those of a webhook of a configuration (``failurePolicy``, ``objectSelector`` …).
        The function is called on a thread. Raises ApiError for fields that the server refuses.
        """
        self._running()
        assert self._folder is not None
        if self._webhooks is None:
            from .webhooks import RegisteredWebhooks

            self._webhooks = RegisteredWebhooks(self._folder / "webhooks", self.request, self.services)
        return self._webhooks.register(kind, judge, resources, operations, service, fields)

    @contextmanager
    def namespace(self, prefix: str = "test-") -> Iterator[str]:
        """A new namespace, deleted with everything that is in it at the end."""
        made = self.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": prefix}})
        name = made["metadata"]["name"]
        try:
            yield name
        finally:
            self.delete_namespace(name)

    def delete_namespace(self, name: str) -> None:
        """Deletes a namespace; does not wait for the end of what finalizers hold."""
        try:
            self.request("DELETE", f"/api/v1/namespaces/{name}")
        except ApiError as refusal:
            if refusal.code not in (404, 409):
                raise

    def _server(self, folder: Path) -> Server:
        from apimachinery.access.certificates import ClientCertificates, made_authority
        from apimachinery.access.keys import made_key
        from apimachinery.access.service_accounts import ServiceAccountKeys

        context = None
        signing = made_authority()
        if self._tls:
            from apimachinery.http.tls import ensure_certificate, server_context
            from apimachinery.http.trust import trusting

            authority = folder / "client-ca.crt"
            authority.write_bytes(signing.pem)
            certificate, key = ensure_certificate(folder, "127.0.0.1")
            context = server_context(certificate, key, [authority])
            self._authority = certificate.read_bytes()
            self._context = trusting(self._authority)
        from apimachinery.server.catalog.stored_form import StoredForms

        options = ServerOptions(
            storage=self._storage,
            port=self._port,
            tls=context,
            shutdown_seconds=PATIENCE_SECONDS,
            services=self.services,
            clock=self.clock,
            identity=made_identity(folder),
            judge=StoredForms(self._api_options).fault,
        )
        access = AccessOptions(
            tokens=[self._users],
            certificates=ClientCertificates([signing.certificate]),
            service_accounts=ServiceAccountKeys(made_key()),
            signing=signing,
            open_to_loopback=not self._tls,
        )
        return Server(options, access, self._build)

    def _running(self) -> ServerThread[Server]:
        if self._thread is None:
            raise StartError("the server does not run; use `with ApiServer() as server`")
        return self._thread

    def _wait_until_served(self, manifest: dict[str, Any]) -> None:
        wait_until_served(self.request, manifest, PATIENCE_SECONDS)


def _controllers(text: str, *, simulated: bool) -> frozenset[str]:
    """``workloads`` means the others as well: owners' dependents are collected, namespaces end."""
    chosen = f"all,{text}" if "workloads" in text.split(",") else text
    if simulated:
        chosen = "node" if chosen in ("none", "") else f"{chosen},node"
    return parse_controllers(chosen)


def _behaviour(node: NodeBehaviour | bool, count: int) -> NodeBehaviour | None:
    """How the nodes behave; None where there are none."""
    if not node and not count:
        return None
    from apimachinery.server.node.behaviour import NodeBehaviour

    made = NodeBehaviour() if isinstance(node, bool) else node
    return replace(made, nodes=count) if count else made


def _generated_api(options: ApiOptions) -> BuildApi:
    from apimachinery.server.assembly.api import build_api

    return lambda backend: build_api(backend, options)


def _refusal(code: int, shown: Any) -> ApiError:
    if not isinstance(shown, dict):
        return ApiError(code, "", str(shown).strip())
    details = shown.get("details") or {}
    causes = tuple(
        Cause(c.get("reason", ""), c.get("message", ""), c.get("field", ""))
        for c in details.get("causes", ())
    )
    return ApiError(
        code,
        shown.get("reason", ""),
        shown.get("message", ""),
        name=details.get("name", ""),
        group=details.get("group", ""),
        kind=details.get("kind", ""),
        causes=causes,
    )


def sync_client_class() -> type[Client]:
    """The client of Kubernetes' own kinds, or the one without kinds where that package is not there."""
    from apimachinery.client.connection import Client

    try:
        found: type[Client] = import_module("kubernetes_api.client").Client
    except ImportError:
        return Client
    return found


def async_client_class() -> type[AsyncClient]:
    """As ``sync_client_class``, awaited."""
    from apimachinery.client.async_connection import AsyncClient

    try:
        found: type[AsyncClient] = import_module("kubernetes_api.async_client").AsyncClient
    except ImportError:
        return AsyncClient
    return found
