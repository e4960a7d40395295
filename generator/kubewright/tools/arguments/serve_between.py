"""Options of ``kubewright serve``: servers behind it, and one that it stands behind."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

ALWAYS_ALLOWED = ("/healthz", "/readyz", "/livez")
"""That of ``access.delegation``."""


def add_proxying(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = parser.add_argument_group("aggregation", "requests that are passed on to other servers")
    add: Callable[..., Any] = group.add_argument
    add(
        "--proxy-client-cert-file",
        type=Path,
        metavar="FILE",
        help="client certificate that is shown to aggregated servers (default: a generated one)",
    )
    add("--proxy-client-key-file", type=Path, metavar="FILE", help="key of --proxy-client-cert-file")
    add(
        "--resolve-service",
        action="append",
        default=[],
        metavar="NS/NAME=HOST:PORT",
        help="address of a Service, in place of what its object says; may be repeated",
    )
    add(
        "--proxy-allow-network",
        action="append",
        default=[],
        metavar="CIDR",
        help="pass requests for services/proxy, pods/proxy and nodes/proxy on to addresses of this network; may be "
        "repeated (default: to none)",
    )


def add_delegation(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = parser.add_argument_group(
        "delegation", "serve behind a kube-apiserver, as an aggregated API server"
    )
    add = group.add_argument
    add(
        "--delegate",
        metavar="KUBECONFIG|in-cluster",
        help="ask this cluster who a user is, what they may do, and which proxy to trust",
    )
    add("--authentication-kubeconfig", metavar="KUBECONFIG", help="for token reviews, if not --delegate's")
    add("--authorization-kubeconfig", metavar="KUBECONFIG", help="for access reviews, if not --delegate's")
    add(
        "--authorization-always-allow-paths",
        default=",".join(ALWAYS_ALLOWED),
        metavar="PATH,PATH",
        help="paths that are open to all (default %(default)s)",
    )
    add(
        "--service",
        default="",
        metavar="NAMESPACE/NAME",
        help="the Service by which the cluster reaches this server; its certificate names it",
    )
    add(
        "--print-manifest",
        action="store_true",
        help="print the APIServices, the Service and the roles to create in the cluster, and end",
    )
    add(
        "--external-name",
        default="",
        metavar="HOST",
        help="in the manifest: the Service is a name for this host (default: it selects pods)",
    )
