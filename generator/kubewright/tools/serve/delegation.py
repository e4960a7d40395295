"""The options of ``kubewright serve`` for a server behind a kube-apiserver, which proxies a group to it (aggregated API
server); their names are those of kube's generic API servers. ``--print-manifest`` prints what must be created there.
"""

from __future__ import annotations

import argparse
import base64
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apimachinery.access.delegation import ClusterTrust, DelegatedServer
from apimachinery.http.outgoing import Endpoint, Outgoing
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.network.services import server_name
from apimachinery.wire.yaml import encode

if TYPE_CHECKING:
    from apimachinery.client.credentials import CredentialSource

IN_CLUSTER = "in-cluster"
WAIT_SECONDS = 30.0
GROUP_PRIORITY, VERSION_PRIORITY = 1000, 15
READER = "extension-apiserver-authentication-reader"
Json = dict[str, Any]


def delegates(options: argparse.Namespace) -> bool:
    """Whether another server is asked."""
    return bool(options.delegate or options.authentication_kubeconfig or options.authorization_kubeconfig)


def service_of(options: argparse.Namespace) -> tuple[str, str] | None:
    """Namespace and name of ``--service``. Raises OptionError."""
    if not options.service:
        return None
    namespace, found, name = options.service.partition("/")
    if not (found and namespace and name) or "/" in name:
        raise OptionError(f"--service: {options.service!r} is not NAMESPACE/NAME")
    return namespace, name


def certificate_names(options: argparse.Namespace) -> tuple[str, ...]:
    """What a certificate that is made must name besides the host."""
    service = service_of(options)
    if service is None:
        return ()
    name = server_name(*service)
    return name, name.removesuffix(".svc"), *filter(None, (options.external_name,))


@dataclass(slots=True)
class Delegation:
    """The cluster, what of it is believed, and the connections to it."""

    cluster: DelegatedServer
    outgoing: Outgoing = field(default_factory=Outgoing)
    trust: ClusterTrust = field(init=False)
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self.trust = ClusterTrust(self._accept)

    def _accept(self, authorities: str) -> None:
        if self.tls is not None:
            self.tls.verify_mode = ssl.CERT_OPTIONAL
            self.tls.load_verify_locations(cadata=authorities)


def read(options: argparse.Namespace) -> Delegation:
    """The cluster that the options name. Raises OptionError."""
    common = options.delegate
    authentication = options.authentication_kubeconfig or common
    authorization = options.authorization_kubeconfig or common
    if not (authentication and authorization):
        raise OptionError("--authentication-kubeconfig and --authorization-kubeconfig go together")
    refused = [
        option
        for option, value in (
            ("--token-file", options.token_file),
            ("--anonymous-admin", options.anonymous_admin),
            ("--authorization-mode", options.authorization_mode),
            ("--authorization-config", options.authorization_config),
            ("--requestheader-client-ca-file", options.requestheader_client_ca_file),
        )
        if value
    ]
    if refused:
        raise OptionError(f"--delegate and {refused[0]} exclude each other: the cluster says who may do what")
    allowed = [path.strip() for path in options.authorization_always_allow_paths.split(",") if path.strip()]
    return Delegation(DelegatedServer(_endpoint(authentication), _endpoint(authorization), allowed))


class _Credentials(Mapping[str, str]):
    """The header of a credential that may be renewed: a token file, a plugin."""

    def __init__(self, source: CredentialSource) -> None:
        self._source = source

    def _now(self) -> dict[str, str]:
        value = self._source.current().authorization
        return {"Authorization": value} if value else {}

    def __getitem__(self, name: str) -> str:
        return self._now()[name]

    def __iter__(self) -> Any:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


def _endpoint(path: str) -> Endpoint:
    from apimachinery.client.config import Config, ConfigError
    from apimachinery.client.credentials import CredentialSource
    from apimachinery.client.tls import make_tls

    try:
        config = Config.in_cluster() if path == IN_CLUSTER else Config.load(Path(path))
        source = CredentialSource(config)
        tls = make_tls(config, source.current()) if config.is_tls else None
    except ConfigError as fault:
        raise OptionError(f"{path}: {fault}") from None
    return Endpoint(config.server, tls, _Credentials(source), server_name=config.tls_server_name)


def manifest(options: argparse.Namespace, group_versions: Sequence[tuple[str, str]], authority: bytes) -> str:
    """YAML of what the cluster must have. Raises OptionError."""
    service = service_of(options)
    if service is None:
        raise OptionError("--print-manifest needs --service NAMESPACE/NAME")
    namespace, name = service
    labels = {"app": name}
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    spec: Json = {"ports": [{"name": "https", "port": 443, "targetPort": options.port}], "selector": labels}
    port = 443
    if options.external_name:
        spec, port = {"type": "ExternalName", "externalName": options.external_name}, options.port
    objects: list[Json] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(name, namespace)},
        {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(name, namespace), "spec": spec},
        _binding(f"{namespace}:{name}:auth-delegator", "ClusterRole", "system:auth-delegator", account),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"{namespace}:{name}:namespaces"},
            "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}],
        },
        _binding(f"{namespace}:{name}:namespaces", "ClusterRole", f"{namespace}:{name}:namespaces", account),
        _binding(f"{namespace}:{name}:authentication-reader", "Role", READER, account, "kube-system"),
    ]
    if namespace in ("default", "kube-system", "kube-public"):
        del objects[0]
    bundle = base64.b64encode(authority).decode()
    for at, (group, version) in enumerate(group_versions):
        objects.append(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{version}.{group}"},
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": GROUP_PRIORITY,
                    "versionPriority": max(VERSION_PRIORITY - at, 1),
                    "service": {"namespace": namespace, "name": name, "port": port},
                    "caBundle": bundle,
                },
            }
        )
    return "---\n".join(encode(obj).decode() for obj in objects)


def _metadata(name: str, namespace: str) -> Json:
    return {"name": name, "namespace": namespace, "labels": {"app": name}}


def _binding(name: str, kind: str, role: str, subject: Json, namespace: str = "") -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [subject],
    }
