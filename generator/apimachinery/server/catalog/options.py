"""What an operator chooses of the API: which groups are served, as which release, which controllers run.

``api.build_api(backend, options)`` makes an API of it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from apimachinery.meta.release import RELEASE

CONTROLLERS = (
    "namespace",
    "gc",
    "clusterrole-aggregation",
    "csrsigning",
    "resourcequota",
    "serviceaccount-token",
    "pvc-protection",
    "pv-protection",
    "vac-protection",
    "validatingadmissionpolicy-status",
)
ACCOUNTS = ("serviceaccount", "root-ca-cert-publisher")
"""Loops that ``all`` means where the admission plugin ServiceAccount is on, as its pods need what they make."""
WORKLOADS = (
    "deployment",
    "replicaset",
    "replicationcontroller",
    "statefulset",
    "daemonset",
    "job",
    "ttl-after-finished",
    "cronjob",
    "endpointslice",
    "endpoint",
    "endpointslicemirroring",
    "horizontalpodautoscaling",
    "disruption",
    "nodelifecycle",
    "taint-eviction",
    "podgc",
)
"""Those of kube-controller-manager that make pods and look after them: ``workloads`` means all of them."""
FOR_SUITES = ("gc-known-owners",)
"""In place of ``gc`` for suites that refer to owners which never existed: those count as alive."""
SIMULATIONS = ("node", "scheduler")
"""Loops that ``all`` does not mean: they stand for machines that a server has not."""
OLDEST, NEWEST = "1.25", "1.37"
"""The releases that the packages know: earlier ones served what nothing here describes."""


class OptionError(ValueError):
    """A choice that cannot be; the text names the option, the offender and what can be."""


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """``packages`` are the generated packages to serve; ``runtime_config`` is kube-apiserver's: ``api/all``,
    ``api/beta``, ``GROUP/VERSION`` or ``GROUP/VERSION/RESOURCE`` → whether it is served."""

    packages: tuple[str, ...] = ("kubernetes_api",)
    controllers: frozenset[str] = frozenset(CONTROLLERS)
    runtime_config: Mapping[str, bool] = field(default_factory=dict)
    emulated_version: str = RELEASE
    plugins: frozenset[str] | None = None
    """Names of the admission plugins that run (``admission.plugins``); None for those that are on by default."""
    toleration_seconds: tuple[int, int] = (300, 300)
    """How long pods stay on nodes that are not ready and out of reach, where they do not say it."""
    service_networks: str = "10.0.0.0/24"
    """Where addresses of services come from: a network, or one of each family with a comma, first choice first."""
    node_ports: str = "30000-32767"
    event_seconds: float = 3600.0
    """How long events are kept after they were written last."""
    root_authority: str = ""
    """PEM of the authority by which pods know the server."""
    advertised: str = ""
    """The address at which the network reaches the server; empty where it does not."""
    port: int = 6443
    """Where the server can be reached, as the Service ``kubernetes`` says it."""
    proxy_networks: tuple[str, ...] = ()
    """Networks (CIDR) of addresses that services, pods and nodes may name for their ``proxy``; none by default."""
    namespaces: Callable[[str], Awaitable[str | None]] | None = None
    """Asks another server for the phase of a namespace, where the namespaces are there."""
    node: object = None
    """How the simulated node behaves (``node.behaviour.NodeBehaviour``); None for as it does by itself."""


def parse_release(text: str) -> str:
    """A release to answer as, ``1.25`` to ``NEWEST``; a leading ``v`` is dropped. Raises OptionError."""
    release = re.fullmatch(r"v?1\.(\d{1,3})", text)
    first, newest = (int(each.partition(".")[2]) for each in (OLDEST, NEWEST))
    if release is None or not first <= int(release[1]) <= newest:
        raise OptionError(f"--emulated-version: {text!r} is none of {OLDEST} to {NEWEST}")
    return f"1.{release[1]}"


def parse_controllers(text: str, *, accounts: bool = False) -> frozenset[str]:
    """``all``, ``none``, or names joined by commas (``all,workloads,node`` too); ``-NAME`` leaves one out.
    ``accounts``: the plugin ServiceAccount is on. Raises OptionError."""
    if text in ("none", ""):
        return frozenset()
    given = [name.strip() for name in text.split(",")]
    names = frozenset(name for name in given if not name.startswith("-"))
    left_out = frozenset(name[1:] for name in given if name.startswith("-"))
    if {"all", "node"} <= names:
        names |= {"serviceaccount"}  # whoever runs pods looks for the account that they have
    if "all" in names:
        names = names - {"all"} | set(CONTROLLERS) | set(ACCOUNTS if accounts else ())
    if "workloads" in names:
        names = names - {"workloads"} | set(WORKLOADS)
    known = CONTROLLERS + ACCOUNTS + WORKLOADS + SIMULATIONS + FOR_SUITES
    if "node" in names:
        names |= {"scheduler"}  # nodes alone would wait for somebody to bind pods
    if unknown := sorted((names | left_out) - set(known)):
        raise OptionError(
            f"--controllers: {unknown[0]!r} is none; use all, none, workloads, or {', '.join(known)}"
        )
    return names - left_out


def parse_runtime_config(pairs: list[str]) -> dict[str, bool]:
    """``key=value`` pairs, several joined by commas or the option repeated. Raises OptionError."""
    chosen: dict[str, bool] = {}
    for pair in (part.strip() for text in pairs for part in text.split(",")):
        if not pair:
            continue
        key, found, value = pair.partition("=")
        if value.lower() not in (("true", "1", "false", "0") if found else ("",)) or not key:
            raise OptionError(f"--runtime-config: {pair!r} is not KEY=true or KEY=false")
        chosen[key.strip()] = value.lower() not in ("false", "0")
    return chosen
