"""Fairness at work: says of each request which flow it is of, and lets it in when it is its turn.

It follows the FlowSchemas and priority levels that are stored. Where there are none (a server of packages without them)
it is not ``active``, and plain limits hold instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter, thread_time

import msgspec

from apimachinery.access.authorization import MASTERS, Attributes
from apimachinery.http.messages import LARGE_BYTES, Request, User
from apimachinery.http.remembered import Remembered
from apimachinery.http.steps import LONG, compute
from apimachinery.metrics import Metrics
from apimachinery.server.fairness.facts import GROUP
from apimachinery.server.fairness.figures import FairnessMetrics, Lane
from apimachinery.server.fairness.levels import WAIT_SECONDS, Level, Queue, Rejected, Waiter, read_shape
from apimachinery.server.fairness.schemas import Schema, read_name, read_schema
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

TURN = 4
"""Requests of limited levels that one turn of the loop starts..."""
LONG_TURN_SECONDS = 0.002
"""...and one where the turn before took the loop longer than this: what others wait for takes some turns."""
LONG_RUNNING = frozenset({"exec", "attach", "portforward", "proxy", "log"})
LIST_SEATS = 10
OBJECTS_A_SEAT = 100
SCHEMAS = f"/{GROUP}/flowschemas/"
LEVELS = f"/{GROUP}/prioritylevelconfigurations/"
_READING = frozenset({"get", "list", "watch"})
Estimate = Callable[[Attributes], int]


class Ticket(msgspec.Struct):
    """A request that was let in."""

    lane: Lane
    queue: Queue | None
    seats: int
    flow: str
    began: float
    watches: bool = False


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How many requests may be under way at once; watches do not count."""

    reads: int = 400
    writes: int = 200


class Fairness:
    """``seats`` are those of the whole server. ``estimate`` says how many objects a list would go through."""

    def __init__(
        self,
        cache: WatchCache,
        seats: int,
        metrics: Metrics,
        estimate: Estimate = lambda attributes: 0,
    ) -> None:
        self._seats = seats
        self._levels: dict[str, Level] = {}
        self._schemas: list[Schema] = []
        self._stored: dict[str, Schema] = {}
        self._lanes: dict[str, Lane] = {}
        self._flows: Remembered[tuple[object, ...], tuple[Lane, str]] = Remembered()
        self._masters: Lane | None = None
        self._left = TURN
        self._turned_at = 0.0
        self._turning = False
        self._following = False
        self._newest: dict[str, bytes] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._estimate = estimate
        self.inqueue = {True: 0, False: 0}
        self._metrics = FairnessMetrics(metrics, self)
        self._follow(cache)

    @property
    def active(self) -> bool:
        """Whether there is any schema."""
        return bool(self._schemas)

    # What is configured.

    def _follow(self, cache: WatchCache) -> None:
        for prefix, put, drop in (
            (LEVELS, self._put_level, self._drop_level),
            (SCHEMAS, self._put_schema, self._drop_schema),
        ):
            resource = cache.resource(prefix)

            def heard(
                event: Event,
                prefix: str = prefix,
                put: Callable[[bytes], None] = put,
                drop: Callable[[str], None] = drop,
            ) -> None:
                if event.deleted:
                    drop(event.record.key[len(prefix) :])
                else:
                    put(event.record.value)
                self._arrange()

            resource.listen(prefix, heard)
            for record in resource.snapshot(prefix).records:
                put(record.value)
        self._following = True
        self._arrange()

    def _put_level(self, value: bytes) -> None:
        obj = decode(value)
        name, uid = obj["metadata"]["name"], obj["metadata"].get("uid") or ""
        shape = read_shape(obj)
        level = self._levels.get(name)
        if level is None:
            self._levels[name] = Level(name, uid, shape)
        elif level.shape != shape or level.uid != uid:
            level.configure(uid, shape)

    def _drop_level(self, name: str) -> None:
        # What waits there is served still; nobody new comes.
        self._levels.pop(name, None)

    def _put_schema(self, value: bytes) -> None:
        # At the start all are read at once, since nothing is served yet.
        if len(value) <= LARGE_BYTES or not self._following:
            schema = read_schema(decode(value))
            self._newest.pop(schema.name, None)
            self._stored[schema.name] = schema
            return
        task = asyncio.get_running_loop().create_task(self._put_large(value))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _put_large(self, value: bytes) -> None:
        """Reads a large schema off the loop, and keeps it unless a newer one came meanwhile."""
        name = read_name(value)
        self._newest[name] = value
        schema = await compute(LONG, lambda: read_schema(decode(value)))
        # A newer one, or a deletion, came while it was read.
        if self._newest.get(name) is value:
            del self._newest[name]
            self._stored[name] = schema
            self._arrange()

    def _drop_schema(self, name: str) -> None:
        self._newest.pop(name, None)
        self._stored.pop(name, None)

    def _arrange(self) -> None:
        """Works out seats and the order of schemas anew."""
        shares = sum(level.shape.shares for level in self._levels.values())
        for level in self._levels.values():
            level.seat(self._seats, shares)
        # By precedence, then by name, as kube-apiserver breaks ties.
        ordered = sorted(self._stored.values(), key=lambda schema: (schema.precedence, schema.name))
        self._schemas = [schema for schema in ordered if schema.level in self._levels]
        self._flows.clear()
        lanes = {schema.name: self._lane(schema) for schema in self._schemas}
        self._lanes = lanes
        first = self._schemas[0] if self._schemas else None
        # Masters are exempt by the first schema; if it was changed, they are matched like others.
        self._masters = None
        if first is not None and first.name == "exempt" and self._levels[first.level].shape.exempt:
            self._masters = lanes[first.name]

    def _lane(self, schema: Schema) -> Lane:
        level = self._levels[schema.level]
        old = self._lanes.get(schema.name)
        # Kept where nothing changed: its counters belong to running requests too.
        if old is not None and old.schema == schema and old.level is level:
            return old
        names = (schema.name, level.name)
        family = self._metrics
        return Lane(
            schema,
            level,
            f"X-Kubernetes-Pf-Flowschema-Uid: {schema.uid}\r\n"
            f"X-Kubernetes-Pf-Prioritylevel-Uid: {level.uid}\r\n".encode("latin-1"),
            family.dispatched.at(*names),
            (family.executed.at(*names, "regular"), family.executed.at(*names, "watch")),
            None if level.shape.exempt else family.estimated.at(*names),
            family.waited.at("true", *names),
            None if level.shape.exempt else family.lengths.at(*names),
            f"{schema.name}\0",
        )

    # Requests.

    def lane(self, user: User, attributes: Attributes) -> tuple[Lane, str]:
        """The lane and the flow of a request."""
        place = (
            user.name, user.groups, attributes.verb, attributes.group, attributes.resource, attributes.subresource,
            attributes.namespace, attributes.path if not attributes.is_resource else "",
        )  # fmt: skip
        # Users and resources repeat, so matching is remembered until the configuration changes.
        known = self._flows.get(place)
        if known is None:
            known = self._find(user, attributes)
            self._flows.put(place, known)
        return known

    def _find(self, user: User, attributes: Attributes) -> tuple[Lane, str]:
        for schema in self._schemas:
            if schema.match(user, attributes):
                lane = self._lanes[schema.name]
                return lane, lane.flow_prefix + schema.flow(user, attributes)
        # catch-all matches everybody; without it the last schema takes what no other does.
        lane = self._lanes[self._schemas[-1].name]
        return lane, lane.flow_prefix + user.name

    async def enter(self, request: Request, user: User, attributes: Attributes) -> Ticket:
        """Lets a request in when it is its turn. Raises Rejected. Every ticket must be given back (``leave``)."""
        lane, flow = self.lane(user, attributes)
        request.stamp += lane.stamp
        level = lane.level
        # Streams would hold their seats for hours.
        if level.shape.exempt or attributes.subresource in LONG_RUNNING:
            return self._enter_exempt(lane)
        seats = 1
        if attributes.verb == "list" and not attributes.name:
            # Seats by the number of objects that a list goes through, as kube-apiserver's work estimator.
            seats = max(1, min(LIST_SEATS, -(-self._estimate(attributes) // OBJECTS_A_SEAT)))
        if lane.estimated is not None:
            lane.estimated.observe(seats)
        queue = level.choose(flow)
        # Straight in where nobody waits: a queue would cost a turn of the loop.
        if self._left > 0 and not level.waiting and self._has_room(level, seats, flow):
            self._start_turn()
            self._left -= 1
            level.begin(queue, seats, flow)
            return self._let_in(lane, queue, seats, flow, attributes.verb == "watch")
        writes = attributes.verb not in _READING
        self.inqueue[writes] += 1
        try:
            await self._wait(lane, queue, seats, flow)
        finally:
            self.inqueue[writes] -= 1
        return self._let_in(lane, queue, seats, flow, attributes.verb == "watch")

    def enter_master(self, request: Request, user: User) -> Ticket | None:
        """Lets in whoever is exempt, whatever they ask; None for others."""
        lane = self._masters
        if lane is None or MASTERS not in user.groups:
            return None
        request.stamp += lane.stamp
        return self._enter_exempt(lane)

    def _enter_exempt(self, lane: Lane) -> Ticket:
        lane.dispatched.value += 1
        lane.executing += 1
        return Ticket(lane, None, 0, "", perf_counter())

    async def _wait(self, lane: Lane, queue: Queue, seats: int, flow: str) -> None:
        level = lane.level
        try:
            waiter = level.wait(queue, seats, flow)
        except Rejected as rejected:
            self._count_rejected(lane, rejected.reason)
            raise
        if lane.lengths is not None:
            lane.lengths.observe(len(queue.waiting))
        lane.inqueue += 1
        self._start_turn()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await waiter.turn
        except TimeoutError:
            self._give_up(level, waiter)
            self._count_rejected(lane, "time-out")
            raise Rejected("time-out") from None
        except asyncio.CancelledError:
            self._give_up(level, waiter)
            self._count_rejected(lane, "cancelled")
            raise
        finally:
            lane.inqueue -= 1
        lane.waited.observe(perf_counter() - waiter.since)

    def _give_up(self, level: Level, waiter: Waiter) -> None:
        if waiter.turn.done() and not waiter.turn.cancelled():
            level.end(
                waiter.queue, waiter.seats, waiter.flow, 0.0
            )  # it was let in just now, and does not come
        else:
            level.leave(waiter)

    def _count_rejected(self, lane: Lane, reason: str) -> None:
        count = lane.rejected.get(reason)
        if count is None:
            count = lane.rejected[reason] = self._metrics.rejected.at(
                lane.schema.name, lane.level.name, reason
            )
        count.value += 1

    def _let_in(self, lane: Lane, queue: Queue, seats: int, flow: str, watches: bool) -> Ticket:
        lane.dispatched.value += 1
        lane.executing += 1
        lane.seats += seats
        return Ticket(lane, queue, seats, flow, perf_counter(), watches)

    def leave(self, ticket: Ticket) -> None:
        """Ends a request, or, of a watch, its beginning."""
        lane, seconds = ticket.lane, perf_counter() - ticket.began
        lane.executing -= 1
        executed = lane.executed[ticket.watches]
        # Nearly all end within the first bucket: counted without a search.
        if seconds < 0.005:
            executed.counts[1] += 1
            executed.sum += seconds
        else:
            executed.observe(seconds)
        if ticket.queue is None:
            return
        lane.seats -= ticket.seats
        lane.level.end(ticket.queue, ticket.seats, ticket.flow, seconds)
        if lane.level.waiting:
            self._start_turn()

    def _has_room(self, level: Level, seats: int, flow: str) -> bool:
        """Whether a request may take seats: the level's own, or idle ones that others lend."""
        # An idle level lets in even what is wider than itself, or that would wait for ever.
        wanted = level.executing + seats + level.kept_from(flow)
        if wanted <= level.nominal or not level.executing:
            return True
        if wanted - level.nominal > level.borrowable:
            return False
        # What is lent is in use already, and cannot be lent twice.
        lent = sum(max(0, other.executing - other.nominal) for other in self._levels.values())
        spare = sum(other.spare() for other in self._levels.values() if other is not level)
        return wanted - max(level.executing, level.nominal) <= spare - lent

    def _fits(self, level: Level, waiter: Waiter) -> bool:
        return self._has_room(level, waiter.seats, waiter.flow)

    # Turns of the loop.

    def _start_turn(self) -> None:
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Lets in whose turn it is, a few of all levels, each level by its shares."""
        self._turning = False
        before, self._turned_at = self._turned_at, thread_time()
        # One at a time while the loop is slow: what was let in has to be served too.
        self._left = TURN if self._turned_at - before < LONG_TURN_SECONDS else 1
        waiting = [level for level in self._levels.values() if level.waiting]
        if not waiting:
            return
        blocked: set[str] = set()
        while self._left > 0:
            ready = [level for level in waiting if level.waiting and level.name not in blocked]
            if not ready:
                break
            # The level that uses least of its share is next.
            level = min(ready, key=lambda level: level.executing / max(level.nominal, 1))
            queue = level.next_queue(partial(self._fits, level))
            if queue is None:
                blocked.add(level.name)
                continue
            waiter = queue.waiting.popleft()
            level.waiting -= 1
            # It gave up while it waited.
            if waiter.turn.done():
                continue
            level.begin(queue, waiter.seats, waiter.flow)
            waiter.turn.set_result(None)
            self._left -= 1
        if any(level.waiting for level in waiting) and len(blocked) < len(waiting):
            self._start_turn()

    # What is shown.

    def dump(self) -> str:
        """The levels as a table, as kube-apiserver dumps them."""
        lines = [
            "PriorityLevelName, ActiveQueues, IsIdle, WaitingRequests, ExecutingRequests, DispatchedRequests, "
            "RejectedRequests, Seats, NominalSeats"
        ]
        for name, level in sorted(self._levels.items()):
            own = [lane for lane in self._lanes.values() if lane.level is level]
            cells = (
                name,
                sum(1 for queue in level.queues if queue.waiting),
                str(not level.waiting and not any(lane.executing for lane in own)).lower(),
                level.waiting,
                sum(lane.executing for lane in own),
                int(sum(lane.dispatched.value for lane in own)),
                int(sum(count.value for lane in own for count in lane.rejected.values())),
                level.executing,
                level.nominal,
            )
            lines.append(", ".join(map(str, cells)))
        return "\n".join(lines) + "\n"

    def levels(self) -> list[Level]:
        """The levels, for those who show them."""
        return list(self._levels.values())

    def lanes(self) -> list[Lane]:
        """The lanes, for those who show them."""
        return list(self._lanes.values())
