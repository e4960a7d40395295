"""``make attack``: a server of its own on loopback is attacked in every way that once broke one; bounded and seeded.

    python -m tests.attack.run [--only inputs,fuzz] [--requests 20000] [--times 1] [--seed 1] [--health 0.05]
                               [--soak SECONDS]

One line an attack: what it did, the slowest answer of /livez meanwhile, the memory, and what is wrong. The exit code
is 1 where something is: a traceback, a 500 that is not kube-apiserver's, a lost write, a stall above ``--stall``, an
answer of /livez above ``--health``, memory above ``--memory``. ``--soak`` repeats all of it for that long. Stalls are
judged by what the server itself took: the CPU time for which its loop was held, and the time of an answer less what
threads waited for a CPU.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.attack import (
    callouts,
    churn,
    consistency,
    crowd,
    explorers,
    flows,
    fuzz,
    processes,
    rights,
    sockets,
    storage_keys,
    stored,
    together,
    tunnels,
    unauthenticated,
)
from tests.attack.inputs import INPUTS, THINGS, Input, objects
from tests.attack.target import Target, Watch

Attack = Callable[[Target, random.Random, argparse.Namespace], Iterator[str]]
"""Yields what went wrong."""


def inputs(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Every input of the list; what holds the server is named."""
    for each in _chosen(INPUTS, options):
        yield from one_input(target, each, options)


def _chosen(inputs: Sequence[Input], options: argparse.Namespace) -> list[Input]:
    names = {name.strip() for name in options.inputs.split(",") if name.strip()}
    return [each for each in inputs if not names or each.name in names]


def one_input(target: Target, each: Input, options: argparse.Namespace) -> Iterator[str]:
    """What is wrong with how one input is answered, and with how the others are meanwhile."""
    body = each.body()
    if each.path == THINGS and body.startswith(b"{"):
        body = b'{"apiVersion":"attack.example.com/v1","kind":"Thing",' + body[1:]
    before = target.held()
    watch = Watch(target)
    time.sleep(0.05)
    cpu = target.cpu()
    try:
        # The server gives up after 60 s; whoever is behind a busy machine hears of it later.
        status, text = target.ask(each.method, each.path, body, each.headers, 150.0)
    except OSError as fault:
        watch.end()
        yield f"{each.name}: {fault!r}"
        return
    cpu = target.cpu() - cpu
    time.sleep(0.1)
    watch.end()
    held = target.held_since(before)
    if options.verbose:
        print(
            f"    {each.name:34} {status} {len(text) / 1e6:6.1f} MB  CPU {cpu:6.2f} s  "
            f"held {held * 1000:5.0f} ms at most  /livez {watch.own * 1000:5.0f} ms  {target.resident():5.0f} MB",
            flush=True,
        )
    if status >= 500 and b"etcdserver: request is too large" not in text and status != 504:
        yield f"{each.name}: {status} {text[:200]!r}"
    if held > options.stall:
        yield f"{each.name}: the loop was held for more than {options.stall} s of CPU time (up to {held} s)"
    if watch.own > options.health:
        yield f"{each.name}: /livez took {watch.own:.2f} s of the server's own time"
    if status == 201:
        target.ask("DELETE", each.path.partition("?")[0] + "/attack")


def crowds(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """100,000 objects, listed in every form, watched from long ago, deleted; on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="kubewright-crowd-") as folder:
        crowd.fill(Path(folder) / "attack.db")
        own = Target(Path(folder))
        try:
            for each in _chosen(crowd.INPUTS, options):
                yield from one_input(own, each, options)
            if own.tracebacks():
                yield f"tracebacks in the log; the last: {own.last_traceback()}"
        finally:
            own.end()


def right_worlds(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Random roles, bindings, certificates, tokens and nodes; on a server of its own that knows users."""
    with tempfile.TemporaryDirectory(prefix="kubewright-rights-") as folder:
        yield from rights.against(Path(folder), chance, options.steps * options.times, options.reference)


ATTACKS: dict[str, Attack] = {
    "inputs": inputs,
    "crowds": crowds,
    "sockets": sockets.payloads,
    "unauthenticated costs": unauthenticated.costs,
    "bodies": sockets.half_sent_bodies,
    "large heads": sockets.large_heads,
    "non-readers": sockets.non_readers,
    "tunnels": tunnels.non_takers,
    "callouts": callouts.next_to_a_quiet_user,
    "many kinds": together.many_kinds,
    "explorers": explorers.ten_pages,
    "rights": right_worlds,
    "flows": flows.flows,
    "fuzz": fuzz.requests,
    "stored objects": stored.records,
    "churn": churn.lists_and_definitions,
    "storage keys": storage_keys.attack,
    "linearizability": consistency.linearizability,
    "snapshots": consistency.snapshots,
    "kills": consistency.kills,
    "processes": processes.several,
    "power cuts": consistency.power_cuts,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the attacks; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="tests.attack.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="names of attacks, separated by commas")
    parser.add_argument("--requests", type=int, default=20_000, help="of the fuzzer (default %(default)s)")
    parser.add_argument(
        "--stored", type=int, default=4_000, help="records put into databases (default %(default)s)"
    )
    parser.add_argument(
        "--stored-etcd",
        type=int,
        default=1_000,
        help="records put into an etcd, if there is one (default %(default)s)",
    )
    parser.add_argument("--steps", type=int, default=2_000, help="of rights (default %(default)s)")
    parser.add_argument(
        "--reference",
        default="",
        help="kubeconfig of a kube-apiserver that the answers of rights are compared with",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--stall",
        type=float,
        default=0.1,
        help="seconds of CPU time for which the loop may be held (default %(default)s)",
    )
    parser.add_argument(
        "--health", type=float, default=0.05, help="seconds that /livez may take (default %(default)s)"
    )
    parser.add_argument(
        "--memory", type=float, default=1024.0, help="megabytes that are not passed (default %(default)s)"
    )
    parser.add_argument("--inputs", default="", help="names of inputs, separated by commas; all where none")
    parser.add_argument("--verbose", action="store_true", help="a line for each input")
    parser.add_argument(
        "--times", type=int, default=1, help="how many times as many kills, power cuts, operations and lists"
    )
    parser.add_argument("--soak", type=float, default=0.0, help="repeat for so many seconds")
    options = parser.parse_args(arguments)
    chosen = [name.strip() for name in options.only.split(",") if name.strip()] or list(ATTACKS)
    until, turn, failed = time.monotonic() + options.soak, 0, False
    with tempfile.TemporaryDirectory(prefix="kubewright-attack-") as folder:
        target = Target(Path(folder))
        for path, obj in objects():
            target.make(path, obj)
        try:
            while turn == 0 or time.monotonic() < until:
                for name in chosen:
                    failed |= _attack(name, target, random.Random(f"{options.seed} {turn} {name}"), options)
                turn += 1
        finally:
            target.end()
    return 1 if failed else 0


def _attack(name: str, target: Target, chance: random.Random, options: argparse.Namespace) -> bool:
    before, began, watch = target.tracebacks(), time.monotonic(), Watch(target)
    wrong = list(ATTACKS[name](target, chance, options))
    watch.end()
    target.forget()
    if (added := target.tracebacks() - before) > 0:
        wrong.append(f"{added} tracebacks in the log; the last: {target.last_traceback()}")
    if watch.peak > options.memory:
        wrong.append(f"{watch.peak:.0f} MB of memory")
    if watch.own > options.health and name not in ("inputs", "crowds", "callouts", "many kinds", "kills"):
        wrong.append(f"/livez took {watch.own:.2f} s of the server's own time")
    print(
        f"{name:16} {time.monotonic() - began:6.1f} s  slowest /livez {watch.slowest * 1000:6.0f} ms "
        f"(own {watch.own * 1000:4.0f} ms)  "
        f"peak {watch.peak:5.0f} MB  now {target.resident():5.0f} MB  {'FAILED' if wrong else 'ok'}",
        flush=True,
    )
    for line in wrong[:20]:
        print(f"    {line}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
