"""The governor: what clients make the server hold is counted in one place, and given back; work has a price."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.test_protocol import BASE, read_all, request, split, talk

from apimachinery.http import workers
from apimachinery.http.governor import (
    Account,
    Crowded,
    Governor,
    Holding,
    weight_of,
)
from apimachinery.http.messages import COPIES, Request, User
from apimachinery.http.protocol import ConnectionLimits
from apimachinery.wire.json import decode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text("abcd", max_size=3), inner, max_size=6)
    ),
    max_leaves=60,
)


def held_by(value: object) -> int:
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(held_by(key) + held_by(item) for key, item in value.items())
    return size + sum(map(held_by, value)) if isinstance(value, list) else size


@given(VALUES)
def test_an_object_takes_no_more_than_its_weight(value: object) -> None:
    data = json.dumps([value] * 20, separators=(",", ":")).encode()
    assert held_by(decode(data)) <= COPIES * weight_of(data)


def test_accounts_are_bounded_each_and_together() -> None:
    governor = Governor(total=1_000_000)
    first, second = Account("first", 800_000, governor), Account("second", 800_000, governor)
    governor.add(first)
    governor.add(second)
    assert first.take(700_000)
    assert not first.take(200_000)
    assert not second.take(400_000)
    assert second.take(300_000)
    first.give(700_000)
    assert second.take(400_000)
    governor.ask("others'", lambda: 300_000)
    assert not second.take(50_000)
    assert (first.refused, second.refused) == (1, 2)
    assert first.take(100_000), "an eighth of its limit is an account's own"
    assert not first.take(1)


def test_free_memory_goes_back_after_much_at_once_or_little_by_little() -> None:
    governor = Governor()
    for times, size in ((1, 70 << 20), (3, 30 << 20)):
        for turn in range(times):
            assert governor.answers.take(size)
            assert not governor.should_trim()
            governor.answers.give(size)
            assert governor.should_trim() == (turn == times - 1)
        assert not governor.should_trim()


def test_a_holding_is_given_back_with_its_last_reference() -> None:
    account = Account("a", 100)
    holding = Holding(account)
    holding.grow(60)
    with pytest.raises(Crowded):
        holding.grow(60)
    again = holding
    del holding
    assert account.held == 60
    again.set(10)
    assert account.held == 10
    del again
    assert account.held == 0


def test_a_user_leaves_a_part_of_an_account_to_others() -> None:
    """Sixty large bodies of a user had another's small create refused, since nothing was left."""
    governor = Governor()
    held: list[Request] = []
    hostile, quiet = User("hostile"), User("quiet")

    def asked(user: User, size: int) -> None:
        held.append(Request("POST", "/", user=user, governor=governor))
        held[-1].hold(b"[" * size)

    with pytest.raises(Crowded):
        while True:
            asked(hostile, 200_000)
    asked(quiet, 200_000)
    with pytest.raises(Crowded):
        asked(hostile, 200_000)
    assert governor.work.refused == 2
    held.clear()
    assert governor.work.held == 0 and not governor.work._of_users


def test_a_request_holds_what_is_worked_on_for_it() -> None:
    governor = Governor()
    asked = Request("POST", "/", governor=governor)
    asked.hold(b"[" * 9_000)
    assert governor.work.held == COPIES * (9_000 + 100 * 9_000)
    with pytest.raises(Crowded):
        asked.hold(b"\x80" * 5_000_000, binary=True)
    del asked
    assert governor.work.held == 0


def spin(seconds: float) -> int:
    until, turns = time.thread_time() + seconds, 0
    while time.thread_time() < until:
        turns += 1
    return turns


def test_work_ends_when_it_has_cost_too_much_or_nobody_waits() -> None:
    async def story() -> None:
        workers.begin_request()
        spending = workers._spending.get()
        assert spending is not None
        spending.limit = 0.1
        sweeping = asyncio.create_task(sweep())
        began = time.thread_time()
        with pytest.raises(workers.TooCostly):
            await workers.apart(spin, 30.0)
        with pytest.raises(workers.TooCostly):  # what it has cost before counts too
            await workers.apart(spin, 30.0)
        assert time.thread_time() - began < 5
        workers.begin_request()
        assert await workers.apart(spin, 0.01)
        left = asyncio.create_task(workers.apart(spin, 30.0))
        await asyncio.sleep(0.05)
        left.cancel()
        assert all([await workers.apart(spin, 0.001) for _ in range(50)])
        sweeping.cancel()
        assert not workers._running
        assert not workers._collector._running

    async def sweep() -> None:
        while True:
            await asyncio.sleep(0.01)
            workers.end_costly()

    asyncio.run(story())


def test_nothing_is_counted_when_nobody_asks(serve) -> None:
    server = serve(limits=ConnectionLimits(request_seconds=1.0))
    port = server.port
    body = json.dumps({"metadata": {"name": "a"}, "data": {"a": "x" * 500_000}}).encode()
    assert split(talk(port, request("POST", BASE, body)))[0] == 201
    for _ in range(3):
        assert split(talk(port, request("GET", BASE)))[0] == 200
    left: list[socket.socket] = []
    for half in (
        b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000,
        request("POST", BASE, body)[:-9],
        request("GET", BASE)[:9],
    ):
        left.append(socket.create_connection(("127.0.0.1", port), timeout=60))
        left[-1].sendall(half)
    large = request("GET", BASE, b"", "X: " + "y" * 200_000)
    assert split(talk(port, large))[0] == 200
    for sock in left[:2]:
        assert read_all(sock).startswith(b"HTTP/1.1 408")
    for sock in left:
        sock.close()
    held = {}
    for _ in range(50):
        text = split(talk(port, request("GET", "/metrics")))[2].decode()
        lines = [line.split() for line in text.splitlines() if line.startswith("kubewright_held_bytes")]
        held = {name.partition('"')[2].partition('"')[0]: int(float(value)) for name, value in lines}
        if not any(held[name] for name in ("heads", "bodies", "work")):
            break
        time.sleep(0.1)
    assert (held["heads"], held["bodies"], held["work"], held["watch_backlogs"]) == (0, 0, 0, 0)
    assert 0 < held["connections"] < 100_000


def test_a_body_in_chunks_of_a_byte_lets_others_be_read(serve) -> None:
    server = serve()
    head = request(
        "POST", BASE, b"", "Transfer-Encoding: chunked", "Content-Type: application/json", close=False
    )
    chunks = b"1\r\n \r\n" * 1_000_000
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        body = b'{"metadata":{"name":"a"}}'
        sock.sendall(head + chunks + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        assert sock.recv(1 << 16).startswith(b"HTTP/1.1 201")
    text = split(talk(server.port, request("GET", "/metrics")))[2].decode()
    worst = next(line for line in text.splitlines() if line.startswith("kubewright_loop_held_worst_seconds"))
    assert float(worst.split()[1]) < 0.2  # 0.6 without turns, of CPU time


class Garbage:
    """Python's collector, as far as it is asked; that of this process is everybody's."""

    def __init__(self) -> None:
        self.on = True
        self.young = 0
        self.frozen = 0
        self.done: list[str] = []

    def isenabled(self) -> bool:
        return self.on

    def enable(self) -> None:
        self.on = True

    def disable(self) -> None:
        self.on = False

    def get_freeze_count(self) -> int:
        return self.frozen

    def freeze(self) -> None:
        self.frozen, self.young = self.frozen + self.young, 0
        self.done.append("freeze")

    def unfreeze(self) -> None:
        self.young, self.frozen = self.frozen, 0

    def collect(self, generation: int = 2) -> None:
        self.done.append(f"collect {generation}")


@pytest.fixture
def garbage(monkeypatch: pytest.MonkeyPatch) -> Garbage:
    made = Garbage()
    monkeypatch.setattr(workers, "gc", made)
    return made


def test_what_work_has_made_is_frozen_and_its_garbage_goes_in_time(
    garbage: Garbage, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = workers._Collector()

    def work(makes: int, seconds: float) -> None:
        collector.enter()
        assert not garbage.on
        garbage.young += makes
        collector.leave(seconds)
        assert garbage.on

    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(workers, "TIDY_SECONDS", 0.0)
    work(40_000, workers.LONG_SECONDS)
    assert (garbage.frozen, garbage.done) == (40_000, ["freeze"])
    collector.tidy()  # too little has come together
    assert garbage.done == ["freeze"]
    work(2 * workers.GROWN_OBJECTS, workers.LONG_SECONDS)
    collector.enter()
    collector.tidy()  # not while work runs
    collector.leave(0.0)
    collector.asked = True
    collector.tidy()  # nor while somebody asks for something
    assert garbage.done == ["freeze", "freeze", "collect 0"]
    collector.asked = True
    monkeypatch.setattr(workers, "MOST_FREEZES", 1)
    collector.tidy()  # unless there is too much
    assert garbage.done[3:] == ["collect 2", "freeze"]
    monkeypatch.setattr(workers, "MOST_FREEZES", 1_000)
    half, much = workers.MOST_SECONDS / 2, 2 * workers.BUSY_OBJECTS
    for makes, seconds, done in (
        (2 * workers.GROWN_OBJECTS, workers.MOST_SECONDS, []),
        (much, half, []),
        (0, half, ["collect 2", "freeze"]),  # or it took long to make, and is very much
    ):
        work(makes, seconds)
        del garbage.done[:]
        collector.asked = True
        collector.tidy()
        assert garbage.done == done
    work(2 * workers.GROWN_OBJECTS + garbage.frozen // 2, workers.MOST_SECONDS)
    collector.asked = True
    collector.tidy()
    del garbage.done[:]
    collector.tidy()  # what was too little then is not when nobody asks
    assert garbage.done == ["collect 2", "freeze"]


def test_young_objects_are_looked_at_after_short_work_alone(garbage: Garbage) -> None:
    done = garbage.done
    collector = workers._Collector()
    collector.enter()
    collector.enter()
    for _ in range(workers.COLLECTED_EVERY):  # another piece, which runs on, may have made many
        collector.enter()
        collector.leave(0.0)
    assert done == ["freeze"] and not garbage.on
    collector.leave(workers.LONG_SECONDS)
    collector.leave(0.0)
    assert done == ["freeze", "freeze", "collect 0"] and garbage.on
    garbage.on = False  # by somebody else, who wants none
    collector.enter()
    collector.leave(0.0)
    assert done == ["freeze", "freeze", "collect 0"] and not garbage.on
