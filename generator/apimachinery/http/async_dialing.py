"""``dialing`` for asyncio."""

from __future__ import annotations

import asyncio
import socket

from apimachinery.http.dialing import HEAD_START, Address, as_sent, socket_for, taking_turns


async def async_dial(host: str, port: int, seconds: float) -> socket.socket:
    """As ``dial``, awaited; the socket does not block."""
    loop = asyncio.get_running_loop()
    trying: list[asyncio.Task[socket.socket]] = []
    made: socket.socket | None = None
    failure: BaseException = OSError(f"{host} has no address")
    try:
        async with asyncio.timeout(seconds):
            try:  # numeric hosts need no thread for the lookup
                found = socket.getaddrinfo(
                    as_sent(host), port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
                )
            except socket.gaierror:
                found = await loop.getaddrinfo(as_sent(host), port, type=socket.SOCK_STREAM)
            left = taking_turns(found)
            while left or trying:
                if left:
                    trying.append(loop.create_task(_connect(left.pop(0))))
                ended, _ = await asyncio.wait(
                    # Without more addresses to try there is no reason to wake before one ends.
                    trying,
                    timeout=HEAD_START if left else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in ended:
                    error = task.exception()
                    if error is None:
                        made = task.result()
                        return made
                    trying.remove(task)
                    failure = error
    finally:
        # Nothing is awaited here: a cancellation that came in between would lose what was made.
        for task in trying:
            task.cancel()
            # A task that connected in the same moment holds a socket that nobody else will close.
            task.add_done_callback(lambda done: _close_unused(done, made))
    raise failure


async def _connect(address: Address) -> socket.socket:
    sock = socket_for(address)
    try:
        await asyncio.get_running_loop().sock_connect(sock, address[4])
    # BaseException: a cancelled attempt must not leak its socket.
    except BaseException:
        sock.close()
        raise
    return sock


def _close_unused(task: asyncio.Task[socket.socket], made: socket.socket | None) -> None:
    if not task.cancelled() and task.exception() is None and task.result() is not made:
        task.result().close()
