"""Queues of work by flow: who asks for little does not wait for all that another asks for."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.test_api import CM, ask, run

from apimachinery.http import workers
from apimachinery.http.flows import (
    HEAVY,
    KNOWN_FLOWS,
    LIGHT,
    LIGHT_SECONDS,
    SECONDS_A_BYTE,
    FairLines,
    on_behalf_of,
)
from apimachinery.http.messages import Request, Response
from apimachinery.http.protocol import Connections
from apimachinery.http.reading import MUCH_BYTES, TURN_BYTES, Reading
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.fairness.levels import Level, LevelShape, Waiter

MEGABYTE = 1 << 20


def drained(lines: FairLines[str], cost: float = 0.1, threads: int = 1) -> list[str]:
    """The order in which items are done, each at this cost, so many at a time."""
    order, running = [], []
    while True:
        while len(running) < threads and (taken := lines.take()) is not None:
            running.append(taken)
            order.append(taken[2])
        if not running:
            return order
        line, expected, _ = running.pop(0)
        lines.done(line, expected, cost)


def test_one_of_another_flow_is_next_however_many_wait():
    lines: FairLines[str] = FairLines()
    for number in range(60):
        lines.put("hostile", MEGABYTE, f"hostile {number}")
    first = lines.take()
    assert first is not None
    lines.put("quiet", 40_000, "quiet")
    second = lines.take()
    assert second is not None and second[2] == "quiet"


def test_a_flow_has_one_heavy_piece_at_a_time_and_light_ones_pass_it():
    lines: FairLines[str] = FairLines()
    lines.put("a", MEGABYTE, "heavy")
    lines.put("a", MEGABYTE, "heavy too")
    lines.put("a", 100, "light")
    assert {taken[2] for _ in range(2) if (taken := lines.take())} == {"heavy", "light"}
    assert lines.take() is None


def test_what_is_small_and_costs_much_is_heavy_from_then_on():
    lines: FairLines[str] = FairLines()
    assert 9_000 * SECONDS_A_BYTE < LIGHT_SECONDS
    for _ in range(5):
        lines.put("columns", 9_000, "table")
        line, expected, _ = lines.take() or (None, 0.0, "")
        assert line is not None
        lines.done(line, expected, 2.0)
    lines.put("columns", 9_000, "first")
    lines.take()
    lines.put("columns", 9_000, "second")
    assert not lines.is_ready(), "both are heavy, and one runs"


def test_a_debt_is_not_the_beginning_of_others():
    lines: FairLines[str] = FairLines()
    for _ in range(3):
        lines.put("debtor", MEGABYTE, "long")
    lines.put("hostile", MEGABYTE, "h")
    debtor = lines.take()
    hostile = lines.take()
    assert debtor is not None and hostile is not None
    lines.done(*debtor[:2], 30.0)
    assert lines.take() is not None  # the debtor again: nobody else is ready
    for number in range(9):
        lines.put("hostile", MEGABYTE, f"h{number}")
    lines.put("quiet", MEGABYTE, "quiet")
    lines.done(*hostile[:2], 0.1)
    assert "quiet" in drained(lines)[:2]


flow_names = st.sampled_from("abc")
puts = st.lists(st.tuples(flow_names, st.integers(0, 3 * MEGABYTE)), max_size=40)


@given(puts, st.integers(1, 3), st.floats(0.001, 2))
def test_everything_is_done_once_in_the_order_of_its_queue(wanted, threads, cost):
    lines: FairLines[str] = FairLines()
    for number, (flow, size) in enumerate(wanted):
        lines.put(flow, size, f"{flow} {number}")
    order = drained(lines, cost, threads)
    assert sorted(order) == sorted(f"{flow} {number}" for number, (flow, _) in enumerate(wanted))
    assert not lines._lines, "nothing is kept where nothing waits"


@given(st.integers(2, 4), st.integers(5, 15))
def test_flows_that_ask_for_the_same_get_the_same(flows, each):
    lines: FairLines[str] = FairLines()
    for flow in range(flows):
        for _ in range(each):
            lines.put(str(flow), MEGABYTE, str(flow))
    order = drained(lines)
    for served in range(flows, len(order) + 1):
        counts = [order[:served].count(str(flow)) for flow in range(flows)]
        assert max(counts) - min(counts) <= 1


def test_flows_that_were_seen_once_are_forgotten():
    lines: FairLines[str] = FairLines()
    for number in range(2 * KNOWN_FLOWS):
        lines.put(str(number), 0, "a")
        drained(lines)
    assert len(lines._rates) <= KNOWN_FLOWS and not lines._lines


def test_work_of_one_user_does_not_wait_for_all_of_anothers():
    """Sixty pieces of a user hold a thread until they are let go, one after the other; another's are done meanwhile."""
    done: list[str] = []
    held = threading.Semaphore(0)

    async def story() -> None:
        def heavy() -> None:
            held.acquire()
            done.append("hostile")

        async def of(user: str, size: int, work) -> None:
            on_behalf_of.set(user)
            workers.begin_request()
            workers.weigh(size)
            await workers.apart(work)

        tasks = [
            asyncio.create_task(of("hostile", MEGABYTE, heavy), context=contextvars.copy_context())
            for _ in range(60)
        ]
        await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.create_task(of("quiet", 40_000, lambda: done.append("quiet")))
        assert done == ["quiet"] * 20
        for _ in tasks:
            held.release()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(story(), 60))
    assert done.count("hostile") == 60


def test_a_queue_of_requests_owes_nothing_for_what_was_served_before():
    """After a write of 60 ms a user's get waited for thousands of another's gets; not so with kube-apiserver."""

    async def story() -> None:
        level = Level("a", "", LevelShape(False, 10, queues=8, hand=1, length=50))
        quiet, hostile = level.queues[0], level.queues[1]
        level.begin(quiet, 1, "quiet")
        level.end(quiet, 1, "quiet", 0.06)
        level.begin(hostile, 1, "hostile")
        for _ in range(10):
            level.wait(hostile, 1, "hostile")
        level.wait(quiet, 1, "quiet")
        served = 0
        while level.next_queue(lambda waiter: True) is hostile:
            hostile.waiting.popleft()
            level.waiting -= 1
            level.begin(hostile, 1, "hostile")
            level.end(hostile, 1, "hostile", 0.00002)
            served += 1
        assert served <= 1

    asyncio.run(story())


def test_a_piece_that_nobody_waits_for_any_more_is_not_done():
    done: list[int] = []
    held = threading.Event()

    async def story() -> None:
        first = asyncio.create_task(workers.apart(held.wait, 60))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(workers.apart(done.append, 1))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        held.set()
        await first
        until = time.monotonic() + 30
        while workers._threads._idle < workers.THREADS and time.monotonic() < until:
            await asyncio.sleep(0.001)

    asyncio.run(story())
    assert done == []


def test_who_comes_now_begins_with_whom_was_served_least():
    """A queue that is ahead of the others because its requests last long is not where a new one begins."""

    async def story() -> None:
        level = Level("a", "", LevelShape(False, 10, queues=8, hand=1, length=50))
        quiet, hostile, ahead = level.queues[:3]
        for queue in (hostile, ahead):
            level.begin(queue, 1, "hostile")
            level.wait(queue, 1, "hostile")
        level.end(ahead, 1, "hostile", 5.0)
        ahead.waiting.popleft()
        level.begin(ahead, 1, "hostile")
        level.wait(quiet, 1, "quiet")
        assert quiet.due == min(queue.due - sum(queue.expected) for queue in (hostile, ahead))
        # Of equals the one that has waited longest is next, so that nobody is passed for ever.
        level.end(hostile, 1, "hostile", 0.0)
        assert level.next_queue(lambda waiter: True) is hostile

    asyncio.run(story())


def test_light_work_does_not_wait_for_heavy_work_however_many_ask_for_it():
    lines: FairLines[str] = FairLines()
    for number in range(10):
        lines.put(f"hostile {number}", MEGABYTE, "heavy")
    running = [taken for _ in range(10) if (taken := lines.take())]
    assert len(running) == HEAVY
    lines.put("quiet", 100, "quiet")
    taken = lines.take()
    assert taken is not None and taken[2] == "quiet"


def test_light_work_that_lasts_is_counted_as_heavy():
    lines: FairLines[str] = FairLines()
    for number in range(LIGHT + 1):
        lines.put(f"odd {number}", 100, f"{number}")
    running = [taken for _ in range(9) if (taken := lines.take())]
    assert len(running) == LIGHT and not lines.is_ready()
    lines.reconsider(running[0][0])
    lines.reconsider(running[0][0])
    taken = lines.take()
    assert taken is not None and taken[2] == f"{LIGHT}"
    lines.put("heavy", MEGABYTE, "first")
    lines.put("heavier", MEGABYTE, "second")
    running += [taken, *[taken for _ in range(9) if (taken := lines.take())]]
    assert len(running) == LIGHT + HEAVY
    for line, expected, _ in running:
        lines.done(line, expected, 0.1)
    assert sorted(drained(lines)) == ["second"]
    assert lines._room == {True: LIGHT, False: HEAVY}


def test_threads_that_are_held_by_light_work_are_not_all_there_are():
    """Pieces that were taken for light and go on for ever: others' are done once somebody has looked."""
    ending = threading.Event()

    def spin() -> None:
        while not ending.is_set():
            sum(range(1_000))

    async def of(user: str, work: Callable[[], object]) -> None:
        on_behalf_of.set(user)
        workers.begin_request()
        await workers.apart(work)

    async def story() -> None:
        spinning = [asyncio.create_task(of(f"hostile {number}", spin)) for number in range(LIGHT)]
        quiet = asyncio.create_task(of("quiet", lambda: None))
        while not quiet.done():
            await asyncio.sleep(0.01)
            workers.end_costly()
        ending.set()
        await asyncio.gather(quiet, *spinning)

    try:
        asyncio.run(asyncio.wait_for(story(), 60))
    finally:
        ending.set()


def test_who_comes_now_goes_before_a_flood_that_is_refused_at_once():
    """Lists of ten seats were expected to last; two hundred of them, each refused, went before another's get."""

    async def story() -> None:
        level = Level("a", "", LevelShape(False, 10, queues=8, hand=1, length=500))
        quiet, hostile = level.queues[:2]
        level.average = 0.04
        for _ in range(300):
            level.wait(hostile, 10, "hostile")
        for _ in range(2):
            level.begin(hostile, 10, "hostile")
        level.wait(quiet, 1, "quiet")
        before = 0
        while level.next_queue(lambda waiter: True) is hostile:
            hostile.waiting.popleft()
            level.end(hostile, 10, "hostile", 0.0005)
            level.begin(hostile, 10, "hostile")
            before += 1
        assert before <= 2

    asyncio.run(story())


def test_a_queue_is_charged_what_its_requests_took_whatever_others_take_meanwhile():
    """Each request of a flood that ended after a long one of somebody else moved its queue back by the difference:
    thirty more of them went first."""

    async def story() -> None:
        level = Level("a", "", LevelShape(False, 10, queues=8, hand=1, length=50))
        quiet, hostile, other = level.queues[:3]
        level.begin(other, 1, "other")
        before = other.due - sum(other.expected)  # where one that joins begins
        level.begin(hostile, 1, "hostile")
        for _ in range(5):
            level.begin(hostile, 1, "hostile")
            level.begin(quiet, 1, "quiet")
            level.end(quiet, 1, "quiet", 5.0)
            level.end(hostile, 1, "hostile", 0.0001)
        level.end(hostile, 1, "hostile", 0.0001)
        assert hostile.due == pytest.approx(before + 6 * 0.0001)

    asyncio.run(story())


@given(st.lists(st.tuples(flow_names, st.integers(1, 10), st.booleans()), max_size=60), st.integers(1, 40))
def test_every_request_of_a_level_has_its_turn(wanted, nominal):
    """Whatever flows ask for, all are let in one day, none past the seats, and nothing is kept afterwards."""

    async def story() -> None:
        level = Level("a", "", LevelShape(False, 10, queues=8, hand=2, length=100))
        level.seat(nominal, 10)

        def fits(waiter: Waiter) -> bool:
            needed = level.executing + waiter.seats + level.kept_from(waiter.flow)
            return needed <= nominal or not level.executing

        running: list[Waiter] = []
        for flow, seats, ends in wanted:
            level.wait(level.choose(flow), seats, flow)
            served(level, fits, running)
            if ends and running:
                ended = running.pop(0)
                level.end(ended.queue, ended.seats, ended.flow, 0.001)
        while level.waiting or running:
            served(level, fits, running)
            assert running, "nobody is served, and somebody waits"
            assert len(running) == 1 or level.executing <= nominal
            ended = running.pop(0)
            level.end(ended.queue, ended.seats, ended.flow, 0.001)
        assert not level._held and not level.executing

    asyncio.run(story())


def served(level: Level, fits: Callable[[Waiter], bool], running: list[Waiter]) -> None:
    """Lets in whoever may begin."""
    while (queue := level.next_queue(fits)) is not None:
        waiter = queue.waiting.popleft()
        level.waiting -= 1
        level.begin(queue, waiter.seats, waiter.flow)
        running.append(waiter)


class Socket:
    """A connection that always has more."""

    def __init__(self, reading: Reading, piece: int, flow: str = "a") -> None:
        self._reading, self._piece, self._flow = reading, piece, flow
        self.paused = False
        self.read = 0

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def deliver(self) -> int:
        """What one turn of the loop reads of it."""
        if self.paused:
            return 0
        self.read += self._piece
        self._reading.took(self, self._flow, self._piece)
        return self._piece


def test_a_turn_reads_so_much_of_large_bodies_and_everybody_has_a_turn():
    async def story() -> None:
        reading = Reading()
        large = [Socket(reading, TURN_BYTES) for _ in range(60)]
        small = Socket(reading, MUCH_BYTES - 1)
        turns = []
        for _ in range(600):
            turns.append(sum(socket.deliver() for socket in large))
            small.deliver()
            await asyncio.sleep(0)
        assert max(turns[5:]) <= 2 * TURN_BYTES
        reads = sorted(socket.read for socket in large)
        assert reads[0] > 0 and reads[-1] <= reads[0] + 2 * TURN_BYTES
        assert small.read == 600 * (MUCH_BYTES - 1)

    asyncio.run(story())


def test_a_connection_that_paused_last_is_read_again():
    async def story() -> None:
        reading = Reading()
        only = Socket(reading, 4 * TURN_BYTES)
        only.deliver()
        assert only.paused
        for _ in range(3):
            await asyncio.sleep(0)
        assert not only.paused

    asyncio.run(story())


def test_who_reads_large_bodies_does_not_wait_for_all_connections_of_another():
    """A create of 40 KB left its connection unread until sixty others had delivered theirs: the next get waited."""

    async def story() -> None:
        reading = Reading()
        hostile = [Socket(reading, 4 * TURN_BYTES, "hostile") for _ in range(60)]
        quiet = Socket(reading, MUCH_BYTES, "quiet")
        for socket in (*hostile, quiet):
            socket.deliver()
        assert quiet.paused
        turns = 0
        while quiet.paused and turns < 60:
            await asyncio.sleep(0)
            turns += 1
            for socket in hostile:
                socket.deliver()
        assert turns <= 3

    asyncio.run(story())


class Unread(asyncio.Transport):
    """A socket without a loop: notes when it is left unread, and what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self.sent = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)


class Echo:
    """Answers each request with the size of its body."""

    async def answer(self, request: Request, oversized: bool) -> Response:
        return Response(200, b"%d" % len(request.body))

    def timed_out(self, request: Request) -> Response:
        raise NotImplementedError

    def knows(self, request: Request) -> bool:
        return True

    def takes_upgrade(self, request: Request) -> bool:
        return False


def post(credential: str, body: bytes) -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: a\r\nAuthorization: {credential}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def test_connections_are_read_in_turns_of_those_who_send():
    async def story() -> None:
        connections = Connections(Echo())

        def connected(data: bytes) -> Unread:
            connection, socket = connections(), Unread()
            connection.connection_made(socket)
            connection.data_received(data)
            return socket

        for _ in range(60):
            connected(post("Bearer hostile", b"x" * (8 * TURN_BYTES))[: 4 * TURN_BYTES])
        quiet = connected(post("Bearer quiet", b"x" * MUCH_BYTES))
        for _ in range(4):
            await asyncio.sleep(0)
        assert quiet.sent.endswith(b"%d" % MUCH_BYTES) and not quiet.paused

    asyncio.run(story())


def test_a_get_of_stored_bytes_does_not_wait_for_a_thread(monkeypatch: pytest.MonkeyPatch):
    """Nothing is made of them, however many they are; the way to a thread and back is long beside long work."""

    async def story(api: AssembledApi) -> None:
        made = {"metadata": {"name": "large"}, "data": {"a": "x" * 900_000}}
        assert (await ask(api, "POST", CM, made))[0] == 201
        monkeypatch.setattr(workers._threads, "submit", None)
        status, shown, _ = await ask(api, "GET", f"{CM}/large")
        assert status == 200 and shown["data"] == made["data"]

    run(story)
