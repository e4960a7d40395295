"""Options of ``kubewright serve``: load, tracing, audit."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubewright.tools.arguments.several import port_number

MODES = ("batch", "blocking", "blocking-strict")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    _add_load(parser)
    _add_insight(parser)
    add = parser.add_argument_group("audit", "who did what: policy, log files, webhook").add_argument
    add(
        "--audit-policy-file",
        type=Path,
        metavar="FILE",
        help="audit.k8s.io/v1 Policy: what is kept of which request; without it nothing is",
    )
    _add_audit_log(add)
    _add_audit_webhook(add)


def _add_audit_log(add: Callable[..., Any]) -> None:
    add(
        "--audit-log-path",
        default="",
        metavar="FILE",
        help="write events there, one a line; - is standard output",
    )
    add(
        "--audit-log-format",
        choices=("json", "legacy"),
        default="json",
        help="json (default), or lines of words as kube-apiserver's legacy format",
    )
    add(
        "--audit-log-mode",
        choices=MODES,
        default="blocking",
        help="blocking (default): write before the request goes on; strict: refuse what cannot be logged",
    )
    add(
        "--audit-log-maxsize",
        type=int,
        default=100,
        metavar="MB",
        help="rotate the log file at this size (default %(default)s)",
    )
    add(
        "--audit-log-maxbackup", type=int, default=0, metavar="N", help="rotated files to keep (default: all)"
    )
    add(
        "--audit-log-maxage",
        type=int,
        default=0,
        metavar="DAYS",
        help="days to keep them (default: for ever)",
    )
    add("--audit-log-compress", action="store_true", help="compress rotated files")
    _add_batching(add, "log", batch=1, wait="0s", throttled="false")


def _add_audit_webhook(add: Callable[..., Any]) -> None:
    add(
        "--audit-webhook-config-file",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the server that takes events",
    )
    add(
        "--audit-webhook-mode",
        choices=MODES[:2],
        default="batch",
        help="batch (default), or blocking: each event by itself as it comes",
    )
    add(
        "--audit-webhook-initial-backoff",
        default="10s",
        metavar="DURATION",
        help="wait before a second try (default %(default)s)",
    )
    _add_batching(add, "webhook", batch=400, wait="30s", throttled="true")


def _add_load(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("load", "how many requests are served at a time").add_argument
    add(
        "--enable-priority-and-fairness",
        choices=("true", "false"),
        default="true",
        help="share the server by FlowSchemas and priority levels (default true)",
    )
    add(
        "--max-requests-inflight",
        type=int,
        default=400,
        metavar="N",
        help="reads at a time (default %(default)s); with fairness both limits together are shared",
    )
    add(
        "--max-mutating-requests-inflight",
        type=int,
        default=200,
        metavar="N",
        help="writes at a time (default %(default)s)",
    )


def _add_insight(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("insight", "the explorer's page, tracing and profiling").add_argument
    add(
        "--explorer",
        action="store_true",
        help="a page that shows this server, on loopback, to whoever logs in; its address is printed",
    )
    add(
        "--explorer-port",
        type=port_number,
        default=0,
        metavar="PORT",
        help="of the page, on 127.0.0.1 (default: a free one)",
    )
    add(
        "--tracing-config-file",
        type=Path,
        metavar="FILE",
        help="TracingConfiguration: the collector that spans are sent to, and how many are",
    )
    add(
        "--profiling",
        choices=("true", "false"),
        default="true",
        help="answer /debug to those who may get it (default true)",
    )


def _add_batching(add: Callable[..., Any], of: str, *, batch: int, wait: str, throttled: str) -> None:
    add(
        f"--audit-{of}-truncate-enabled",
        action="store_true",
        help="leave objects out of events that are too large",
    )
    add(
        f"--audit-{of}-truncate-max-event-size",
        type=int,
        default=100 << 10,
        metavar="BYTES",
        help="size from which an event is too large (default %(default)s)",
    )
    prefix = f"--audit-{of}-batch"
    add(f"{prefix}-buffer-size", type=int, default=10_000, metavar="N", help="events that may wait")
    add(f"{prefix}-max-size", type=int, default=batch, metavar="N", help="events in a batch")
    add(f"{prefix}-max-wait", default=wait, metavar="DURATION", help="how long a batch waits to be full")
    add(
        f"{prefix}-throttle-enable",
        choices=("true", "false"),
        default=throttled,
        help="limit the batches a second (default %(default)s)",
    )
    add(f"{prefix}-throttle-qps", type=float, default=10.0, metavar="N", help="batches a second")
    add(
        f"{prefix}-throttle-burst",
        type=int,
        default=15,
        metavar="N",
        help="batches at once before the limit applies (default %(default)s)",
    )
