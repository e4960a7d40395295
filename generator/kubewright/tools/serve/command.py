"""``kubewright serve``: an API server for generated packages and for the CRDs that are made while it runs."""

from __future__ import annotations

import argparse
import asyncio
import errno
import ipaddress
import json
import logging
import os
import shlex
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from apimachinery.access.delegation import BadConfiguration
from apimachinery.http.outgoing import CallFailed
from apimachinery.http.protocol import ConnectionLimits
from apimachinery.http.tls import ensure_certificate
from apimachinery.http.workers import collected_seldom
from apimachinery.server.admission.plugins import parse_plugins
from apimachinery.server.catalog.options import (
    ApiOptions,
    OptionError,
    parse_controllers,
    parse_release,
    parse_runtime_config,
)
from apimachinery.server.catalog.runtime_config import known_runtime_config
from apimachinery.server.fairness.fairness import ServerLimits
from apimachinery.server.network.proxy_identity import ProxyIdentity
from apimachinery.server.operate.kubeconfig import kubeconfig
from apimachinery.server.operate.tracing import Tracing
from apimachinery.server.process import BuildApi, Server, ServerOptions
from apimachinery.server.write.allocation_ranges import parse_networks, parse_ports
from apimachinery.storage.following.board import RevisionBoard
from apimachinery.storage.interface import StorageError
from apimachinery.storage.url import StorageUrlError, is_etcd, is_snapshot, storage_path
from kubewright.diagnostics import printable
from kubewright.tools.envtest.image import renew_kept
from kubewright.tools.inputs.storages import read_encryption, storage_options
from kubewright.tools.serve import delegation, operate, proxying, simulated
from kubewright.tools.serve.access import Granted, grant, has_credentials
from kubewright.tools.serve.delegation import Delegation
from kubewright.tools.serve.ending import on_signals
from kubewright.tools.serve.exploring import ServedExplorer
from kubewright.tools.serve.files import write_for_option
from kubewright.tools.serve.https import browser_rules, https
from kubewright.tools.serve.names import said, settle
from kubewright.tools.serve.remote import duration
from kubewright.tools.serve.workers import Processes, check_workers, end_with_writer, number_lines, until

SWITCH_SECONDS = 0.0005
"""The writing thread must not wait 5 ms (Python's default) for the interpreter after each commit; and the loop, which
takes it back from a thread inside a long call each time, must not have to give it away ten times a turn."""
_UNUSABLE = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
"""Why an address cannot be bound."""


@dataclass(frozen=True, slots=True)
class _Security:
    """How clients reach the server and prove who they are."""

    granted: Granted
    tls: ssl.SSLContext | None = None
    authority: bytes = b""
    delegation: Delegation | None = None


def run(options: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM. Returns the exit code: 2 for options that cannot be."""
    _log_to_stderr(options.log_level)
    with ExitStack() as ends:
        return _run(options, ends)


def _run(options: argparse.Namespace, ends: ExitStack) -> int:
    try:
        settle(options)
        storage_path(options.storage)
        if options.print_manifest:
            print(_manifest(options, ends), end="")
            return 0
        if options.read_only and not (is_etcd(options.storage) or is_snapshot(options.storage)):
            raise OptionError(
                f"--read-only: {options.storage} is this server's own; it is for etcd and its snapshots"
            )
        if options.encryption_provider_config is not None:
            read_encryption(options.encryption_provider_config)
        plugins = parse_plugins(options.enable_admission_plugins, options.disable_admission_plugins)
        packages = _packages(options)
        chosen = parse_controllers(_controllers(options), accounts="ServiceAccount" in plugins)
        api_options = ApiOptions(
            packages=packages,
            controllers=chosen,
            node=simulated.behaviour_of(options, chosen),
            proxy_networks=proxying.allowed_networks(options),
            runtime_config=known_runtime_config(parse_runtime_config(options.runtime_config), packages),
            emulated_version=parse_release(options.emulated_version),
            service_networks=_checked(
                "--service-cluster-ip-range", parse_networks, options.service_cluster_ip_range
            ),
            node_ports=_checked("--service-node-port-range", parse_ports, options.service_node_port_range),
            port=options.port or 6443,
            plugins=plugins,
            toleration_seconds=(
                options.default_not_ready_toleration_seconds,
                options.default_unreachable_toleration_seconds,
            ),
            event_seconds=_event_seconds(options.event_ttl),
            advertised=_advertised(options),
        )
        folder = _kept_folder(options, ends)
        if folder.is_dir() and not options.cert_dir:
            folder.chmod(0o700)  # of a version that left it open
        for line in said(options):
            print(printable(f"kubewright serve: {line}"), file=sys.stderr)
        security = _security(options, folder)
        api_options = replace(api_options, root_authority=security.authority.decode())
        audit, lines = operate.make_audit(options)
        security.granted.summary.extend(lines)
        tracing = operate.make_tracing(options)
        processes = _processes(options, api_options, security, folder)
    except (OptionError, ValueError, StorageUrlError, OSError) as fault:
        # Every reader of files and options raises a ValueError that names file or option.
        print(printable(f"kubewright serve: error: {fault}"), file=sys.stderr)
        return 2
    try:
        code: int = _event_loop()(_serve(options, api_options, security, folder, audit, tracing, processes))
        renew_kept()
        return code
    except (StorageError, StorageUrlError, OptionError, CallFailed, BadConfiguration, OSError) as fault:
        print(printable(f"kubewright serve: error: {fault}"), file=sys.stderr)
        return 2


def _processes(
    options: argparse.Namespace, api_options: ApiOptions, security: _Security, folder: Path
) -> Processes | None:
    reader = partial(_run_reader, options, api_options, security, folder)
    return Processes.of(check_workers(options), api_options.packages, reader)


def _advertised(options: argparse.Namespace) -> str:
    """The address that pods are told; empty where they cannot reach the server."""
    given = str(options.advertise_address)
    try:
        address = ipaddress.ip_address(given or options.host)
    except ValueError:
        if given:
            raise OptionError(f"--advertise-address: {given!r} is no IP address") from None
        return ""
    if given and (address.is_loopback or address.is_unspecified):
        raise OptionError(f"--advertise-address: nobody else reaches {given}")
    return "" if address.is_loopback or address.is_unspecified else str(address)


def _event_seconds(text: str) -> float:
    seconds = duration(text)
    if seconds <= 0:
        raise OptionError(f"--event-ttl {text}: give a time of more than nothing, such as 1h")
    return seconds


def _checked(option: str, parse: Callable[[str], object], text: str) -> str:
    """The text of an option that can be read. Raises OptionError."""
    try:
        parse(text)
    except ValueError as fault:
        raise OptionError(f"{option}: {fault}") from None
    return text


def _packages(options: argparse.Namespace) -> tuple[str, ...]:
    names = options.packages or ("" if delegation.delegates(options) else "kubernetes_api")
    packages = tuple(name.strip() for name in names.split(",") if name.strip())
    if not packages:
        raise OptionError("--delegate needs --packages: the groups that are served behind the cluster")
    return packages


def _controllers(options: argparse.Namespace) -> str:
    """Behind a cluster its own controllers do the work."""
    return options.controllers or ("none" if delegation.delegates(options) else "all")


def _manifest(options: argparse.Namespace, ends: ExitStack) -> str:
    from apimachinery.server.catalog.served_package import ServedPackage

    if not options.packages:
        raise OptionError("--print-manifest needs --packages")
    served = [
        (group.name, version)
        for name in _packages(options)
        for group in ServedPackage(name).groups
        for version in group.versions
    ]
    certificate, _ = _certificate(options, _kept_folder(options, ends), options.tls or "auto")
    return delegation.manifest(options, served, certificate.read_bytes())


def _delegated(options: argparse.Namespace, folder: Path) -> _Security:
    found = delegation.read(options)
    if options.tls == "off":
        raise OptionError("--tls off: a cluster proxies to https only; leave it out, or give CERT,KEY")
    certificate, key = _certificate(options, folder, options.tls or "auto")
    authorities = [options.client_ca_file] if options.client_ca_file else []
    context, _ = https(options, certificate, key, authorities)
    found.tls = context
    access_options = found.cluster.options(
        found.trust, found.outgoing, anonymous=options.anonymous_auth == "true"
    )
    granted = Granted(
        access_options, summary=[f"who may do what is asked of {found.cluster.authorization.url}"]
    )
    return _Security(granted, context, certificate.read_bytes(), found)


def _certificate(options: argparse.Namespace, folder: Path, tls: str) -> tuple[Path, Path]:
    if tls == "auto":
        names = delegation.certificate_names(options)
        return ensure_certificate(options.cert_dir or folder, options.host, *names)
    first, found, second = tls.partition(",")
    if not found:
        raise OptionError(f"--tls {tls}: use auto, off, or CERT,KEY")
    return Path(first), Path(second)


def _security(options: argparse.Namespace, folder: Path) -> _Security:
    if delegation.delegates(options):
        return _delegated(options, folder)
    loopback = _is_loopback(options.host)
    if options.anonymous_admin and not loopback:
        raise OptionError(
            f"--host {options.host}: whoever reaches this address could do anything; leave out --anonymous-admin"
        )
    if not loopback and not has_credentials(options):
        raise OptionError(
            f"--host {options.host}: others can reach this address, so say who they are; "
            "give --token-file and --tls (or --client-ca-file), or bind 127.0.0.1"
        )
    granted = grant(options, folder)
    tls = options.tls
    if not tls:
        # kubectl sends tokens and certificates over https alone.
        tls = "auto" if granted.token or has_credentials(options) else "off"
    if tls == "off":
        if not options.anonymous_admin and (options.kubeconfig or not options.token_file):
            raise OptionError(
                "--tls off: kubectl sends no token over http, so a kubeconfig would be of no use; leave --tls out, "
                "or give --anonymous-admin"
            )
        if not loopback:
            raise OptionError(
                f"--host {options.host}: tokens would be sent in the clear; give --tls, or bind 127.0.0.1"
            )
        return _Security(granted)
    certificate, key = _certificate(options, folder, tls)
    context, reloads = https(options, certificate, key, granted.authorities)
    granted.reloads.extend(reloads)
    return _Security(granted, context, certificate.read_bytes())


def _kept_folder(options: argparse.Namespace, ends: ExitStack) -> Path:
    """Where keys and tokens that are made here are kept. Without a database they end with the server."""
    if options.cert_dir:
        return Path(options.cert_dir)
    database = storage_path(options.storage)
    if is_etcd(options.storage):
        # Kept, and found by every server that is started here: a token of one is good for all.
        return Path("kubewright-etcd.certs")
    if database is None:
        folder = tempfile.TemporaryDirectory(prefix="kubewright-certs-", ignore_cleanup_errors=True)
        return Path(ends.enter_context(folder))
    return database.with_name(f"{database.name}.certs")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(
    options: argparse.Namespace,
    api_options: ApiOptions,
    security: _Security,
    folder: Path,
    audit: operate.MakeAudit | None,
    tracing: Tracing | None,
    processes: Processes | None,
) -> int:
    found = security.delegation
    if found is not None:
        api_options = replace(api_options, namespaces=found.cluster.namespaces(found.outgoing))
        try:
            await found.cluster.prepare(found.trust, found.outgoing, delegation.WAIT_SECONDS)
        except BaseException:
            await found.outgoing.close()
            raise
    server_options = _server_options(options, api_options, security, folder, tracing)
    server = _server(server_options, security, api_options, audit, processes)
    asked = asyncio.Event()
    on_signals(asked.set)
    sys.setswitchinterval(SWITCH_SECONDS)
    await _start(server, options)
    explorer = ServedExplorer.of(options, security.authority, folder)
    if explorer is not None:
        await explorer.start(server.url)
    following = None
    if found is None:
        _give_kubeconfig(options, server, security, folder)
    else:
        following = asyncio.create_task(found.cluster.follow(found.trust, found.outgoing))
        print(*security.granted.summary, f"serving on {server.url}", sep="\n", flush=True)
    await asked.wait()
    if following is not None:
        following.cancel()
    if explorer is not None:
        await explorer.stop()
    await server.stop()
    return 0


def _server(
    options: ServerOptions,
    security: _Security,
    api_options: ApiOptions,
    audit: operate.MakeAudit | None,
    processes: Processes | None,
) -> Server:
    """This process's server."""
    access, build = security.granted.options, _build(api_options)
    if processes is None:
        return Server(options, access, build, audit)
    from apimachinery.server.assembly.leading import LeadingServer

    spawn = processes.nursery.spawn
    return LeadingServer(options, access, build, audit, processes.workers, processes.board, spawn)


def _build(api_options: ApiOptions) -> BuildApi:
    from apimachinery.server.assembly.api import build_api

    return lambda backend: build_api(backend, api_options)


def _run_reader(
    options: argparse.Namespace,
    api_options: ApiOptions,
    security: _Security,
    folder: Path,
    board: RevisionBoard,
    number: int,
    door: socket.socket,
    sockets: Sequence[socket.socket],
) -> int:
    """Serves as a reader of this server until the writer ends it, in a process of its own."""
    from apimachinery.server.assembly.leading import share_of
    from apimachinery.server.assembly.reader import ReaderServer

    async def serve() -> int:
        asked = asyncio.Event()
        given = _server_options(options, api_options, security, folder, None)
        server = ReaderServer(
            replace(given, in_flight=share_of(given.in_flight, options.workers, writes=False)),
            security.granted.options,
            _build(api_options),
            board,
            door,
            sockets,
            asked=asked.set,
            lost=end_with_writer,
        )
        sys.setswitchinterval(SWITCH_SECONDS)
        await _start(server, options)
        await until(asked)
        await server.stop()
        return 0

    number_lines(number)
    code: int = _event_loop()(serve())
    return code


def _server_options(
    options: argparse.Namespace,
    api_options: ApiOptions,
    security: _Security,
    folder: Path,
    tracing: Tracing | None,
) -> ServerOptions:
    from apimachinery.server.catalog.stored_form import StoredForms

    delegated = security.delegation is not None
    return ServerOptions(
        storage=options.storage,
        storage_options=storage_options(options, api_options),
        host=options.host,
        port=options.port,
        tls=security.tls,
        limits=ConnectionLimits(request_seconds=options.request_timeout),
        in_flight=ServerLimits(options.max_requests_inflight, options.max_mutating_requests_inflight),
        fairness=options.enable_priority_and_fairness == "true",
        livez_grace_seconds=options.livez_grace,
        shutdown_delay_seconds=options.shutdown_delay,
        send_retry_after=options.shutdown_send_retry_after,
        reloads=security.granted.reloads,
        tracing=tracing,
        profiling=options.profiling == "true",
        audit_policy=options.audit_policy_file,
        history_seconds=options.history,
        services=proxying.given_services(options),
        identity=ProxyIdentity() if delegated else proxying.proxy_identity(options, folder),
        judge=StoredForms(api_options).fault,
        browsers=browser_rules(options),
    )


async def _start(server: Server, options: argparse.Namespace) -> None:
    try:
        with collected_seldom():
            await server.start()
    except OSError as fault:
        if fault.errno not in _UNUSABLE:
            raise
        raise OptionError(
            f"--host {options.host} --port {options.port}: {os.strerror(fault.errno)}; --port 0 takes a free one"
        ) from None


def _give_kubeconfig(options: argparse.Namespace, server: Server, security: _Security, folder: Path) -> None:
    """Writes or prints the kubeconfig, and says what is open to whom and what to do next."""
    granted = security.granted
    text = kubeconfig(server.url, authority=security.authority, token=granted.token)
    if str(options.kubeconfig) == "-":
        print(text, end="", flush=True)
        return
    print(*granted.summary, sep="\n")
    if "node" not in parse_controllers(_controllers(options)) and not options.read_only:
        print(
            "pods run nowhere, and Deployments make none; --controllers all,workloads,node runs them"
            " on a simulated node"
        )
    if not (security.tls or options.anonymous_admin):
        print(
            f"serving on {server.url}; kubectl sends no tokens over http: there is no kubeconfig", flush=True
        )
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = Path(options.kubeconfig or folder / "kubeconfig").absolute()
    write_for_option("--kubeconfig", path, text.encode())
    print(f"serving on {server.url}; export KUBECONFIG={shlex.quote(str(path))}")
    print("next: kubectl get namespaces", flush=True)


def _event_loop() -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    _standard = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        shown: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        shown.update({k: v for k, v in record.__dict__.items() if k not in self._standard})
        if record.exc_info:
            shown["exception"] = self.formatException(record.exc_info)
        return json.dumps(shown, default=str)


def _log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    root = logging.getLogger("kubewright")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
