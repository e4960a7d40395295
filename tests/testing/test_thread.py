"""A server on a thread of its own ends, or says where it is."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kubewright.testing import thread


class Stuck:
    """Its end waits for the test."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    async def start(self) -> None:
        await asyncio.sleep(0)

    async def stop(self) -> None:
        self.may_end.wait(60)


def test_a_server_that_does_not_end_is_named_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread, "STOP_SECONDS", 0.05)
    server = thread.ServerThread(Stuck())
    with pytest.raises(
        thread.StopError, match=r"(?s)did not end within 0 s; its thread is at.*may_end\.wait"
    ):
        server.stop()
    server.server.may_end.set()
    monkeypatch.undo()
    server.stop()
