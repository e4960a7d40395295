"""``make attack``: a server of its own on loopback is attacked in every way that once broke one; bounded and seeded.

    python -m tests.attack.run [--only inputs,fuzz] [--requests 20000] [--seed 1] [--stall 0.1] [--soak SECONDS]

One line an attack: what it did, the slowest answer of /livez meanwhile, the memory, and what is wrong. The exit code
is 1 where something is: a traceback, a 500 that is not kube-apiserver's, a lost write, a stall above ``--stall``,
memory above ``--memory``. ``--soak`` repeats all of it for that long. Stalls mean something on a quiet machine only.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attack import churn, consistency, fuzz, sockets
from tests.attack.inputs import INPUTS, THINGS, objects
from tests.attack.target import Target, Watch

Attack = Callable[[Target, random.Random, argparse.Namespace], Iterator[str]]
"""Yields what went wrong."""


def inputs(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Every input of the list; what holds the server is named."""
    for each in INPUTS:
        watch = Watch(target)
        body = each.body()
        if each.path == THINGS and body.startswith(b"{"):
            body = b'{"apiVersion":"attack.example.com/v1","kind":"Thing",' + body[1:]
        time.sleep(0.05)
        status, text = target.ask(each.method, each.path, body, each.headers)
        watch.end()
        if status >= 500 and b"etcdserver: request is too large" not in text:
            yield f"{each.name}: {status} {text[:200]!r}"
        if watch.slowest > options.stall:
            yield f"{each.name}: /livez took {watch.slowest:.2f} s"
        if status == 201:
            target.ask("DELETE", each.path.partition("?")[0] + "/attack")


ATTACKS: dict[str, Attack] = {
    "inputs": inputs,
    "sockets": sockets.payloads,
    "bodies": sockets.half_sent_bodies,
    "non-readers": sockets.non_readers,
    "fuzz": fuzz.requests,
    "churn": churn.lists_and_definitions,
    "linearizability": consistency.linearizability,
    "snapshots": consistency.snapshots,
    "kills": consistency.kills,
    "power cuts": consistency.power_cuts,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the attacks; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="tests.attack.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="names of attacks, separated by commas")
    parser.add_argument("--requests", type=int, default=20_000, help="of the fuzzer (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--stall", type=float, default=0.1, help="seconds that /livez may take (default %(default)s)"
    )
    parser.add_argument(
        "--memory", type=float, default=1024.0, help="megabytes that are not passed (default %(default)s)"
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
        wrong.append(f"{added} tracebacks in the log")
    if watch.peak > options.memory:
        wrong.append(f"{watch.peak:.0f} MB of memory")
    if watch.slowest > options.stall and name not in ("inputs", "kills"):
        wrong.append(f"/livez took {watch.slowest:.2f} s")
    print(
        f"{name:16} {time.monotonic() - began:6.1f} s  slowest /livez {watch.slowest * 1000:6.0f} ms  "
        f"peak {watch.peak:5.0f} MB  now {target.resident():5.0f} MB  {'FAILED' if wrong else 'ok'}",
        flush=True,
    )
    for line in wrong[:20]:
        print(f"    {line}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
