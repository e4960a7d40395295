"""Options of ``kubewright serve``: who may do what."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubewright.tools.arguments.several import seconds

MODES = ("RBAC", "Node", "AlwaysAllow", "AlwaysDeny", "Webhook")
"""Those of ``access.control``."""


def add_everyday(parser: argparse.ArgumentParser) -> None:
    """Declares those that are not in a group."""
    add = parser.add_argument
    add(
        "--token-file",
        "--token-auth-file",
        type=Path,
        metavar="FILE",
        help='CSV of token,user,uid,"group,group" (default: one generated token, written to the kubeconfig)',
    )
    add(
        "--anonymous-admin",
        action="store_true",
        help="allow everything without credentials (on loopback only)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    group = parser.add_argument_group("access", "certificates, service accounts, RBAC, a proxy in front")
    add = group.add_argument
    add(
        "--client-ca-file",
        type=Path,
        metavar="FILE",
        help="CAs of client certificates: the common name is the user, organizations are groups",
    )
    add(
        "--anonymous-auth",
        choices=("true", "false"),
        default="true",
        help="treat requests without credentials as system:anonymous (default), or refuse them",
    )
    add(
        "--enable-bootstrap-token-auth",
        action="store_true",
        help="accept bootstrap tokens (ID.SECRET), kept in Secrets bootstrap-token-ID in kube-system",
    )
    add(
        "--authorization-mode",
        default="",
        metavar="MODE,MODE",
        help=f"authorizers in order, out of {', '.join(MODES)} (default RBAC)",
    )
    add(
        "--cluster-signing-cert-file",
        type=Path,
        metavar="FILE",
        help="CA that signs approved CertificateSigningRequests (default: a generated one)",
    )
    add("--cluster-signing-key-file", type=Path, metavar="FILE", help="key of --cluster-signing-cert-file")
    _add_service_accounts(add)
    _add_request_headers(add)
    _add_oidc(parser)
    _add_webhooks(parser)


def _add_service_accounts(add: Callable[..., Any]) -> None:
    add(
        "--service-account-issuer",
        action="append",
        default=[],
        metavar="URL",
        help="issuer of service account tokens; may be repeated, new tokens name the first",
    )
    add(
        "--service-account-jwks-uri",
        default="",
        metavar="URL",
        help="where the discovery document says that the public keys are (default: at this server)",
    )
    add(
        "--service-account-key-file",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="PEM keys and certificates that verify service account tokens; may be repeated",
    )
    add(
        "--service-account-signing-key-file",
        type=Path,
        metavar="FILE",
        help="PEM key that signs service account tokens (default: a generated one)",
    )
    add(
        "--service-account-max-token-expiration",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="longest lifetime of a service account token",
    )
    add(
        "--api-audiences",
        default="",
        metavar="NAME,NAME",
        help="audiences of this server (default: the issuer)",
    )


def _add_request_headers(add: Callable[..., Any]) -> None:
    add(
        "--requestheader-client-ca-file",
        type=Path,
        metavar="FILE",
        help="CAs of a proxy in front, which names the user in headers",
    )
    add(
        "--requestheader-allowed-names",
        default="",
        metavar="NAME,NAME",
        help="common names of its certificates (default: any)",
    )
    add(
        "--requestheader-username-headers",
        default="X-Remote-User",
        metavar="NAME,NAME",
        help="headers that hold the user's name (default %(default)s)",
    )
    add(
        "--requestheader-uid-headers",
        default="",
        metavar="NAME,NAME",
        help="headers that hold the user's uid",
    )
    add(
        "--requestheader-group-headers",
        default="X-Remote-Group",
        metavar="NAME,NAME",
        help="headers that hold one group each (default %(default)s)",
    )
    add(
        "--requestheader-extra-headers-prefix",
        default="X-Remote-Extra-",
        metavar="TEXT,TEXT",
        help="prefixes of headers that hold extra attributes (default %(default)s)",
    )


def _add_oidc(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("oidc", "tokens of OpenID Connect and other JWT issuers").add_argument
    add(
        "--authentication-config",
        type=Path,
        metavar="FILE",
        help="AuthenticationConfiguration: JWT issuers with CEL rules, anonymous access",
    )
    add("--oidc-issuer-url", default="", metavar="URL", help="issuer of OpenID Connect tokens")
    add("--oidc-client-id", default="", metavar="ID", help="audience that its tokens must have")
    add(
        "--oidc-username-claim",
        default="sub",
        metavar="CLAIM",
        help="claim that holds the user's name (default %(default)s)",
    )
    add(
        "--oidc-username-prefix",
        default=None,
        metavar="TEXT",
        help="prefix for usernames; - for none (default: the issuer and #, except for the claim email)",
    )
    add("--oidc-groups-claim", default="", metavar="CLAIM", help="claim that holds the user's groups")
    add("--oidc-groups-prefix", default="", metavar="TEXT", help="prefix for group names")
    add(
        "--oidc-required-claim",
        action="append",
        default=[],
        metavar="CLAIM=VALUE",
        help="claim that a token must have; may be repeated",
    )
    add(
        "--oidc-signing-algs",
        default="RS256",
        metavar="NAME,NAME",
        help="how its tokens may be signed, of RS, ES and PS with 256, 384 and 512 (default %(default)s)",
    )
    add("--oidc-ca-file", type=Path, metavar="FILE", help="CAs of the issuer (default: the system's)")


def _add_webhooks(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("webhooks", "webhooks for authentication and authorization")
    add = group.add_argument
    add(
        "--authentication-token-webhook-config-file",
        type=Path,
        metavar="KUBECONFIG",
        help="kubeconfig of the server that reviews tokens",
    )
    add(
        "--authentication-token-webhook-version",
        choices=("v1", "v1beta1"),
        default="v1beta1",
        help="version of the TokenReviews sent to it (default %(default)s)",
    )
    add(
        "--authentication-token-webhook-cache-ttl",
        default="2m",
        metavar="DURATION",
        help="how long its answers are cached (default %(default)s)",
    )
    add(
        "--authorization-config",
        type=Path,
        metavar="FILE",
        help="AuthorizationConfiguration: authorizers in order, webhooks with CEL match conditions",
    )
    add(
        "--authorization-webhook-config-file",
        type=Path,
        metavar="KUBECONFIG",
        help="kubeconfig of the server for --authorization-mode Webhook",
    )
    add(
        "--authorization-webhook-version",
        choices=("v1", "v1beta1"),
        default="v1beta1",
        help="version of the SubjectAccessReviews sent to it (default %(default)s)",
    )
    for answer, ttl in (("authorized", "5m"), ("unauthorized", "30s")):
        add(
            f"--authorization-webhook-cache-{answer}-ttl",
            default=ttl,
            metavar="DURATION",
            help=f"how long the answer `{answer}` is cached (default %(default)s)",
        )
