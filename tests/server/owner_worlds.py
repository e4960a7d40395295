"""Random objects that own each other: what a garbage collector should leave of them, and what one leaves.

    python -m tests.server.owner_worlds URL TOKEN [URL TOKEN] [--worlds 200] [--seed 1]

plays worlds against running servers (kube-apiserver with ``garbage-collector-controller`` and ``namespace-controller``
too) and compares what is left with the law below. A world is played in phases, and nothing goes on before the collector
has come to rest. Worlds of which more than one thing may be left, by the order in which objects are looked at, are not
drawn.

kube-apiserver's collector leaves an object alone whose last living owner was orphaned away until something else wakes
it; the law has it deleted. That is the one known difference.
"""

from __future__ import annotations

import argparse
import copy
import http.client
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.access.decisions import Side

Json = dict[str, Any]
Call = Callable[[str, str, Any], tuple[int, Any]]
"""Method, path and body; status and JSON."""

KINDS = {
    "ConfigMap": ("v1", "/api/v1", "configmaps", True),
    "Secret": ("v1", "/api/v1", "secrets", True),
    "Lease": ("coordination.k8s.io/v1", "/apis/coordination.k8s.io/v1", "leases", True),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "PriorityClass": ("scheduling.k8s.io/v1", "/apis/scheduling.k8s.io/v1", "priorityclasses", False),
}  # fmt: skip
UNKNOWN = [("x.example.com/v1", "ConfigMap"), ("v2", "ConfigMap"), ("v1", "Foo"), ("apps/v1", "Secret")]
CALLED = ("authentication.k8s.io/v1", "TokenReview")
"""A kind of which no object is ever there."""
HOLD = "example.com/hold"
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
POLICIES = ("Background", "Foreground", "Orphan")
REST_SECONDS = 1.2
PATIENCE_SECONDS = 60.0


@dataclass
class Thing:
    """An object: ``refs`` are its references, whose ``uid`` is a number of a thing or a word that is nobody's."""

    number: int
    kind: str
    namespace: str
    name: str
    holds: bool = False
    refs: list[Json] = field(default_factory=list)
    later: list[Json] = field(default_factory=list)
    """References that it gets once everything is there: they close circles."""

    @property
    def namespaced(self) -> bool:
        """Whether its kind has namespaces."""
        return KINDS[self.kind][3]

    @property
    def path(self) -> str:
        """Where it is."""
        _, root, plural, namespaced = KINDS[self.kind]
        return f"{root}/namespaces/{self.namespace}/{plural}" if namespaced else f"{root}/{plural}"


@dataclass
class World:
    """Things, and what is deleted of them: ``ends`` are numbers with a policy, ``closed`` namespaces with all in them,
    ``frees`` lose their own finalizer."""

    things: list[Thing]
    ends: list[tuple[int, str]]
    frees: list[int]
    closed: list[str] = field(default_factory=list)


def draw(chance: random.Random, prefix: str) -> World:
    """A world whose names begin with ``prefix``, of which one thing is left whoever is looked at first."""
    while True:
        world = _draw(chance, prefix)
        if all(law(world, random.Random(order)) == law(world) for order in range(12)):
            return world


def _draw(chance: random.Random, prefix: str) -> World:
    things: list[Thing] = []
    for number in range(chance.randint(2, 8)):
        kind = chance.choice(list(KINDS))
        namespace = f"{prefix}{chance.choice('aab')}" if KINDS[kind][3] else ""
        thing = Thing(number, kind, namespace, f"{prefix}{number}", chance.random() < 0.2)
        if things and chance.random() < 0.85:
            thing.refs = _references(chance, things, thing)
        things.append(thing)
    for thing in things:
        if chance.random() < 0.15:
            taken = {ref["uid"] for ref in thing.refs}
            others = [t for t in things if t.number not in taken and t is not thing]
            if others:
                thing.later = [_reference(chance, chance.choice(others), thing)]
    ends = [(chance.choice(things).number, chance.choice(POLICIES)) for _ in range(chance.randint(1, 3))]
    frees = [thing.number for thing in things if thing.holds and chance.random() < 0.6]
    namespaces = sorted({thing.namespace for thing in things if thing.namespace})
    closed = [chance.choice(namespaces)] if namespaces and chance.random() < 0.3 else []
    return World(things, ends, frees, closed)


def _references(chance: random.Random, things: Sequence[Thing], thing: Thing) -> list[Json]:
    owners = chance.sample(list(things), min(len(things), chance.choice((1, 1, 1, 2, 3))))
    return [_reference(chance, owner, thing) for owner in owners]


def _reference(chance: random.Random, owner: Thing, thing: Thing) -> Json:
    """Mostly as it should be; now and then wrong in one way."""
    ref: Json = {
        "apiVersion": KINDS[owner.kind][0],
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.number,
    }
    if chance.random() < 0.5:
        ref["blockOwnerDeletion"] = chance.random() < 0.8
    match chance.choices(("", "uid", "name", "kind", "unknown", "called"), (70, 9, 5, 5, 7, 2))[0]:
        case "uid":
            ref["uid"] = f"none-{thing.number}-{owner.number}"
        case "name":
            ref["name"] += "-other"
        case "kind":
            ref["kind"] = chance.choice([kind for kind in KINDS if kind != owner.kind])
            ref["apiVersion"] = KINDS[ref["kind"]][0]
        case "unknown":
            ref["apiVersion"], ref["kind"] = chance.choice(UNKNOWN)
        case "called":
            ref["apiVersion"], ref["kind"] = CALLED
    return ref


# The law.


@dataclass
class State:
    """What there is of a thing: its references, whether it is being deleted, its finalizers."""

    thing: Thing
    refs: list[Json]
    deleting: bool = False
    finalizers: set[str] = field(default_factory=set)


def law(world: World, order: random.Random | None = None) -> dict[int, tuple[Any, ...]]:
    """What is left of a world; objects are looked at in random order where one is given."""
    present = {
        t.number: State(t, copy.deepcopy(t.refs), finalizers={HOLD} if t.holds else set())
        for t in world.things
    }
    settle(present, order)
    for thing in world.things:
        if thing.later and thing.number in present:
            present[thing.number].refs += copy.deepcopy(thing.later)
    settle(present, order)
    for number, policy in world.ends:
        delete(present, number, policy)
        settle(present, order)
    for thing in world.things:
        if thing.namespace in world.closed:
            delete(present, thing.number, "Background")
    settle(present, order)
    for number in world.frees:
        if number in present:
            present[number].finalizers.discard(HOLD)
            _drop_if_free(present, number)
    settle(present, order)
    return {number: _shown(state) for number, state in present.items()}


def _shown(state: State) -> tuple[Any, ...]:
    refs = [
        (r["apiVersion"], r["kind"], r["name"], r["uid"], r.get("blockOwnerDeletion")) for r in state.refs
    ]
    return state.deleting, sorted(state.finalizers), refs


def delete(present: dict[int, State], number: int, policy: str) -> None:
    """What a DELETE does before any collector looks."""
    state = present.get(number)
    if state is None:
        return
    state.finalizers -= {ORPHAN, FOREGROUND}
    if policy != "Background":
        state.finalizers.add(ORPHAN if policy == "Orphan" else FOREGROUND)
    state.deleting = True
    _drop_if_free(present, number)


def _drop_if_free(present: dict[int, State], number: int) -> None:
    if present[number].deleting and not present[number].finalizers:
        del present[number]


def settle(present: dict[int, State], order: random.Random | None) -> None:
    """Until nobody has anything to do."""
    while True:
        numbers = list(present)
        if order is not None:
            order.shuffle(numbers)
        if not any(_turn(present, number) for number in numbers):
            return


def _dependents(present: dict[int, State], number: int) -> list[State]:
    return [state for state in present.values() if any(ref["uid"] == number for ref in state.refs)]


def _turn(present: dict[int, State], number: int) -> bool:
    """One look at an object; whether anything changed."""
    state = present.get(number)
    if state is None:
        return False
    if not state.deleting:
        return bool(state.refs) and _weigh(present, state)
    dependents = _dependents(present, number)
    if ORPHAN in state.finalizers:
        for each in dependents:
            each.refs = [ref for ref in each.refs if ref["uid"] != number]
        state.finalizers.discard(ORPHAN)
    elif FOREGROUND in state.finalizers:
        if any(not each.deleting and _weigh(present, each) for each in dependents):
            return True
        if any(
            ref["uid"] == number and ref.get("blockOwnerDeletion") for each in dependents for ref in each.refs
        ):
            return False
        state.finalizers.discard(FOREGROUND)
    else:
        return False
    _drop_if_free(present, number)
    return True


def _weigh(present: dict[int, State], state: State) -> bool:
    alive: list[State] = []
    staying: set[Any] = set()
    for ref in state.refs:
        version, kind = ref["apiVersion"], ref["kind"]
        known = kind in KINDS and KINDS[kind][0] == version
        if not known and (version, kind) != CALLED:
            return False
        if known and KINDS[kind][3] and not state.thing.namespaced:
            return False
        owner = present.get(ref["uid"])
        if owner is None or (owner.thing.kind, owner.thing.name) != (kind, ref["name"]):
            continue
        if owner.thing.namespaced and owner.thing.namespace != state.thing.namespace:
            continue
        alive.append(owner)
        if not (owner.deleting and FOREGROUND in owner.finalizers):
            staying.add(ref["uid"])
    if staying:
        kept = [ref for ref in state.refs if ref["uid"] in staying]
        changed = len(kept) < len(state.refs)
        state.refs = kept
        return changed
    dependents = _dependents(present, state.thing.number)
    policy = "Background"
    if alive and dependents:
        if any(each.deleting and FOREGROUND in each.finalizers for each in dependents):
            for ref in state.refs:
                if ref.get("blockOwnerDeletion"):
                    ref["blockOwnerDeletion"] = False
        policy = "Foreground"
    delete(present, state.thing.number, policy)
    return True


# The play.


Rest = Callable[[Sequence[World], Call], None]
"""Returns when the collector has nothing more to do."""


def play(worlds: Sequence[World], call: Call, rest: Rest) -> list[dict[int, tuple[Any, ...]]]:
    """What a server leaves of worlds, which are played side by side."""
    uids: list[dict[Any, str]] = [{} for _ in worlds]
    for namespace in sorted(
        {thing.namespace for world in worlds for thing in world.things if thing.namespace}
    ):
        _expect(call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}), 201)
    for world, known in zip(worlds, uids, strict=True):
        for thing in world.things:
            _, made = _expect(call("POST", thing.path, _manifest(thing, known)), 201)
            known[thing.number] = made["metadata"]["uid"]
    rest(worlds, call)
    for world, known in zip(worlds, uids, strict=True):
        for thing in world.things:
            if thing.later:
                _add_references(call, thing, known)
    rest(worlds, call)
    for turn in range(max(len(world.ends) for world in worlds)):
        for world in worlds:
            if turn < len(world.ends):
                number, policy = world.ends[turn]
                thing = world.things[number]
                body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy}
                _expect(call("DELETE", f"{thing.path}/{thing.name}", body), 200, 404)
        rest(worlds, call)
    _close(worlds, call)
    rest(worlds, call)
    for world in worlds:
        for number in world.frees:
            _change(call, world.things[number], _free)
    rest(worlds, call)
    return [_left(world, known, call) for world, known in zip(worlds, uids, strict=True)]


def _close(worlds: Sequence[World], call: Call) -> None:
    """Deletes namespaces, and waits until their controller has deleted what is in them, or said what stays."""
    closed = [f"/api/v1/namespaces/{name}" for world in worlds for name in world.closed]
    for path in closed:
        _expect(call("DELETE", path, None), 200)
    began = time.monotonic()
    for path in closed:
        while True:
            status, obj = call("GET", path, None)
            if status == 404 or obj["status"].get("conditions"):
                break
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise AssertionError(f"{path} does not end")
            time.sleep(0.02)


def clean(worlds: Sequence[World], call: Call) -> None:
    """Deletes what is left, and the namespaces."""
    for world in worlds:
        for thing in world.things:
            _change(call, thing, lambda metadata: metadata.update(finalizers=[], ownerReferences=[]))
            call("DELETE", f"{thing.path}/{thing.name}", {"propagationPolicy": "Background"})
    for namespace in {thing.namespace for world in worlds for thing in world.things if thing.namespace}:
        call("DELETE", f"/api/v1/namespaces/{namespace}", None)


def _expect(answer: tuple[int, Any], *codes: int) -> tuple[int, Any]:
    if answer[0] not in codes:
        raise AssertionError(f"{answer[0]}, not {codes}: {json.dumps(answer[1])[:500]}")
    return answer


def _manifest(thing: Thing, known: dict[Any, str]) -> Json:
    metadata: Json = {"name": thing.name, "ownerReferences": [_meant(ref, known) for ref in thing.refs]}
    if thing.holds:
        metadata["finalizers"] = [HOLD]
    body: Json = {"apiVersion": KINDS[thing.kind][0], "kind": thing.kind, "metadata": metadata}
    return {**body, "value": 1} if thing.kind == "PriorityClass" else body


def _meant(ref: Json, known: dict[Any, str]) -> Json:
    return {**ref, "uid": known.get(ref["uid"], str(ref["uid"]))}


def _add_references(call: Call, thing: Thing, known: dict[Any, str]) -> None:
    def add(metadata: Json) -> None:
        refs = [_meant(ref, known) for ref in thing.later]
        metadata["ownerReferences"] = [*(metadata.get("ownerReferences") or []), *refs]

    _change(call, thing, add)


def _free(metadata: Json) -> None:
    metadata["finalizers"] = [name for name in metadata.get("finalizers") or [] if name != HOLD]


def _change(call: Call, thing: Thing, change: Callable[[Json], None]) -> None:
    """Changes the metadata of what may be gone."""
    for _ in range(20):
        status, obj = call("GET", f"{thing.path}/{thing.name}", None)
        if status == 404:
            return
        change(obj["metadata"])
        if _expect(call("PUT", f"{thing.path}/{thing.name}", obj), 200, 404, 409)[0] != 409:
            return
    raise AssertionError(f"{thing.name} is changed each time by somebody else")


def quiet(worlds: Sequence[World], call: Call) -> None:
    """Until nothing has changed for a while: all that can be seen of somebody else's collector."""
    seen, since, began = None, time.monotonic(), time.monotonic()
    while time.monotonic() - since < REST_SECONDS:
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise AssertionError("the collector does not come to rest")
        if (now := _versions(worlds, call)) != seen:
            seen, since = now, time.monotonic()
        time.sleep(REST_SECONDS / 6)


def rung(worlds: Sequence[World], call: Call) -> None:
    """Until a whole round of the server's collector has changed nothing, however long a round takes: an object made for
    that is collected in each."""
    seen = None
    while (now := _versions(worlds, call)) != seen:
        seen = now
        path = "/api/v1/namespaces/default/configmaps"
        _, bell = _expect(call("POST", path, {"metadata": {"generateName": "bell-"}}), 201)
        name, uid = bell["metadata"]["name"], bell["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
        tone = {"metadata": {"name": f"tone-{name}", "ownerReferences": [owner]}}
        _expect(call("POST", path, tone), 201)
        _expect(call("DELETE", f"{path}/{name}", {"propagationPolicy": "Background"}), 200)
        while call("GET", f"{path}/tone-{name}", None)[0] != 404:
            time.sleep(0.01)


def _versions(worlds: Sequence[World], call: Call) -> list[tuple[str, str, str]]:
    return sorted(
        (path, item["metadata"]["name"], item["metadata"]["resourceVersion"])
        for path in {thing.path for world in worlds for thing in world.things}
        for item in _items(call, path)
    )


def _items(call: Call, path: str) -> list[Json]:
    items: list[Json] = _expect(call("GET", path, None), 200)[1].get("items") or []
    return items


def _left(world: World, known: dict[Any, str], call: Call) -> dict[int, tuple[Any, ...]]:
    numbers = {uid: number for number, uid in known.items()}
    left: dict[int, tuple[Any, ...]] = {}
    for thing in world.things:
        status, obj = call("GET", f"{thing.path}/{thing.name}", None)
        if status == 404:
            continue
        metadata = obj["metadata"]
        refs = [
            {**ref, "uid": numbers.get(ref["uid"], ref["uid"])}
            for ref in metadata.get("ownerReferences") or []
        ]
        finalizers = set(metadata.get("finalizers") or [])
        left[thing.number] = _shown(State(thing, refs, "deletionTimestamp" in metadata, finalizers))
    return left


def main() -> int:
    """Plays worlds in lots; 1 where what is left is not what should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sides", nargs="+", help="URL TOKEN, once or twice")
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--lot", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sides = [Side(url, token) for url, token in zip(options.sides[::2], options.sides[1::2], strict=True)]
    wrong = done = 0
    for first in range(options.seed, options.seed + options.worlds, options.lot):
        seeds = range(first, min(first + options.lot, options.seed + options.worlds))
        worlds = [draw(random.Random(seed), f"o{seed}-") for seed in seeds]
        wanted = [law(world) for world in worlds]
        for side in sides:
            for seed, world, want, left in zip(
                seeds, worlds, wanted, play(worlds, side.call, quiet), strict=True
            ):
                if want != left:
                    wrong += 1
                    print(f"seed {seed} on {side.url}:\n  {world}\n  law    {want}\n  server {left}")
            clean(worlds, side.call)
        done += len(worlds)
        print(f"{done} worlds, {wrong} differences", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except http.client.HTTPException as fault:
        sys.exit(f"{fault!r}")
