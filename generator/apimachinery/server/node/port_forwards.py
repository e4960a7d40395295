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
            # The first message of each channel is its port, so that the client can check which is whose.
            await channels.send(channel, port.to_bytes(2, "little"))
        if refusal := behaviour.refusal(pod, port):
            await channels.send(2 * at + 1, refusal)
    while (found := await channels.receive()) is not None:
        channel, data = found
        if channel % 2 == 0 and channel // 2 < len(ports) and data:
            if behaviour.refusal(pod, ports[channel // 2]):
                continue
            answer = await asyncio.to_thread(behaviour.forward, pod, ports[channel // 2], data)
            await channels.send(channel, answer)


async def forward_tunnelled(
    behaviour: NodeBehaviour, channels: StreamChannels | RawChannels, pod: Json
) -> None:
    """Forwards connections over SPDY: each is two streams with a port in their headers, of errors and of data."""
    spdy, ports, errors = SpdyConnection(), dict[int, int](), dict[str, int]()
    while not spdy.over and (data := await channels.receive_bytes()) is not None:
        try:
            for event in spdy.receive(data):
                await _answer(behaviour, spdy, ports, errors, pod, event)
        except SpdyFault:
            return
        if outgoing := spdy.take_outgoing():
            await channels.send_bytes(outgoing)


async def _answer(
    behaviour: NodeBehaviour,
    spdy: SpdyConnection,
    ports: dict[int, int],
    errors: dict[str, int],
    pod: Json,
    event: OpenedStream | Came,
) -> None:
    if isinstance(event, OpenedStream):
        spdy.accept(event.stream)
        port, request = event.headers.get("port", ""), event.headers.get("requestid", "")
        if event.headers.get("streamtype") != "data" or not port.isdigit():
            errors[request] = event.stream
            return
        refusal = behaviour.refusal(pod, int(port))
        if (stream := errors.pop(request, None)) is not None:
            spdy.send(stream, refusal, ended=True)
        if refusal:
            spdy.send(event.stream, b"", ended=True)
        else:
            ports[event.stream] = int(port)
        return
    port_number = ports.get(event.stream)
    if port_number is None:
        return
    if event.data:
        spdy.send(event.stream, await asyncio.to_thread(behaviour.forward, pod, port_number, event.data))
    if event.ended:
        del ports[event.stream]
        spdy.send(event.stream, b"", ended=True)
