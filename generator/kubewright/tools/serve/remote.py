"""The options and files that name other servers to ask who somebody is and what he may do.

``--authentication-config`` and ``--authorization-config`` are kube-apiserver's structured files
(apiserver.config.k8s.io); the ``--oidc-*`` and webhook options are the older forms of the same. Webhooks are addressed
by kubeconfig files.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apimachinery.access.authentication import TokenKind
from apimachinery.access.control import MakeAuthorizer
from apimachinery.access.keys import ALGORITHMS
from apimachinery.access.oidc import (
    Checked,
    Issuer,
    IssuerTokens,
    Mapped,
)
from apimachinery.access.webhooks import AuthorizationWebhook, TokenWebhook, WebhookRules
from apimachinery.http.outgoing import Endpoint, Outgoing
from apimachinery.http.trust import trusting
from apimachinery.server.catalog.options import OptionError

_GROUP = "apiserver.config.k8s.io/"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Whether requests without credentials are let in, None where nothing says so, and to which paths alone."""

    enabled: bool | None = None
    paths: frozenset[str] | None = None


def token_kinds(options: argparse.Namespace, outgoing: Outgoing) -> tuple[list[TokenKind], Anonymous]:
    """Issuers and webhooks of bearer tokens; and what of anonymous requests is let in.

    Raises OptionError and ValueErrors that name the file.
    """
    kinds: list[TokenKind] = []
    anonymous = Anonymous()
    if options.authentication_config:
        if options.oidc_issuer_url:
            raise OptionError("--authentication-config and --oidc-issuer-url exclude each other")
        config = read_configuration(options.authentication_config, "AuthenticationConfiguration")
        for number, entry in enumerate(config.get("jwt") or ()):
            kinds.append(_issuer(entry, f"{options.authentication_config}: jwt[{number}]", outgoing))
        if config.get("anonymous") is not None:
            anonymous = _anonymous(config["anonymous"], f"{options.authentication_config}: anonymous")
    if options.oidc_issuer_url:
        kinds.append(_flag_issuer(options, outgoing))
    if options.authentication_token_webhook_config_file:
        asked = endpoint(options.authentication_token_webhook_config_file)
        seconds = duration(options.authentication_token_webhook_cache_ttl)
        kinds.append(
            TokenWebhook(asked, outgoing.json, options.authentication_token_webhook_version, seconds)
        )
    return kinds, anonymous


def _anonymous(entry: Any, place: str) -> Anonymous:
    """``anonymous`` of an AuthenticationConfiguration. Raises OptionError."""
    if not isinstance(entry, dict):
        raise OptionError(f"{place}: must be an object")
    enabled = bool(entry.get("enabled"))
    conditions = entry.get("conditions") or []
    if not conditions:
        return Anonymous(enabled)
    if not enabled:
        raise OptionError(f"{place}.conditions: enabled should be set to true when conditions are defined")
    paths = []
    for number, condition in enumerate(conditions):
        path = condition.get("path") if isinstance(condition, dict) else None
        if not isinstance(path, str) or not path:
            raise OptionError(f"{place}.conditions[{number}].path: required, an exact path such as /livez")
        paths.append(path)
    return Anonymous(True, frozenset(paths))


def webhook_mode(options: argparse.Namespace, outgoing: Outgoing) -> MakeAuthorizer:
    """The authorizer of ``--authorization-mode Webhook``. Raises OptionError."""
    if not options.authorization_webhook_config_file:
        raise OptionError("--authorization-mode Webhook needs --authorization-webhook-config-file")
    rules = WebhookRules(
        options.authorization_webhook_version,
        allowed_seconds=duration(options.authorization_webhook_cache_authorized_ttl),
        refused_seconds=duration(options.authorization_webhook_cache_unauthorized_ttl),
    )
    webhook = AuthorizationWebhook(endpoint(options.authorization_webhook_config_file), outgoing.json, rules)
    return lambda cache: webhook


def configured_modes(path: Path, outgoing: Outgoing) -> list[str | MakeAuthorizer]:
    """The authorizers of an AuthorizationConfiguration, in order. Raises OptionError and other ValueErrors."""
    config = read_configuration(path, "AuthorizationConfiguration")
    modes: list[str | MakeAuthorizer] = []
    for number, entry in enumerate(config.get("authorizers") or ()):
        place = f"{path}: authorizers[{number}]"
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind == "Webhook":
            modes.append(_configured_webhook(entry.get("webhook") or {}, place, outgoing))
        elif kind in ("RBAC", "Node", "AlwaysAllow", "AlwaysDeny"):
            modes.append(kind)
        else:
            raise OptionError(
                f"{place}.type: {kind!r} is none of RBAC, Node, Webhook, AlwaysAllow, AlwaysDeny"
            )
    if not modes:
        raise OptionError(f"{path}: authorizers: at least one is needed")
    return modes


def _configured_webhook(entry: Json, place: str, outgoing: Outgoing) -> MakeAuthorizer:
    connection = entry.get("connectionInfo") or {}
    if connection.get("type") != "KubeConfigFile" or not connection.get("kubeConfigFile"):
        raise OptionError(
            f"{place}.webhook.connectionInfo: only type KubeConfigFile with kubeConfigFile is served"
        )
    policy = entry.get("failurePolicy")
    if policy not in ("NoOpinion", "Deny"):
        raise OptionError(f"{place}.webhook.failurePolicy: {policy!r} is neither NoOpinion nor Deny")
    rules = WebhookRules(
        str(entry.get("subjectAccessReviewVersion") or "v1"),
        tuple(str(c.get("expression") or "") for c in entry.get("matchConditions") or ()),
        policy == "Deny",
        duration(entry.get("authorizedTTL") or "5m"),
        duration(entry.get("unauthorizedTTL") or "30s"),
    )
    asked = endpoint(Path(connection["kubeConfigFile"]), duration(entry.get("timeout") or "10s"))
    webhook = AuthorizationWebhook(asked, outgoing.json, rules)
    return lambda cache: webhook


def _issuer(entry: Any, place: str, outgoing: Outgoing) -> IssuerTokens:
    if not isinstance(entry, dict) or not isinstance(entry.get("issuer"), dict):
        raise OptionError(f"{place}.issuer: required")
    issuer = entry["issuer"]
    url, audiences = str(issuer.get("url") or ""), tuple(map(str, issuer.get("audiences") or ()))
    if not url.startswith("https://"):
        raise OptionError(f"{place}.issuer.url: {url!r} is no https address")
    if not audiences:
        raise OptionError(f"{place}.issuer.audiences: at least one is needed")
    mappings = entry.get("claimMappings") or {}
    username = _mapped(mappings.get("username"))
    if not username.claim and not username.expression:
        raise OptionError(f"{place}.claimMappings.username: claim or expression is needed")
    authority = str(issuer.get("certificateAuthority") or "")
    discovery = str(issuer.get("discoveryURL") or f"{url.rstrip('/')}/.well-known/openid-configuration")
    return IssuerTokens(
        Issuer(
            url,
            Endpoint(discovery, trusting(authority) if authority else None),
            audiences,
            username,
            _mapped(mappings.get("groups")),
            _mapped(mappings.get("uid")),
            {str(e.get("key")): str(e.get("valueExpression") or "''") for e in mappings.get("extra") or ()},
            [_checked(rule) for rule in entry.get("claimValidationRules") or ()],
            [_checked(rule) for rule in entry.get("userValidationRules") or ()],
        ),
        outgoing.json,
    )


def _mapped(entry: Any) -> Mapped:
    entry = entry if isinstance(entry, dict) else {}
    return Mapped(
        str(entry.get("claim") or ""), str(entry.get("prefix") or ""), str(entry.get("expression") or "")
    )


def _checked(entry: Json) -> Checked:
    return Checked(
        str(entry.get("claim") or ""),
        str(entry.get("requiredValue") or ""),
        str(entry.get("expression") or ""),
        str(entry.get("message") or ""),
    )


def _flag_issuer(options: argparse.Namespace, outgoing: Outgoing) -> IssuerTokens:
    url = options.oidc_issuer_url
    if not url.startswith("https://") or not options.oidc_client_id:
        raise OptionError("--oidc-issuer-url needs an https address, and --oidc-client-id")
    prefix = options.oidc_username_prefix
    if prefix is None:
        prefix = "" if options.oidc_username_claim == "email" else f"{url}#"
    elif prefix == "-":
        prefix = ""
    required = []
    for pair in options.oidc_required_claim:
        claim, found, value = pair.partition("=")
        if not found:
            raise OptionError(f"--oidc-required-claim: {pair!r} is not CLAIM=VALUE")
        required.append(Checked(claim, value))
    algorithms = frozenset(name.strip() for name in options.oidc_signing_algs.split(",") if name.strip())
    if unknown := sorted(algorithms - ALGORITHMS):
        raise OptionError(f"--oidc-signing-algs: {unknown[0]!r} is none of {', '.join(sorted(ALGORITHMS))}")
    tls = trusting(file=options.oidc_ca_file) if options.oidc_ca_file else None
    endpoint = Endpoint(f"{url.rstrip('/')}/.well-known/openid-configuration", tls)
    groups = Mapped(options.oidc_groups_claim, options.oidc_groups_prefix)
    username = Mapped(options.oidc_username_claim, prefix)
    return IssuerTokens(
        Issuer(
            url,
            endpoint,
            (options.oidc_client_id,),
            username,
            groups,
            claim_rules=required,
            algorithms=algorithms,
        ),
        outgoing.json,
    )


def endpoint(path: Path, seconds: float = 10.0) -> Endpoint:
    """Where a kubeconfig points. Raises OptionError."""
    from apimachinery.client.config import Config, ConfigError
    from apimachinery.client.credentials import CredentialSource
    from apimachinery.client.tls import make_tls

    try:
        config = Config.load(path)
        credential = CredentialSource(config).current()
        tls = make_tls(config, credential) if config.is_tls else None
    except ConfigError as fault:
        raise OptionError(f"{path}: {fault}") from None
    headers = {"Authorization": credential.authorization} if credential.authorization else {}
    return Endpoint(config.server, tls, headers, seconds)


def read_configuration(path: Path, kind: str) -> Json:
    """A file of kube-apiserver's own configuration (apiserver.config.k8s.io). Raises OptionError."""
    from kubewright.diagnostics import Diagnostics
    from kubewright.source.text import read_single

    diagnostics = Diagnostics()
    document = read_single(path, diagnostics)
    if document is None or diagnostics.has_errors:
        raise OptionError("; ".join(str(diagnostic) for diagnostic in diagnostics) or f"{path}: is empty")
    value = document.value
    if (
        not isinstance(value, dict)
        or value.get("kind") != kind
        or not str(value.get("apiVersion")).startswith(_GROUP)
    ):
        raise OptionError(f"{path}: is no {kind} of {_GROUP}v1")
    return value


def duration(text: Any) -> float:
    """Seconds of a duration in Go's words (``1m30s``). Raises OptionError."""
    parts = _DURATION.findall(str(text))
    if "".join(number + unit for number, unit in parts) != str(text):
        raise OptionError(f"{text!r} is no duration; write it as 30s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
