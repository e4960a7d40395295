"""Options of ``kubewright serve``: who may do what."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubewright.tools.arguments.several import seconds

MODES = ("RBAC", "Node", "AlwaysAllow", "AlwaysDeny", "Webhook")
"""Those of ``access.control``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = parser.add_argument_group(
        "access", "who may do what; without these, the kubeconfig's token alone"
    )
    add = group.add_argument
    add("--anonymous-admin", action="store_true",
        help="requests without credentials are the administrator's (on loopback only)")  # fmt: skip
    add("--token-file", "--token-auth-file", type=Path, metavar="FILE",
        help='CSV of token,user,uid,"group,group"')  # fmt: skip
    add("--client-ca-file", type=Path, metavar="FILE",
        help="authorities of client certificates: the common name is the user, organizations are groups")  # fmt: skip
    add("--anonymous-auth", choices=("true", "false"), default="true",
        help="requests without credentials are system:anonymous (default) or refused")  # fmt: skip
    add("--enable-bootstrap-token-auth", action="store_true",
        help="take tokens of Secrets bootstrap-token-ID in kube-system (ID.SECRET)")  # fmt: skip
    add("--authorization-mode", default="", metavar="MODE,MODE",
        help=f"of {', '.join(MODES)}, asked in order (default RBAC)")  # fmt: skip
    add("--service-account-issuer", action="append", default=[], metavar="URL",
        help="issuer of service account tokens; repeated, the first signs")  # fmt: skip
    add("--service-account-key-file", type=Path, action="append", default=[], metavar="FILE",
        help="PEM keys and certificates that verify service account tokens; may be repeated")  # fmt: skip
    add("--service-account-signing-key-file", type=Path, metavar="FILE",
        help="PEM key that signs service account tokens (default: one that is made)")  # fmt: skip
    add("--service-account-max-token-expiration", type=seconds, default=0.0, metavar="SECONDS",
        help="longest life of a service account token")  # fmt: skip
    add("--api-audiences", default="", metavar="NAME,NAME",
        help="audiences of this server (default: the issuer)")  # fmt: skip
    _add_remote(add)
    add("--requestheader-client-ca-file", type=Path, metavar="FILE",
        help="authorities of a proxy in front, whose headers name the user")  # fmt: skip
    add("--requestheader-allowed-names", default="", metavar="NAME,NAME",
        help="common names of its certificates (default: any)")  # fmt: skip
    add("--requestheader-username-headers", default="X-Remote-User", metavar="NAME,NAME")
    add("--requestheader-uid-headers", default="", metavar="NAME,NAME")
    add("--requestheader-group-headers", default="X-Remote-Group", metavar="NAME,NAME")
    add("--requestheader-extra-headers-prefix", default="X-Remote-Extra-", metavar="TEXT,TEXT")
    add("--cluster-signing-cert-file", type=Path, metavar="FILE",
        help="authority that signs approved requests for client certificates")  # fmt: skip
    add("--cluster-signing-key-file", type=Path, metavar="FILE", help="its key")


def _add_remote(add: Callable[..., Any]) -> None:
    """Declares the options."""
    add("--authentication-config", type=Path, metavar="FILE",
        help="AuthenticationConfiguration: JWT issuers with CEL rules, anonymous access")  # fmt: skip
    add("--oidc-issuer-url", default="", metavar="URL", help="issuer of OpenID Connect tokens")
    add("--oidc-client-id", default="", metavar="ID", help="audience that its tokens must have")
    add("--oidc-username-claim", default="sub", metavar="CLAIM", help="default %(default)s")
    add("--oidc-username-prefix", default=None, metavar="TEXT",
        help="before usernames; - for none (default: the issuer and #, for all claims but email)")  # fmt: skip
    add("--oidc-groups-claim", default="", metavar="CLAIM")
    add("--oidc-groups-prefix", default="", metavar="TEXT")
    add("--oidc-required-claim", action="append", default=[], metavar="CLAIM=VALUE")
    add("--oidc-ca-file", type=Path, metavar="FILE", help="authorities of the issuer (default: the system's)")
    add("--authentication-token-webhook-config-file", type=Path, metavar="KUBECONFIG")
    add("--authentication-token-webhook-version", choices=("v1", "v1beta1"), default="v1beta1")
    add("--authentication-token-webhook-cache-ttl", default="2m", metavar="DURATION")
    add("--authorization-config", type=Path, metavar="FILE",
        help="AuthorizationConfiguration: authorizers in order, webhooks with CEL match conditions")  # fmt: skip
    add("--authorization-webhook-config-file", type=Path, metavar="KUBECONFIG")
    add("--authorization-webhook-version", choices=("v1", "v1beta1"), default="v1beta1")
    add("--authorization-webhook-cache-authorized-ttl", default="5m", metavar="DURATION")
    add("--authorization-webhook-cache-unauthorized-ttl", default="30s", metavar="DURATION")
