"""The options of ``kubewright serve``: what everybody needs, then groups that ``--help=GROUP`` lists."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from kubewright.tools.arguments import serve_access, serve_insight, serve_names
from kubewright.tools.arguments.serve_between import add_delegation, add_proxying
from kubewright.tools.arguments.several import RELEASE, add_storage_arguments, port_number, seconds

STORAGE = "sqlite:///kubewright.db"
EXAMPLES = r"""
kubewright serve --storage memory:// --port 7125 --kubeconfig kubeconfig
kubewright serve --token-file tokens.csv --host 0.0.0.0
kubewright serve --config serve.yaml
"""


def given_words(
    parser: argparse.ArgumentParser, words: Sequence[str], environ: Mapping[str, str]
) -> list[str]:
    """The words of the command line behind those of the environment and of ``--config``. Raises SettingError."""
    from kubewright.tools.arguments.settings import settled

    return settled(parser, words, environ)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    _add_everyday(parser)
    _add_nodes(parser)
    _add_storage(parser)
    _add_lifecycle(parser)
    serve_access.add_arguments(parser)
    _add_api(parser)
    serve_insight.add_arguments(parser)
    add_proxying(parser)
    add_delegation(parser)
    serve_names.add_arguments(parser)


def _add_everyday(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="YAML file with any of these options (port: 7125); KUBEWRIGHT_PORT=7125 works too",
    )
    add(
        "--storage",
        default=STORAGE,
        metavar="URL",
        help="memory://, sqlite:///RELATIVE, sqlite:////ABSOLUTE or etcd://HOST:PORT,HOST:PORT?prefix=/registry "
        "(default %(default)s)",
    )
    add(
        "--host",
        "--bind-address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to bind (default %(default)s)",
    )
    add(
        "--port",
        "--secure-port",
        type=port_number,
        default=6443,
        metavar="PORT",
        help="port to bind, 0 for a free one (default %(default)s)",
    )
    add(
        "--tls",
        default="",
        metavar="auto|off|CERT,KEY",
        help="auto generates a certificate (default: auto; off if only --anonymous-admin is given)",
    )
    add("--kubeconfig", type=Path, metavar="FILE", help="write a kubeconfig for clients; - prints it")
    serve_access.add_everyday(parser)
    add(
        "--packages",
        default="",
        metavar="NAME,NAME",
        help="generated packages to serve (default kubernetes_api)",
    )
    add(
        "--controllers",
        default="",
        metavar="all|none|NAME,NAME",
        help="controllers to run (default all); all,workloads,node simulates a cluster that runs pods",
    )
    add(
        "--log-level",
        default="info",
        choices=("debug", "info", "warning", "error"),
        metavar="LEVEL",
        help="debug, info, warning or error (default %(default)s)",
    )


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("nodes", "simulated nodes, with --controllers all,node").add_argument
    add("--nodes", type=int, metavar="N", help="number of simulated nodes (default 1)")
    template = "a Node manifest with their labels, taints and capacity"
    add("--node-template", type=Path, metavar="FILE", help=template)


def _add_storage(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("storage", "encryption, TLS to etcd, retention")
    add = group.add_argument
    add(
        "--read-only",
        action="store_true",
        help="serve an etcd or a snapshot of one (etcd-snapshot:///FILE) without writing to it",
    )
    add_storage_arguments(group)
    add(
        "--history",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="how long old versions are kept for watches and pagination (default %(default)s)",
    )
    add(
        "--keep-history",
        default="",
        metavar="DURATION",
        help="how long replaced versions are kept for `history`, SQLite only (default: not at all)",
    )
    add(
        "--keep-history-size",
        type=int,
        default=256,
        metavar="MB",
        help="maximum size of what --keep-history keeps (default %(default)s)",
    )
    add(
        "--event-ttl", default="1h", metavar="DURATION", help="how long Events are kept (default %(default)s)"
    )


def _add_lifecycle(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("process", "workers, generated files, timeouts, shutdown").add_argument
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes that answer reads, one of which also writes (default %(default)s)",
    )
    add(
        "--cert-dir",
        type=Path,
        metavar="DIR",
        help="folder for generated certificates, keys and tokens (default: next to the database)",
    )
    add(
        "--request-timeout",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="answer 504 to requests that take longer (default %(default)s)",
    )
    add(
        "--shutdown-delay",
        "--shutdown-delay-duration",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="after a signal, report not ready but keep serving this long",
    )
    add(
        "--shutdown-send-retry-after",
        action="store_true",
        help="after the delay, answer new requests with 429 until running ones have ended",
    )
    add(
        "--livez-grace",
        "--livez-grace-period",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="how long /livez reports ok while the server is starting",
    )


def _add_api(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("api", "release, API versions, admission plugins, networks").add_argument
    add(
        "--emulated-version",
        default=RELEASE,
        metavar="RELEASE",
        help="Kubernetes release to answer as (default %(default)s)",
    )
    add(
        "--runtime-config",
        action="append",
        default=[],
        metavar="KEY=BOOL",
        help="enable or disable api/all, api/beta, GROUP/VERSION or GROUP/VERSION/RESOURCE",
    )
    add(
        "--enable-admission-plugins",
        action="append",
        default=[],
        metavar="NAME,NAME",
        help="admission plugins to run in addition to the default ones",
    )
    add(
        "--disable-admission-plugins",
        action="append",
        default=[],
        metavar="NAME,NAME",
        help="admission plugins not to run",
    )
    for name, state in (("not-ready", "not ready"), ("unreachable", "unreachable")):
        add(
            f"--default-{name}-toleration-seconds",
            type=int,
            default=300,
            metavar="SECONDS",
            help=f"how long pods stay on a node that is {state} (default %(default)s)",
        )
    add(
        "--advertise-address",
        default="",
        metavar="ADDRESS",
        help="address at which pods reach the server (default: --host, unless it is loopback)",
    )
    add(
        "--service-cluster-ip-range",
        default="10.0.0.0/24",
        metavar="NETWORK,NETWORK",
        help="networks for Service addresses, one per IP family (default %(default)s)",
    )
    add(
        "--service-node-port-range",
        default="30000-32767",
        metavar="FIRST-LAST",
        help="range of node ports (default %(default)s)",
    )
