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
    group = parser.add_argument_group("aggregation", "requests that are forwarded to other servers")
    add: Callable[..., Any] = group.add_argument
    add(
        "--proxy-client-cert-file",
        type=Path,
        metavar="FILE",
        help="client certificate for aggregated servers (default: a generated one)",
    )
    add("--proxy-client-key-file", type=Path, metavar="FILE", help="key of --proxy-client-cert-file")
    add(
        "--resolve-service",
        action="append",
        default=[],
        metavar="NS/NAME=HOST:PORT",
        help="address to use for a Service, instead of its ClusterIP; may be repeated",
    )
    add(
        "--proxy-allow-network",
        action="append",
        default=[],
        metavar="CIDR",
        help="network that services/proxy, pods/proxy and nodes/proxy may reach; may be repeated (default: none)",
    )


def add_delegation(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = parser.add_argument_group(
        "delegation", "serve behind kube-apiserver, as an aggregated API server"
    )
    add = group.add_argument
    add(
        "--delegate",
        metavar="KUBECONFIG|in-cluster",
        help="cluster that authenticates and authorizes requests, and whose proxy to trust",
    )
    add(
        "--authentication-kubeconfig",
        metavar="KUBECONFIG",
        help="server of token reviews (default: that of --delegate)",
    )
    add(
        "--authorization-kubeconfig",
        metavar="KUBECONFIG",
        help="server of access reviews (default: that of --delegate)",
    )
    add(
        "--authorization-always-allow-paths",
        default=",".join(ALWAYS_ALLOWED),
        metavar="PATH,PATH",
        help="paths that need no authorization (default %(default)s)",
    )
    add(
        "--service",
        default="",
        metavar="NAMESPACE/NAME",
        help="Service by which the cluster reaches this server; its certificate is issued for it",
    )
    add(
        "--print-manifest",
        action="store_true",
        help="print the APIServices, the Service and the roles to create in the cluster, and exit",
    )
    add(
        "--external-name",
        default="",
        metavar="HOST",
        help="in the manifest: make the Service an alias of this host (default: it selects pods)",
    )
