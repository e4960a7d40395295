"""A reader of a server of several processes: it answers what its copy of the log can answer, and hands on the rest.

Theory. A reader is a server over a storage that it does not write (``FollowerStorage``). It authenticates and
authorizes what it answers itself by the same options and by its copy of the objects. Everything else, which is
everything that writes, runs or is answered elsewhere, goes to the writer as it came, with what the client sent to say
who it is.

Before it answers, its copy has come to what was acknowledged before the request came: who was given a role, or made a
definition, finds it whichever process is asked next. That costs a look at a number (``RevisionBoard``) unless a write
is on its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from apimachinery.access.control import AccessOptions
from apimachinery.http.handing_on import HandingOn
from apimachinery.http.handshakes import listen_on
from apimachinery.http.messages import Request, Response, StreamResponse, UpgradeResponse
from apimachinery.http.outgoing import CallFailed
from apimachinery.http.protocol import Application
from apimachinery.meta.asked import FORWARDED, Area, Route, asked_of
from apimachinery.meta.errors import ApiError
from apimachinery.metrics import exposition
from apimachinery.server.app import App, error_response
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.assembly.parts import Background, Ends, Make
from apimachinery.server.assembly.readers import AUDIT, END, LOG, METRICS, READY, REQUESTS
from apimachinery.server.assembly.server import Server
from apimachinery.server.backend import BuildApi, ServerOptions
from apimachinery.server.operate.audit.audit import Audit
from apimachinery.server.operate.audit.policy import read_policy
from apimachinery.server.read.past import asks_for_past
from apimachinery.storage.following.board import RevisionBoard
from apimachinery.storage.following.follower import FollowerStorage
from apimachinery.storage.following.frames import FrameConnection, ProcessNote
from apimachinery.storage.interface import Storage, StorageError

log = logging.getLogger("kubewright.server")

Answer = Response | StreamResponse | UpgradeResponse
HEALTH = ("/livez", "/readyz", "/healthz")
DESCRIBED = frozenset(
    {
        Area.API_VERSIONS,
        Area.GROUPS,
        Area.GROUP,
        Area.RESOURCES,
        Area.OPENAPI_V2,
        Area.OPENAPI_V3,
        Area.INDEX,
    }
)
"""What changes with definitions and with APIServices of other servers."""
SERVICES = "/apiregistration.k8s.io/apiservices/"
SWEEP_SECONDS, DOOR_SECONDS = 5.0, 0.01
DOOR_TRIES = 500


class ReaderServer(Server):
    """``door`` leads to the writer; ``lost`` is called when that is gone, ``asked`` when it wants this to end."""

    def __init__(
        self,
        options: ServerOptions,
        access: AccessOptions,
        build: BuildApi,
        board: RevisionBoard,
        door: socket.socket,
        sockets: Sequence[socket.socket],
        *,
        asked: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self._door, self._sockets = door, list(sockets)
        self._follower = FollowerStorage(board, self._noted, lost)
        self._end_asked = asked
        self._handing_on = HandingOn(self._connect_requests)
        super().__init__(replace(options, caught_up=True), access, build)

    def table(self) -> list[Make]:
        return [
            *super().table(),
            lambda: Ends(stop=self._stop_handing_on),
            lambda: Background(self._sweep_lines),
        ]

    async def start(self) -> None:
        """Serves when it returns, and tells the writer, which stands in until then."""
        await super().start()
        self._follower.connection.send(ProcessNote(READY))

    async def _make_storage(self) -> Storage:
        own = await self._connect(LOG)
        connection = self._follower.connection
        await asyncio.get_running_loop().create_unix_connection(lambda: connection, sock=own)
        await self._follower.opened()
        return self._follower

    async def _listen(self) -> None:
        self._listener = await listen_on(self._connections, self._options.tls, self._sockets)
        self.port = self._listener.sockets[0].getsockname()[1]

    @cached_property
    def _audit(self) -> Audit | None:
        path = self._options.audit_policy
        if path is None:
            return super()._audit
        backends = [_HandedEvents(self._follower.connection)]
        decode = lambda *body: self._api.decoded(*body)  # noqa: E731
        return Audit(read_policy(path), backends, self.backend.metrics, decode)

    @property
    def _application(self) -> Application:
        api = self._api
        assert isinstance(api, AssembledApi)
        return ReaderApp(self._app, api, self._follower, self._handing_on)

    async def _stop_handing_on(self) -> None:
        self._handing_on.close()

    async def _sweep_lines(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._handing_on.sweep()

    # The writer.

    async def _connect_requests(self) -> socket.socket:
        return await self._connect(REQUESTS)

    async def _connect(self, kind: bytes) -> socket.socket:
        """A connection with the writer. Raises OSError."""
        own, theirs = socket.socketpair()
        try:
            for _ in range(DOOR_TRIES):
                try:
                    socket.send_fds(self._door, [kind], [theirs.fileno()])
                    own.setblocking(False)
                    return own
                except BlockingIOError:  # the writer is busy
                    await asyncio.sleep(DOOR_SECONDS)
            raise TimeoutError("the writer takes no connections")
        except BaseException:
            own.close()
            raise
        finally:
            theirs.close()

    def _noted(self, note: ProcessNote) -> None:
        if note.topic == END:
            self._end_asked()
        elif note.topic == METRICS:
            page = exposition(self.backend.metrics.current()) if self.health.started else ""
            self._follower.connection.send(ProcessNote(METRICS, page.encode()))


class ReaderApp:
    """Requests: whose answer is here, and whose is the writer's."""

    def __init__(self, app: App, api: AssembledApi, storage: FollowerStorage, handing_on: HandingOn) -> None:
        self._app, self._storage, self._handing_on = app, storage, handing_on
        parts = api.parts
        self._catalog, self._cache, self._definitions = parts.catalog, parts.cache, parts.definitions
        self._computed = frozenset(parts.computed_names)
        self._services_stamp, self._has_remote = -1, False
        self.knows, self.timed_out = app.knows, app.timed_out

    def answer(self, request: Request, oversized: bool) -> Coroutine[Any, Any, Answer]:
        """Answers, or has the writer answer; what most requests need is found without a coroutine."""
        app = self._app
        if oversized or app.ending or request.path.startswith(HEALTH):
            return app.answer(request, oversized)  # a refusal, or the state of this process
        route = asked_of(request).route
        if not self._is_own(request, route):
            return self._hand_on(request)
        if route.area is not Area.RESOURCE:
            return self._describe(request)
        return self._answer_later(request) if self._storage.behind else app.answer(request, oversized)

    def takes_upgrade(self, request: Request) -> bool:
        """Whether an offer of another protocol than websockets may be accepted, here or at the writer."""
        if self._app.takes_upgrade(request):
            return True
        return self._remote and not self._is_own(request, asked_of(request).route)

    def _is_own(self, request: Request, route: Route) -> bool:
        """Whether this process answers."""
        if request.method not in ("GET", "HEAD"):
            return False
        if route.area is Area.RESOURCE:
            served = self._catalog.find(route.group, route.version, route.resource)
            if served is None or not served.prefix or served.named in self._computed:
                return False
            if route.subresource in FORWARDED and not route.group:
                return False
            return not asks_for_past(request)
        if route.area in DESCRIBED:
            return not self._remote
        return route.area is Area.VERSION

    @property
    def _remote(self) -> bool:
        """Whether there are APIServices of other servers, which only the writer asks."""
        services = self._cache.resource(SERVICES)
        stamp = services.stamp(SERVICES)
        if stamp != self._services_stamp:
            self._services_stamp = stamp
            records = services.snapshot(SERVICES).records
            self._has_remote = any(b'"service":{' in record.value for record in records)
        return self._has_remote

    async def _answer_later(self, request: Request) -> Answer:
        """Answers when the copy has come to what was acknowledged."""
        try:
            await self._storage.catch_up()
        except StorageError as fault:
            return _unavailable(request, str(fault))
        return await self._app.answer(request, False)

    async def _describe(self, request: Request) -> Answer:
        """Answers when the definitions that were acknowledged are served."""
        if self._definitions is not None:
            with contextlib.suppress(StorageError):  # which the next step says, too
                await self._definitions.catch_up()
        return await self._answer_later(request)

    async def _hand_on(self, request: Request) -> Answer:
        try:
            return await self._handing_on.answer(request)
        except CallFailed as fault:
            return _unavailable(request, str(fault))


def _unavailable(request: Request, reason: str) -> Response:
    log.warning("the writer does not answer", extra={"path": request.path, "reason": reason})
    text = "the process that writes does not answer, please try again later"
    return error_response(ApiError(503, "ServiceUnavailable", text, retry_after=1))


class _HandedEvents:
    """Audit events, written where all are."""

    name = "log"
    strict = False

    def __init__(self, connection: FrameConnection) -> None:
        self._connection = connection

    def write(self, event: bytes) -> None:
        """Hands an event to the writer."""
        self._connection.send(ProcessNote(AUDIT, event))

    def start(self) -> None:
        """Starts nothing."""

    async def close(self) -> None:
        """Ends nothing."""
