"""Port-forwards of the simulated node: over a websocket's channels; over SPDY, alone or in a websocket."""

from __future__ import annotations

import asyncio

from apimachinery.kinds.hooks import Json
from apimachinery.server.node.behaviour import NodeBehaviour
from apimachinery.server.node.channels import StreamChannels
from apimachinery.server.node.spdy_channels import RawChannels
from apimachinery.wire.spdy import Came, OpenedStream, SpdyConnection, SpdyFault

TUNNELLED = "SPDY/3.1+portforward.k8s.io"


async def forward_channels(
    behaviour: NodeBehaviour, channels: StreamChannels, pod: Json, ports: list[int]
) -> None:
    """Two channels a port: data and errors."""
    for at, port in enumerate(ports):
        for channel in (2 * at, 2 * at + 1):
            await channels.send(channel, port.to_bytes(2, "little"))
    while (found := await channels.receive()) is not None:
        channel, data = found
        if channel % 2 == 0 and channel // 2 < len(ports) and data:
            answer = await asyncio.to_thread(behaviour.forward, pod, ports[channel // 2], data)
            await channels.send(channel, answer)


async def forward_tunnelled(
    behaviour: NodeBehaviour, channels: StreamChannels | RawChannels, pod: Json
) -> None:
    """Each connection is two SPDY streams with a port in their headers: one of errors, one of data."""
    spdy, ports = SpdyConnection(), dict[int, int]()
    while not spdy.over and (data := await channels.receive_bytes()) is not None:
        try:
            for event in spdy.receive(data):
                await _answer(behaviour, spdy, ports, pod, event)
        except SpdyFault:
            return
        if outgoing := spdy.take_outgoing():
            await channels.send_bytes(outgoing)


async def _answer(
    behaviour: NodeBehaviour,
    spdy: SpdyConnection,
    ports: dict[int, int],
    pod: Json,
    event: OpenedStream | Came,
) -> None:
    if isinstance(event, OpenedStream):
        spdy.accept(event.stream)
        port = event.headers.get("port", "")
        if event.headers.get("streamtype") == "data" and port.isdigit():
            ports[event.stream] = int(port)
        else:
            spdy.send(event.stream, b"", ended=True)  # there is no error to tell
        return
    port_number = ports.get(event.stream)
    if port_number is None:
        return
    if event.data:
        spdy.send(event.stream, await asyncio.to_thread(behaviour.forward, pod, port_number, event.data))
    if event.ended:
        del ports[event.stream]
        spdy.send(event.stream, b"", ended=True)
