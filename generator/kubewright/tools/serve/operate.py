"""The options of ``kubewright serve`` for those who run it; their names are kube-apiserver's.

Audit: a policy says what is kept; a log file, a webhook, or both take it. A policy without either, or the other way
round, is refused at the start, as an operator would believe that something is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from apimachinery.http.outgoing import Outgoing
from apimachinery.metrics import Metrics
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.operate.audit.audit import Audit, AuditBackend, Decode
from apimachinery.server.operate.audit.batches import AuditWebhook, Batches, Batching, log_delivery
from apimachinery.server.operate.audit.log_file import LogFile, Rotation
from apimachinery.server.operate.audit.policy import AuditPolicy, read_policy
from apimachinery.server.operate.audit.truncation import Truncated
from apimachinery.server.operate.tracing import Tracing, otlp_tracing
from kubewright.tools.serve.remote import duration, endpoint, read_configuration

MakeAudit = Callable[[Metrics, Outgoing, Decode], Audit]


def make_tracing(options: argparse.Namespace) -> Tracing | None:
    """Traces as the file says, None without one. Raises OptionError."""
    path = options.tracing_config_file
    if path is None:
        return None
    value = read_configuration(path, "TracingConfiguration")
    known = {"apiVersion", "kind", "endpoint", "samplingRatePerMillion"}
    if unknown := sorted(value.keys() - known):
        raise OptionError(f"{path}: {unknown[0]}: no such field; there are {', '.join(sorted(known))}")
    endpoint, rate = value.get("endpoint") or "localhost:4317", value.get("samplingRatePerMillion") or 0
    if not isinstance(endpoint, str) or not endpoint.rpartition(":")[2].isdecimal():
        raise OptionError(f"{path}: endpoint: {endpoint!r} is not HOST:PORT")
    if not isinstance(rate, int) or not 0 <= rate <= 1_000_000:
        raise OptionError(f"{path}: samplingRatePerMillion: {rate!r} is not a number from 0 to 1000000")
    try:
        return otlp_tracing(endpoint, rate, options.emulated_version)
    except ImportError as fault:
        raise OptionError(f"--tracing-config-file needs {fault.name}: install kubewright[tracing]") from None


def make_audit(options: argparse.Namespace) -> tuple[MakeAudit | None, list[str]]:
    """What makes the audit on a server, None for none, and lines for the operator. Raises OptionError, PolicyError,
    OSError."""
    path = options.audit_policy_file
    wanted = options.audit_log_path or options.audit_webhook_config_file
    if path is None:
        if wanted:
            raise OptionError("--audit-policy-file is missing: without a policy no event is kept")
        return None, []
    if not wanted:
        raise OptionError(
            "--audit-policy-file: give --audit-log-path or --audit-webhook-config-file too, or events go nowhere"
        )
    policy = read_policy(path)
    receiver, backoff = None, duration(options.audit_webhook_initial_backoff)
    if options.audit_webhook_config_file:
        receiver = replace(endpoint(options.audit_webhook_config_file), seconds=30.0)
    batching = {of: _batching(options, of) for of in ("log", "webhook")}
    if options.audit_log_path and options.audit_log_path != "-":
        _check_log(Path(options.audit_log_path))

    def make(metrics: Metrics, outgoing: Outgoing, decode: Decode) -> Audit:
        lost = metrics.counter("apiserver_audit_error_total", "Audit events that were lost.", "plugin")
        backends: list[AuditBackend] = []
        if options.audit_log_path:
            file = _log_file(options, lost.at("log"))
            if options.audit_log_mode == "batch":
                backends.append(_LogInBatches(file, batching["log"], lost.at("log")))
            else:
                backends.append(file)
        if receiver is not None:
            webhook = AuditWebhook(receiver, outgoing.send, backoff=backoff)
            waiting = batching["webhook"]
            if options.audit_webhook_mode == "blocking":
                waiting = replace(waiting, batch=1, wait_seconds=0.0, qps=0.0)
            backends.append(Batches("webhook", webhook.deliver, waiting, lost.at("webhook")))
        for number, backend in enumerate(backends):
            if getattr(options, f"audit_{backend.name}_truncate_enabled"):
                most = getattr(options, f"audit_{backend.name}_truncate_max_event_size")
                backends[number] = Truncated(backend, most, lost.at(backend.name))
        return Audit(policy, backends, metrics, decode)

    return make, _lines(path, policy)


def _check_log(path: Path) -> None:
    """Checks at the start that a log can be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab"):
        pass


def _lines(path: Path, policy: AuditPolicy) -> list[str]:
    lines = [f"audit: by {path}, {len(policy.rules)} rules"]
    lines += [f"audit: warning: {path}: {text}; use the level Metadata for it" for text in policy.exposures()]
    return lines


def _log_file(options: argparse.Namespace, lost: Any) -> LogFile:
    rotation = Rotation(
        max(1, options.audit_log_maxsize) if options.audit_log_maxsize else 100,
        options.audit_log_maxbackup,
        options.audit_log_maxage,
        options.audit_log_compress,
    )
    return LogFile(
        options.audit_log_path,
        rotation,
        lost,
        strict=options.audit_log_mode == "blocking-strict",
        legacy=options.audit_log_format == "legacy",
    )


def _batching(options: argparse.Namespace, of: str) -> Batching:
    def value(name: str) -> Any:
        return getattr(options, f"audit_{of}_batch_{name}")

    prefix = f"--audit-{of}-batch"
    buffer, batch, burst = value("buffer_size"), value("max_size"), value("throttle_burst")
    if buffer < 1 or batch < 1 or burst < 1:
        raise OptionError(f"{prefix}-buffer-size, -max-size and -throttle-burst are 1 at least")
    if batch > buffer:
        raise OptionError(f"{prefix}-max-size {batch}: the buffer holds {buffer} only")
    throttled = value("throttle_enable") == "true"
    qps = value("throttle_qps") if throttled else 0.0
    if throttled and qps <= 0:
        raise OptionError(f"{prefix}-throttle-qps is above 0; or give {prefix}-throttle-enable false")
    return Batching(buffer, batch, duration(value("max_wait")), qps, burst)


class _LogInBatches(Batches):
    """A log file that is written by batches, on a thread."""

    def __init__(self, file: LogFile, batching: Batching, lost: Any) -> None:
        super().__init__("log", log_delivery(file.write), batching, lost)
        self._file = file

    async def close(self, seconds: float = 30.0) -> None:
        await super().close(seconds)
        await self._file.close()
