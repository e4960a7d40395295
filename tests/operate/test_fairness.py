"""Priority and Fairness: which flow a request is of, who is let in, who waits, who is turned away."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from apimachinery.access.attributes import attributes_of
from apimachinery.http.messages import Request, User
from apimachinery.metrics import Metrics
from apimachinery.server.fairness import fairness as at_work
from apimachinery.server.fairness.facts import GROUP, LEVELS, SCHEMAS
from apimachinery.server.fairness.fairness import Fairness, Ticket
from apimachinery.server.fairness.levels import Level, LevelShape, Rejected, deal
from apimachinery.storage.interface import REVISION_MARK, Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import encode

AUTHENTICATED = "system:authenticated"
ANN, BOB = (User(name, groups=(AUTHENTICATED,)) for name in ("ann", "bob"))
ROOT = User("root", groups=("system:masters", AUTHENTICATED))
NODE = User("system:node:n", groups=("system:nodes", AUTHENTICATED))
SYSTEM = User(
    "system:serviceaccount:kube-system:dns",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED),
)
ACCOUNT = User(
    "system:serviceaccount:a:b", groups=("system:serviceaccounts", "system:serviceaccounts:a", AUTHENTICATED)
)
SCHEDULER = User("system:kube-scheduler", groups=(AUTHENTICATED,))
NOBODY = User("system:anonymous", groups=("system:unauthenticated",))
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"
POD = "/api/v1/namespaces/ns/pods/p"


async def stored(**changes: Any) -> WatchCache:
    """A cache with the objects of a new cluster; ``changes`` are specs by LEVEL or SCHEMA name with ``level_`` or
    ``schema_`` before it, ``None`` leaves one out."""
    storage = MemoryStorage()
    for prefix, plural, kind, specs in (
        ("level_", "prioritylevelconfigurations", "PriorityLevelConfiguration", LEVELS),
        ("schema_", "flowschemas", "FlowSchema", SCHEMAS),
    ):
        own = {name[len(prefix) :]: spec for name, spec in changes.items() if name.startswith(prefix)}
        for name, spec in {**specs, **own}.items():
            if spec is None:
                continue
            metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": REVISION_MARK}
            obj = {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata, "spec": spec}
            await storage.create(f"/{GROUP}/{plural}/{name}", Value.cut(encode(obj)))
    return await WatchCache.open(storage)


async def made(seats: int = 600, **changes: Any) -> Fairness:
    return Fairness(await stored(**changes), seats, Metrics())


async def enter(fairness: Fairness, user: User, path: str = POD, method: str = "GET") -> Ticket:
    request = Request(method, path, user=user)
    return await fairness.enter(request, user, attributes_of(request, user))


@pytest.mark.parametrize(
    ("user", "method", "path", "schema", "flow"),
    [
        (ROOT, "GET", POD, "exempt", ""),
        (NOBODY, "GET", "/readyz", "probes", ""),
        (NOBODY, "POST", "/readyz", "global-default", "system:anonymous"),
        (NOBODY, "GET", "/readyz/etcd", "global-default", "system:anonymous"),
        (SYSTEM, "PUT", LEASE, "system-leader-election", SYSTEM.name),
        (SYSTEM, "DELETE", LEASE, "kube-system-service-accounts", "kube-system"),
        (SCHEDULER, "GET", LEASE, "system-leader-election", SCHEDULER.name),
        (SCHEDULER, "GET", POD, "kube-scheduler", "ns"),
        (SCHEDULER, "GET", "/api/v1/nodes", "kube-scheduler", ""),
        (NODE, "PATCH", "/api/v1/nodes/n/status", "system-node-high", NODE.name),
        (NODE, "PATCH", "/api/v1/nodes/n/other", "system-nodes", NODE.name),
        (NODE, "PUT", LEASE, "system-node-high", NODE.name),
        (NODE, "GET", POD, "system-nodes", NODE.name),
        (ACCOUNT, "GET", POD, "service-accounts", ACCOUNT.name),
        (ANN, "GET", POD, "global-default", "ann"),
        (ANN, "GET", "/version", "global-default", "ann"),
        (User("odd"), "GET", POD, "catch-all", "odd"),
    ],
)
def test_flows_of_a_new_cluster(user, method, path, schema, flow):
    async def run() -> tuple[str, str]:
        fairness = await made()
        request = Request(method, path)
        lane, found = fairness.lane(user, attributes_of(request, user))
        assert fairness.lane(user, attributes_of(request, user)) == (lane, found)
        return lane.schema.name, found.partition("\0")[2]

    assert asyncio.run(run()) == (schema, flow)


def test_seats_of_a_new_cluster_are_those_of_the_reference():
    fairness = asyncio.run(made())
    assert {level.name: (level.nominal, level.nominal - level.lendable) for level in fairness.levels()} == {
        "catch-all": (13, 13), "exempt": (0, 0), "global-default": (49, 24), "leader-election": (25, 25),
        "node-high": (98, 73), "system": (74, 50), "workload-high": (98, 49), "workload-low": (245, 24),
    }  # fmt: skip


def test_answers_say_of_which_schema_and_level_they_were():
    async def run() -> bytes:
        fairness = await made()
        request = Request("GET", POD)
        fairness.leave(await fairness.enter(request, ANN, attributes_of(request, ANN)))
        return request.stamp

    assert asyncio.run(run()) == (
        b"X-Kubernetes-Pf-Flowschema-Uid: uid-global-default\r\n"
        b"X-Kubernetes-Pf-Prioritylevel-Uid: uid-global-default\r\n"
    )


def test_a_hand_is_dealt_the_same_each_time_without_repetition_and_evenly():
    used: Counter[int] = Counter()
    for number in range(2000):
        hand = deal(f"flow-{number}", 64, 6)
        assert hand == deal(f"flow-{number}", 64, 6)
        assert len(set(hand)) == 6 and all(0 <= card < 64 for card in hand)
        used.update(hand)
    assert len(used) == 64
    # 187.5 each; so far off only with a chance below one in a million.
    assert min(used.values()) > 110 and max(used.values()) < 270


def tiny(**limited: Any) -> dict[str, Any]:
    return {"type": "Limited", "limited": {"nominalConcurrencyShares": 10, "lendablePercent": 0,
                                            "borrowingLimitPercent": 0, **limited}}  # fmt: skip


REJECTS = tiny(limitResponse={"type": "Reject"})
QUEUES = tiny(limitResponse={"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 3}})
ALONE = {f"level_{name}": None for name in LEVELS if name not in ("exempt", "global-default")}


async def held(fairness: Fairness, number: int) -> list[Ticket]:
    """So many requests of Ann that are under way."""
    tickets = []
    for _ in range(number):
        tickets.append(await enter(fairness, ANN))
        await asyncio.sleep(0)
    return tickets


def test_a_level_that_rejects():
    async def run() -> None:
        fairness = await made(4, **{**ALONE, "level_global-default": REJECTS})
        tickets = await held(fairness, 4)
        with pytest.raises(Rejected, match="concurrency-limit"):
            await enter(fairness, BOB)
        fairness.leave(tickets.pop())
        await enter(fairness, BOB)

    asyncio.run(run())


def test_a_full_queue_rejects_and_others_still_find_room(monkeypatch):
    async def run() -> None:
        fairness = await made(1, **{**ALONE, "level_global-default": QUEUES})
        tickets = await held(fairness, 1)
        ann = [asyncio.create_task(enter(fairness, ANN)) for _ in range(7)]
        await asyncio.sleep(0.01)
        # Two queues of three: the seventh finds none that is not full.
        rejected = [task for task in ann if task.done()]
        assert len(rejected) == 1
        with pytest.raises(Rejected, match="queue-full"):
            rejected[0].result()
        bob = asyncio.create_task(enter(fairness, BOB))
        await asyncio.sleep(0.01)
        assert not bob.done()
        # He came last, yet he is served before Ann's second.
        served: list[str] = []
        for _ in range(3):
            fairness.leave(tickets.pop())
            await asyncio.sleep(0.01)
            name = "bob" if bob.done() and "bob" not in served else "ann"
            served.append(name)
            done = bob if name == "bob" else next(t for t in ann if t.done() and t not in rejected)
            if name == "ann":
                ann.remove(done)
            tickets.append(done.result())
        assert "bob" in served[:2]
        for task in ann:
            task.cancel()
        await asyncio.gather(*ann, return_exceptions=True)

    asyncio.run(run())


def test_who_waits_too_long_is_turned_away_and_leaves_no_trace(monkeypatch):
    monkeypatch.setattr(at_work, "WAIT_SECONDS", 0.02)

    async def run() -> None:
        fairness = await made(1, **{**ALONE, "level_global-default": QUEUES})
        (ticket,) = await held(fairness, 1)
        with pytest.raises(Rejected, match="time-out"):
            await enter(fairness, BOB)
        waits = asyncio.create_task(enter(fairness, BOB))
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        (level,) = [level for level in fairness.levels() if level.name == "global-default"]
        assert (level.waiting, level.executing) == (0, 1)
        fairness.leave(ticket)
        assert level.executing == 0

    asyncio.run(run())


def test_exempt_requests_wait_for_nobody():
    async def run() -> None:
        fairness = await made(1, **{**ALONE, "level_global-default": REJECTS})
        await held(fairness, 1)
        assert fairness.enter_master(Request("GET", "/readyz"), ANN) is None
        for _ in range(20):
            ticket = fairness.enter_master(Request("GET", "/readyz"), ROOT)
            assert ticket is not None and ticket.lane.schema.name == "exempt"
        for _ in range(20):
            await enter(fairness, NOBODY, "/readyz")

    asyncio.run(run())


def test_seats_are_lent_while_they_are_idle_and_only_so_many():
    lender = tiny(lendablePercent=50, limitResponse={"type": "Reject"})
    borrower = tiny(borrowingLimitPercent=None, limitResponse={"type": "Reject"})

    async def run() -> tuple[int, int]:
        changes = {**ALONE, "level_global-default": borrower, "level_workload-low": lender}
        fairness = await made(20, **changes)
        taken = 0
        try:
            while True:
                await held(fairness, 1)
                taken += 1
        except Rejected:
            pass
        lenders = 0
        try:
            while True:
                await enter(fairness, ACCOUNT)
                await asyncio.sleep(0)
                lenders += 1
        except Rejected:
            return taken, lenders

    # Ten of its own and half of the other's ten; whom they are lent from still has all that are its own.
    assert asyncio.run(run()) == (15, 10)


def test_who_sends_little_is_served_soon_while_another_floods():
    """One turn of the loop starts a few requests; who floods waits for himself."""

    async def run() -> tuple[int, int]:
        fairness = await made()
        done: list[str] = []

        async def ask(user: User) -> None:
            ticket = await enter(fairness, user)
            done.append(user.name)
            fairness.leave(ticket)

        flood = [asyncio.create_task(ask(ANN)) for _ in range(200)]
        await asyncio.sleep(0)
        before = len(done)
        assert before <= at_work.TURN
        await ask(BOB)
        place = done.index("bob") - before
        await asyncio.gather(*flood)
        return place, len(done)

    place, total = asyncio.run(run())
    assert place <= 3 * at_work.TURN and total == 201


def test_leader_election_is_let_in_while_others_fill_their_level():
    async def run() -> None:
        fairness = await made(60)
        waiting = [asyncio.create_task(enter(fairness, ANN)) for _ in range(200)]
        await asyncio.sleep(0.05)
        assert sum(not task.done() for task in waiting) > 50
        ticket = await asyncio.wait_for(enter(fairness, SYSTEM, LEASE, "PUT"), 60)
        assert ticket.lane.level.name == "leader-election"
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())


def test_a_flow_that_has_seats_leaves_some_to_others():
    """Slow lists of a user hold seats while they wait for a thread; a get of another does not wait for them."""

    async def run() -> None:
        fairness = Fairness(await stored(), 600, Metrics(), lambda attributes: 100_000)
        pods = POD.removesuffix("/p")
        lists = [asyncio.create_task(enter(fairness, ANN, pods)) for _ in range(40)]
        for _ in range(100):  # turns of the loop, until nobody more is let in
            await asyncio.sleep(0)
        level = next(level for level in fairness.levels() if level.name == "global-default")
        assert level.waiting
        ticket = await asyncio.wait_for(enter(fairness, BOB), 60)
        assert level.waiting, "he passed those who wait"
        fairness.leave(ticket)
        for task in lists:
            task.cancel()
        await asyncio.gather(*lists, return_exceptions=True)

    asyncio.run(run())


def test_a_level_that_changes_keeps_those_who_wait():
    async def run() -> None:
        level = Level("l", "u", LevelShape(False, 1, queues=4, hand=2, length=10))
        level.seat(1, 1)
        waiter = level.wait(level.choose("flow"), 1, "flow")
        level.configure("u", LevelShape(False, 1, queues=2, hand=1, length=10))
        assert level.next_queue(lambda waiter: True) is waiter.queue
        level.leave(waiter)
        assert level.next_queue(lambda waiter: True) is None and level.waiting == 0

    asyncio.run(run())


def test_without_objects_there_is_no_fairness():
    async def run() -> bool:
        return Fairness(await WatchCache.open(MemoryStorage()), 600, Metrics()).active

    assert asyncio.run(run()) is False
