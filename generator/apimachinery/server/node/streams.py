"""Logs, exec, attach and port-forward of the simulated node, as a kubelet answers them.

``channels`` has the websocket, ``spdy_channels`` what older clients speak, ``port_forwards`` what comes for ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from apimachinery.http.messages import Request, Response, StreamResponse, UpgradeResponse
from apimachinery.kinds.hooks import Json
from apimachinery.meta.asked import STREAMED, Route
from apimachinery.meta.errors import ApiError, bad_request
from apimachinery.server.node.behaviour import NodeBehaviour
from apimachinery.server.node.channels import (
    ERROR,
    PROTOCOLS,
    STDERR,
    STDIN,
    STDOUT,
    WITHOUT_CHANNELS,
    StreamChannels,
)
from apimachinery.server.node.commands import Command, CommandInput, ErrorOutput
from apimachinery.server.node.port_forwards import TUNNELLED, forward_channels, forward_tunnelled
from apimachinery.server.node.spdy_channels import PORT_FORWARD, RawChannels, SpdyChannels
from apimachinery.server.request.log_options import container_of
from apimachinery.wire.json import encode

ResultT = TypeVar("ResultT")


class NodeStreams:
    """Answers the subresources of pods that a cluster asks a kubelet for."""

    def __init__(self, behaviour: NodeBehaviour) -> None:
        self._behaviour = behaviour

    async def answer(
        self, request: Request, route: Route, pod: Json
    ) -> Response | StreamResponse | UpgradeResponse:
        """Answers one of them. Raises ApiError 400 and 501."""
        if route.subresource == "log":
            return await self._log(request, pod)
        if route.subresource not in STREAMED:
            raise ApiError(
                501, "NotImplemented", f"the simulated node does not answer pods/{route.subresource}"
            )
        upgrade = request.headers.get("upgrade", "").lower()
        if upgrade not in ("websocket", "spdy/3.1"):
            raise bad_request("Upgrade request required: websocket (v5.channel.k8s.io) or SPDY/3.1")
        spdy = upgrade != "websocket"
        if route.subresource == "portforward" and spdy:
            return UpgradeResponse(lambda tunnel: self._forward_raw(RawChannels(tunnel, request), pod))
        if route.subresource == "portforward":
            offered = request.headers.get("sec-websocket-protocol", "")
            if not _ports(request) and TUNNELLED not in offered:
                raise bad_request('query parameter "ports" is required')
            return UpgradeResponse(
                lambda tunnel: self._forward(StreamChannels(tunnel, request), request, pod)
            )
        container = container_of(pod, request.first("container"))
        argv = tuple(request.query.get("command", [])) if route.subresource == "exec" else ()
        if route.subresource == "exec" and not argv:
            raise bad_request("you must specify at least 1 command for the container")
        kind = SpdyChannels if spdy else StreamChannels
        return UpgradeResponse(
            lambda tunnel: self._execute(kind(tunnel, request), request, pod, container, argv)
        )

    async def _log(self, request: Request, pod: Json) -> Response | StreamResponse | UpgradeResponse:
        container = container_of(pod, request.first("container"))
        previous = request.first("previous") in ("true", "1")
        text = await asyncio.to_thread(self._behaviour.log, pod, container, previous=previous)
        if text is None:
            name = pod["metadata"]["name"]
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        lines = text.splitlines(keepends=True)
        tail = request.first("tailLines")
        if tail.isascii() and tail.isdigit():
            lines = lines[-int(tail) :] if int(tail) else []
        if request.first("timestamps") in ("true", "1"):
            moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z ", time.gmtime())
            lines = [moment + line for line in lines]
        limit = request.first("limitBytes")
        body = "".join(lines).encode()[: int(limit) if limit.isascii() and limit.isdigit() else None]
        if request.headers.get("upgrade", "").lower() == "websocket":
            return UpgradeResponse(lambda tunnel: _say(StreamChannels(tunnel, request), body))
        if request.first("follow") not in ("true", "1"):
            return Response(200, body, "text/plain")
        return StreamResponse(200, _pieces(body), "text/plain")

    async def _execute(
        self,
        channels: StreamChannels | SpdyChannels,
        request: Request,
        pod: Json,
        container: str,
        argv: tuple[str, ...],
    ) -> None:
        if not await channels.accept():
            return
        given = CommandInput()
        sends = request.first("stdin") in ("true", "1")
        pump = asyncio.create_task(channels.pump(STDIN, given)) if sends else None
        if pump is None:
            given.end()
        command = Command(pod, container, argv, given, request.first("tty") in ("true", "1"))
        try:
            await self._run(channels, command)
        finally:
            given.end()
            if pump is not None:
                pump.cancel()
                await asyncio.gather(pump, return_exceptions=True)
        await channels.close()

    async def _run(self, channels: StreamChannels | SpdyChannels, command: Command) -> None:
        """Runs a command and sends what it says, piece by piece where it comes so."""
        run = self._behaviour.execute
        if not command.argv:
            text = await asyncio.to_thread(self._behaviour.log, command.pod, command.container)
            await channels.send(STDOUT, (text or "").encode())
            run = self._behaviour.attach
        ran = await _on_a_thread(lambda: run(command))
        if isinstance(ran.stdout, bytes):
            await channels.send(STDOUT, ran.stdout)
        else:
            pieces = ran.stdout
            while (piece := await _on_a_thread(lambda: next(pieces, None))) is not None:
                await channels.send(STDERR if isinstance(piece, ErrorOutput) else STDOUT, piece)
        await channels.send(STDERR, ran.stderr)
        if channels.says_status:
            await channels.send(ERROR, encode(_status(ran.exit_code)))
        elif ran.exit_code:
            await channels.send(ERROR, _status(ran.exit_code)["message"].encode())

    async def _forward_raw(self, channels: RawChannels, pod: Json) -> None:
        if channels.accept(PORT_FORWARD):
            await forward_tunnelled(self._behaviour, channels, pod)

    async def _forward(self, channels: StreamChannels, request: Request, pod: Json) -> None:
        if not await channels.accept((*PROTOCOLS, TUNNELLED)):
            return
        if channels.protocol == TUNNELLED:
            await forward_tunnelled(self._behaviour, channels, pod)
            await channels.close()
        else:
            await forward_channels(self._behaviour, channels, pod, _ports(request))


def _ports(request: Request) -> list[int]:
    texts = [text for given in request.query.get("ports", []) for text in given.split(",")]
    return [int(text[-5:]) for text in texts if text.isascii() and text.isdigit()]  # read as options before


async def _on_a_thread(function: Callable[[], ResultT]) -> ResultT:
    """Runs what may wait for a client for ever, on a thread of its own: those of others stay free."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ResultT] = loop.create_future()

    def settle(result: ResultT | None, fault: Exception | None) -> None:
        if done.done():
            return
        if fault is not None:
            done.set_exception(fault)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, fault = None, None
        try:
            result = function()
        except Exception as error:
            fault = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, fault)

    threading.Thread(target=run, name="kubewright-command", daemon=True).start()
    return await done


async def _say(channels: StreamChannels, body: bytes) -> None:
    if await channels.accept(WITHOUT_CHANNELS):
        await channels.send_whole(body)
        await channels.close()


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for line in body.splitlines(keepends=True):
        yield line


def _status(code: int) -> Json:
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
