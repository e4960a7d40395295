"""Plays drawn stories against our workload controllers and kube-controller-manager's, and prints where they end apart.

``python -m tests.workloads.compare --manager PATH --seeds 0-11``: both run over a server of ours with a simulated
node, so that nothing but the controllers differs. Of the manager it is waited until nothing has changed for a while.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kubewright.testing import ApiServer

from .objects import Objects
from .settled import differences, state
from .stories import draw

NAMES = (
    "deployment-controller,replicaset-controller,replicationcontroller-controller,statefulset-controller,"
    "daemonset-controller,job-controller,cronjob-controller,ttl-after-finished-controller,"
    "endpointslice-controller,endpoints-controller,endpointslice-mirroring-controller,"
    "disruption-controller,horizontal-pod-autoscaler-controller"
)
CALM_SECONDS, PATIENCE_SECONDS = 1.5, 40.0
AUTOSCALING = (
    "sync-period=1s",
    "initial-readiness-delay=0s",
    "cpu-initialization-period=0s",
    "downscale-stabilization=1s",
)
LOOKS_SECONDS, LOOKS = 15, 8
"""How often an autoscaler looks, and after how many looks it has nothing more to change."""


class Advanced(Objects):
    """A namespace of our controllers: autoscalers look by the server's clock."""

    def settle(self) -> None:
        self.server.settle(30)
        for _ in range(LOOKS if self.all("horizontalpodautoscalers") else 0):
            self.server.clock.advance(f"{LOOKS_SECONDS}s")
            self.server.settle(30)


class Managed(Objects):
    """A namespace whose controllers are another program."""

    def settle(self) -> None:
        before, since, ends = "", time.monotonic(), time.monotonic() + PATIENCE_SECONDS
        calm = 2 * CALM_SECONDS if self.all("horizontalpodautoscalers") else CALM_SECONDS
        while time.monotonic() - since < calm and time.monotonic() < ends:
            shown = repr([self.all(plural) for plural in ("pods", *WATCHED)])
            if shown != before:
                before, since = shown, time.monotonic()
            time.sleep(0.1)


WATCHED = (
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "endpoints",
    "endpointslices",
    "poddisruptionbudgets",
    "cronjobs",
    "horizontalpodautoscalers",
)


@contextmanager
def manager(program: Path, server: ApiServer) -> Iterator[None]:
    """kube-controller-manager over a server."""
    with TemporaryDirectory() as folder:
        config = str(server.kubeconfig)
        flags = [f"--{name}kubeconfig={config}" for name in ("", "authentication-", "authorization-")]
        flags += [
            "--leader-elect=false",
            f"--controllers={NAMES}",
            "--secure-port=0",
            "--bind-address=127.0.0.1",
        ]
        flags += [f"--horizontal-pod-autoscaler-{each}" for each in AUTOSCALING]
        flags += ["--kube-api-qps=500", "--kube-api-burst=500", f"--cert-dir={folder}"]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen([str(program), *flags], stdout=log, stderr=log)
            try:
                yield
            finally:
                process.kill()
                process.wait()


def play(seed: int, ours: ApiServer, theirs: ApiServer) -> int:
    """Plays one story on both; how many steps end apart."""
    apart = 0
    with ours.namespace("story-") as one, theirs.namespace("story-") as other:
        here, there = Advanced(ours, one), Managed(theirs, other)
        for number, (what, act) in enumerate(draw(seed)):
            act(here)
            here.settle()
            act(there)
            there.settle()
            found = differences(_named(state(here), one), _named(state(there), other))
            apart += bool(found)
            print(f"seed {seed} step {number} {what}: {len(found) or 'same'}", flush=True)
            for line in found[:12]:
                print(f"    {line}", flush=True)
    return apart


def _named(found: object, namespace: str) -> object:
    import json

    return json.loads(json.dumps(found).replace(namespace, "NAMESPACE"))


def main() -> int:
    """Returns 1 where any step ends apart."""
    parser = argparse.ArgumentParser(prog="python -m tests.workloads.compare", description=__doc__)
    parser.add_argument("--manager", type=Path, required=True, help="the program kube-controller-manager")
    parser.add_argument("--seeds", default="0-11")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    with (
        ApiServer(node=True, controllers="all,workloads") as ours,
        ApiServer(node=True, controllers="all") as theirs,
        manager(options.manager, theirs),
    ):
        apart = {seed: play(seed, ours, theirs) for seed in range(int(first), int(last or first) + 1)}
    bad = {seed: count for seed, count in apart.items() if count}
    print(f"{len(apart)} stories, {len(bad)} end apart: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
