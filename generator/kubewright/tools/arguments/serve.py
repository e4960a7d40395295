"""The options of ``kubewright serve``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments import serve_access, serve_insight, serve_names
from kubewright.tools.arguments.serve_between import add_delegation, add_proxying
from kubewright.tools.arguments.several import (
    RELEASE,
    add_storage_arguments,
    port_number,
    seconds,
)

STORAGE = "sqlite:///kubewright.db"
EXAMPLES = r"""
kubewright serve --storage memory:// --port 7125 --kubeconfig kubeconfig
kubewright serve --tls auto --token-file tokens.csv --host 0.0.0.0
kubewright serve --packages messaging_api --delegate in-cluster --host 0.0.0.0 --service messaging/api
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add("--storage", default=STORAGE, metavar="URL",
        help="memory://, sqlite:///RELATIVE, sqlite:////ABSOLUTE or etcd://HOST:PORT,HOST:PORT?prefix=/registry "
             "(default %(default)s)")  # fmt: skip
    add("--read-only", action="store_true", help="only show what is in an etcd, or in a snapshot of one "
        "(etcd-snapshot:///FILE), a kube-apiserver's too")  # fmt: skip
    add_storage_arguments(parser)
    add("--host", "--bind-address", default="127.0.0.1", help="address to bind (default %(default)s)")
    port = "port to bind, 0 for a free one (default %(default)s)"
    add("--port", "--secure-port", type=port_number, default=6443, help=port)
    add(
        "--tls",
        default="",
        metavar="auto|off|CERT,KEY",
        help="serve https, with a certificate made here or given (default: auto; off with --anonymous-admin alone)",
    )
    add(
        "--cert-dir",
        type=Path,
        metavar="DIR",
        help="where certificates, keys and tokens that are made here are kept",
    )
    add("--kubeconfig", type=Path, metavar="FILE", help="write the kubeconfig there; - prints it")
    serve_access.add_arguments(parser)
    serve_insight.add_arguments(parser)
    add_proxying(parser)
    add_delegation(parser)
    serve_names.add_arguments(parser)
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
        help="loops that run in the process (default all); all,workloads,node is a cluster that runs pods",
    )
    add("--enable-admission-plugins", action="append", default=[], metavar="NAME,NAME",
        help="admission plugins to run besides those that are on by default")  # fmt: skip
    add("--disable-admission-plugins", action="append", default=[], metavar="NAME,NAME",
        help="admission plugins not to run")  # fmt: skip
    for what, words in (("not-ready", "not ready"), ("unreachable", "out of reach")):
        add(f"--default-{what}-toleration-seconds", type=int, default=300, metavar="SECONDS",
            help=f"how long pods stay on nodes {words}, unless they say it (default %(default)s)")  # fmt: skip
    add("--advertise-address", default="", metavar="ADDRESS",
        help="where pods reach the server (default: --host, unless that is loopback)")  # fmt: skip
    add(
        "--event-ttl", default="1h", metavar="DURATION", help="how long events are kept (default %(default)s)"
    )
    add("--service-cluster-ip-range", default="10.0.0.0/24", metavar="NETWORK,NETWORK",
        help="where addresses of services come from; one of each family (default %(default)s)")  # fmt: skip
    add("--service-node-port-range", default="30000-32767", metavar="FIRST-LAST",
        help="where node ports of services come from (default %(default)s)")  # fmt: skip
    add("--runtime-config", action="append", default=[], metavar="KEY=BOOL",
        help="enable or disable api/all, api/beta, GROUP/VERSION or GROUP/VERSION/RESOURCE")  # fmt: skip
    add("--emulated-version", default=RELEASE, help="Kubernetes release to answer as (default %(default)s)")
    add("--request-timeout", type=seconds, default=60.0, metavar="SECONDS", help="default %(default)s")
    add("--shutdown-delay", "--shutdown-delay-duration", type=seconds, default=0.0, metavar="SECONDS",
        help="go on answering, but not ready, this long after a signal")  # fmt: skip
    add("--shutdown-send-retry-after", action="store_true",
        help="after that send whoever comes elsewhere (429), until nothing is under way")  # fmt: skip
    add("--livez-grace", "--livez-grace-period", type=seconds, default=0.0, metavar="SECONDS",
        help="how long /livez forgives a start that is not finished")  # fmt: skip
    add("--history", type=float, default=300.0, metavar="SECONDS", help="how long old versions are kept")
    add("--log-level", default="info", choices=("debug", "info", "warning", "error"))
