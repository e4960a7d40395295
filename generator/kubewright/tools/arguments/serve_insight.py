"""Options of ``kubewright serve``: load, tracing, audit."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODES = ("batch", "blocking", "blocking-strict")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = parser.add_argument_group("load", "how much is served at a time")
    group.add_argument("--enable-priority-and-fairness", choices=("true", "false"), default="true",
        help="share the server by FlowSchemas and priority levels (default true)")  # fmt: skip
    group.add_argument("--max-requests-inflight", type=int, default=400, metavar="N",
        help="reads at a time (default 400); with fairness both limits together are shared")  # fmt: skip
    group.add_argument("--max-mutating-requests-inflight", type=int, default=200, metavar="N",
        help="writes at a time (default 200)")  # fmt: skip
    group = parser.add_argument_group("insight", "what the server is doing")
    group.add_argument("--tracing-config-file", type=Path, metavar="FILE",
        help="TracingConfiguration: the collector that spans are sent to, and how many are")  # fmt: skip
    group.add_argument("--profiling", choices=("true", "false"), default="true",
        help="answer /debug to those who may get it (default true)")  # fmt: skip
    group = parser.add_argument_group("audit", "who did what; without a policy nothing is kept")
    add = group.add_argument
    add(
        "--audit-policy-file",
        type=Path,
        metavar="FILE",
        help="audit.k8s.io/v1 Policy: what is kept of which request",
    )
    add(
        "--audit-log-path",
        default="",
        metavar="FILE",
        help="where events are written, a line each; - is standard output",
    )
    add("--audit-log-format", choices=("json", "legacy"), default="json")
    add("--audit-log-mode", choices=MODES, default="blocking",
        help="blocking (default): written before the request goes on; strict: refuse what cannot be kept")  # fmt: skip
    add(
        "--audit-log-maxsize",
        type=int,
        default=100,
        metavar="MB",
        help="a file is exchanged when it has so many megabytes (default 100)",
    )
    add("--audit-log-maxbackup", type=int, default=0, metavar="N", help="full files to keep (default: all)")
    add(
        "--audit-log-maxage",
        type=int,
        default=0,
        metavar="DAYS",
        help="days to keep them (default: for ever)",
    )
    add("--audit-log-compress", action="store_true", help="compress full files")
    _add_batching(add, "log", batch=1, wait="0s", throttled="false")
    add(
        "--audit-webhook-config-file",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the server that takes events",
    )
    add("--audit-webhook-mode", choices=MODES[:2], default="batch",
        help="batch (default), or blocking: each event by itself as it comes")  # fmt: skip
    add(
        "--audit-webhook-initial-backoff",
        default="10s",
        metavar="DURATION",
        help="before a second try (default 10s)",
    )
    _add_batching(add, "webhook", batch=400, wait="30s", throttled="true")


def _add_batching(add: Callable[..., Any], of: str, *, batch: int, wait: str, throttled: str) -> None:
    add(
        f"--audit-{of}-truncate-enabled",
        action="store_true",
        help="leave objects out of events that are too large",
    )
    add(f"--audit-{of}-truncate-max-event-size", type=int, default=100 << 10, metavar="BYTES",
        help="larger events lose their objects (default %(default)s)")  # fmt: skip
    prefix = f"--audit-{of}-batch"
    add(f"{prefix}-buffer-size", type=int, default=10_000, metavar="N", help="events that may wait")
    add(f"{prefix}-max-size", type=int, default=batch, metavar="N", help="events in a batch")
    add(f"{prefix}-max-wait", default=wait, metavar="DURATION",
        help="how long a batch waits to be full")  # fmt: skip
    add(f"{prefix}-throttle-enable", choices=("true", "false"), default=throttled)
    add(f"{prefix}-throttle-qps", type=float, default=10.0, metavar="N", help="batches a second")
    add(f"{prefix}-throttle-burst", type=int, default=15, metavar="N")
