"""Options of ``kubewright serve`` that are kube-apiserver's: other names of its own, and what means nothing here.

Who starts a kube-apiserver in a test gives it what a cluster needs. An option that would change what clients see, and
that is not here, is refused; of the others, those without a meaning here are taken, and said when the server starts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

_WITHOUT_MEANING: Final = {
    "there is one server and one watch cache, which is always on": """
        watch-cache! watch-cache-sizes delete-collection-workers enable-garbage-collector!
        storage-backend storage-media-type storage-initialization-timeout lease-reuse-duration-seconds
        send-retry-after-while-not-ready-once! http2-max-streams-per-connection disable-http2-serving! goaway-chance
        permit-address-sharing! permit-port-sharing! min-request-timeout max-connection-bytes-per-sec
        shutdown-watch-termination-grace-period tls-curve-preferences encryption-provider-config-automatic-reload!""",
    "the storage compacts and checks itself": """
        etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout
        etcd-readycheck-timeout""",
    "objects of all kinds are in one storage": "etcd-servers-overrides",
    "logs are lines of JSON, see --log-level": """
        v vmodule logging-format log-flush-frequency log-json-info-buffer-size log-json-split-stream!
        log-text-info-buffer-size log-text-split-stream! enable-logs-handler!""",
    "metrics and profiles are this server's own": """
        allow-metric-labels allow-metric-labels-manifest disabled-metrics show-hidden-metrics-for-version
        contention-profiling! debug-socket-path""",
    "batches are limited by their events, whose version is v1": """
        audit-log-truncate-max-batch-size audit-webhook-truncate-max-batch-size audit-log-version
        audit-webhook-version""",
    "no kubelet, no peer and no cluster network is called": """
        kubelet-certificate-authority kubelet-client-certificate kubelet-client-key kubelet-preferred-address-types
        kubelet-timeout peer-advertise-ip peer-advertise-port peer-ca-file enable-aggregator-routing!
        aggregator-reject-forwarding-redirect! endpoint-reconciler-type kubernetes-service-node-port external-hostname
        coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
        coordinated-leadership-retry-period""",
    "privileged containers are always allowed": "allow-privileged!",
    "the release is that of --emulated-version": """
        emulation-forward-compatible! runtime-config-emulation-forward-compatible! min-compatibility-version""",
    "token lifetimes are not extended": "service-account-extend-token-expiration!",
}
_NOT_HERE: Final = """admission-control-config-file authorization-policy-file egress-selector-config-file
    service-account-signing-endpoint"""

TAKEN: Final[dict[str, str]] = {
    f"--{name.rstrip('!')}": reason for reason, names in _WITHOUT_MEANING.items() for name in names.split()
}
"""Option → why it means nothing here."""
NOT_HERE: Final[tuple[str, ...]] = tuple(f"--{name}" for name in _NOT_HERE.split())
"""Options that would change what clients see."""
SWITCHES: Final = frozenset(
    f"--{name[:-1]}" for names in _WITHOUT_MEANING.values() for name in names.split() if name.endswith("!")
)
"""Options of ``TAKEN`` that are true or false, and true without a value."""
BOOLS: Final = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
"""What Go takes for a bool."""
TLS_VERSIONS: Final = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")


class _Taken(argparse.Action):
    """Notes that an option was given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        value: Any,
        name: str | None = None,
    ) -> None:
        options.taken = (*options.taken, name)


class _NotHere(argparse.Action):
    """Refuses an option."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        value: Any,
        name: str | None = None,
    ) -> None:
        parser.error(f"{name} is kube-apiserver's and not here; leave it out")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = parser.add_argument_group(
        "kube-apiserver",
        "other options: accepted if they make no difference here, refused otherwise",
    )
    add = group.add_argument
    add("--etcd-servers", default="", metavar="URL,URL", help="same as --storage etcd://…")
    add("--etcd-prefix", default="", metavar="PATH", help="prefix of the keys in etcd (default /registry)")
    add(
        "--admission-control",
        default="",
        metavar="NAME,NAME",
        help="these admission plugins and no others (deprecated in kube-apiserver)",
    )
    add("--tls-cert-file", type=str, default="", metavar="FILE", help="same as --tls CERT,KEY")
    add("--tls-private-key-file", type=str, default="", metavar="FILE", help="key of --tls-cert-file")
    add(
        "--tls-min-version",
        choices=TLS_VERSIONS,
        default="VersionTLS12",
        metavar="VERSION",
        help="VersionTLS12 (default; also used for older versions) or VersionTLS13",
    )
    add(
        "--tls-cipher-suites",
        default="",
        metavar="NAME,NAME",
        help="cipher suites below TLS 1.3, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 (default: OpenSSL's)",
    )
    add(
        "--tls-sni-cert-key",
        action="append",
        default=[],
        metavar="CERT,KEY[:NAME,NAME]",
        help="another certificate, for clients that ask for these names (default: its own); may be repeated",
    )
    add(
        "--cors-allowed-origins",
        default="",
        metavar="REGEX,REGEX",
        help="origins whose pages may call the server from a browser, such as '^https://app\\.example\\.com$'",
    )
    add(
        "--strict-transport-security-directives",
        default="",
        metavar="TEXT,TEXT",
        help="directives of the Strict-Transport-Security header, such as max-age=31536000,includeSubDomains",
    )
    add(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=BOOL,NAME=BOOL",
        help="accepted, unless it would change the behaviour of this server",
    )
    add("--service-account-lookup", choices=("true",), default="true", help=argparse.SUPPRESS)
    parser.set_defaults(taken=())
    _add_silent(group, list(TAKEN), _Taken)
    _add_silent(group, NOT_HERE, _NotHere)


def _add_silent(group: Any, names: Sequence[str], action: type[argparse.Action]) -> None:
    for name in names:
        values = {"nargs": "?", "const": "true"} if name in SWITCHES else {}
        group.add_argument(name, action=action, dest="taken", help=argparse.SUPPRESS, **values)
