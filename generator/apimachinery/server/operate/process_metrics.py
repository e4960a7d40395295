"""What every program says of its process, by the names that Prometheus' clients agree on, and which release it is."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path

from apimachinery.metrics import Metrics

_PROC = Path("/proc/self")
_BOOT = time.time()


def add_process_metrics(metrics: Metrics) -> None:
    """Adds them; those that a system does not tell are left out."""
    metrics.gauge(
        "process_cpu_seconds_total",
        "CPU time in seconds, user and system.",
        time.process_time,
        kind="counter",
    )
    metrics.gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.", lambda: _BOOT)
    if sys.platform != "win32":
        import resource

        metrics.gauge(
            "process_max_fds", "File descriptors that may be open.",
            lambda: _unlimited(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        )  # fmt: skip
        metrics.gauge(
            "process_virtual_memory_max_bytes", "Virtual memory that may be used.",
            lambda: _unlimited(resource.getrlimit(resource.RLIMIT_AS)[0]),
        )  # fmt: skip
    if (_PROC / "fd").is_dir():
        metrics.gauge(
            "process_open_fds",
            "File descriptors that are open.",
            lambda: sum(1 for _ in (_PROC / "fd").iterdir()),
        )
        for name, text, field in (("receive", "Bytes received", 0), ("transmit", "Bytes sent", 8)):
            metrics.gauge(
                f"process_network_{name}_bytes_total", f"{text} by all of the network namespace.",
                partial(_network, field), kind="counter",
            )  # fmt: skip
        metrics.gauge("process_resident_memory_bytes", "Resident memory.", lambda: _pages(1))
        metrics.gauge("process_virtual_memory_bytes", "Virtual memory.", lambda: _pages(0))
    info = sys.version_info
    metrics.asked(
        "python_info", "The interpreter.", ("implementation", "major", "minor", "patchlevel", "version"),
        lambda: [((sys.implementation.name, str(info.major), str(info.minor), str(info.micro),
                   sys.version.split()[0]), 1)],
    )  # fmt: skip


def add_build_info(metrics: Metrics, release: str) -> None:
    """Adds the release that the server answers as (``1.36``)."""
    major, _, minor = release.partition(".")
    metrics.asked(
        "kubernetes_build_info", "The release that the server answers as.",
        ("build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor",
         "platform"),
        lambda: [(("", "python", "", "", f"v{release}.0", "", major, minor, sys.platform), 1)],
    )  # fmt: skip
    metrics.asked(
        "version_info", "The release that the server emulates.",
        ("binary", "component", "emulation", "min_compat"),
        lambda: [((f"{release}.0", "kube", release, release), 1)],
    )  # fmt: skip


def _network(field: int) -> float:
    lines = (_PROC / "net" / "dev").read_text().splitlines()[2:]
    return float(sum(int(line.partition(":")[2].split()[field]) for line in lines))


def _unlimited(value: int) -> float:
    return 2.0**64 if value < 0 or value >= 2**63 - 1 else float(value)


def _pages(field: int) -> float:
    return float((_PROC / "statm").read_text().split()[field]) * os.sysconf("SC_PAGE_SIZE")
