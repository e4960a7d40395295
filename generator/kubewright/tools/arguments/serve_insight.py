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
        help="audit.k8s.io/v1 Policy: what to record of which request (default: nothing)",
    )
    _add_audit_log(add)
    _add_audit_webhook(add)


def _add_audit_log(add: Callable[..., Any]) -> None:
    add(
        "--audit-log-path",
        default="",
        metavar="FILE",
        help="file to write events to, one per line; - for standard output",
    )
    add(
        "--audit-log-format",
        choices=("json", "legacy"),
        default="json",
        help="json (default), or kube-apiserver's legacy text format",
    )
    add(
        "--audit-log-mode",
        choices=MODES,
        default="blocking",
        help="blocking (default): write before the request proceeds; strict: refuse requests that cannot be logged",
    )
    add(
        "--audit-log-maxsize",
        type=int,
        default=100,
        metavar="MB",
        help="size at which the log file is rotated (default %(default)s)",
    )
    add(
        "--audit-log-maxbackup", type=int, default=0, metavar="N", help="rotated files to keep (default: all)"
    )
    add(
        "--audit-log-maxage",
        type=int,
        default=0,
        metavar="DAYS",
        help="days to keep rotated files (default: forever)",
    )
    add("--audit-log-compress", action="store_true", help="compress rotated files")
    _add_batching(add, "log", batch=1, wait="0s", throttled="false")


def _add_audit_webhook(add: Callable[..., Any]) -> None:
    add(
        "--audit-webhook-config-file",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the server that receives events",
    )
    add(
        "--audit-webhook-mode",
        choices=MODES[:2],
        default="batch",
        help="batch (default), or blocking: send each event at once",
    )
    add(
        "--audit-webhook-initial-backoff",
        default="10s",
        metavar="DURATION",
        help="wait before the first retry (default %(default)s)",
    )
    _add_batching(add, "webhook", batch=400, wait="30s", throttled="true")


def _add_load(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("load", "limits on concurrent requests").add_argument
    add(
        "--enable-priority-and-fairness",
        choices=("true", "false"),
        default="true",
        help="schedule requests by FlowSchemas and priority levels (default true)",
    )
    add(
        "--max-requests-inflight",
        type=int,
        default=400,
        metavar="N",
        help="concurrent reads (default %(default)s); with fairness, the sum of both limits is shared",
    )
    add(
        "--max-mutating-requests-inflight",
        type=int,
        default=200,
        metavar="N",
        help="concurrent writes (default %(default)s)",
    )


def _add_insight(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("insight", "explorer, tracing and profiling").add_argument
    add(
        "--explorer",
        action="store_true",
        help="serve the explorer of this server on loopback; users log in with a token",
    )
    add(
        "--explorer-port",
        type=port_number,
        default=0,
        metavar="PORT",
        help="port of the explorer on 127.0.0.1 (default: a free one)",
    )
    add(
        "--tracing-config-file",
        type=Path,
        metavar="FILE",
        help="TracingConfiguration: the collector to send spans to, and the sampling rate",
    )
    add(
        "--profiling",
        choices=("true", "false"),
        default="true",
        help="serve /debug to users who may get it (default true)",
    )


def _add_batching(add: Callable[..., Any], of: str, *, batch: int, wait: str, throttled: str) -> None:
    add(
        f"--audit-{of}-truncate-enabled",
        action="store_true",
        help="drop objects from events that are too large",
    )
    add(
        f"--audit-{of}-truncate-max-event-size",
        type=int,
        default=100 << 10,
        metavar="BYTES",
        help="size above which an event is too large (default %(default)s)",
    )
    prefix = f"--audit-{of}-batch"
    add(
        f"{prefix}-buffer-size",
        type=int,
        default=10_000,
        metavar="N",
        help="maximum number of waiting events",
    )
    add(
        f"{prefix}-max-size", type=int, default=batch, metavar="N", help="maximum number of events in a batch"
    )
    add(f"{prefix}-max-wait", default=wait, metavar="DURATION", help="how long to wait for a batch to fill")
    add(
        f"{prefix}-throttle-enable",
        choices=("true", "false"),
        default=throttled,
        help="limit the rate of batches (default %(default)s)",
    )
    add(f"{prefix}-throttle-qps", type=float, default=10.0, metavar="N", help="batches per second")
    add(
        f"{prefix}-throttle-burst",
        type=int,
        default=15,
        metavar="N",
        help="batches that may be sent at once before the limit applies (default %(default)s)",
    )
