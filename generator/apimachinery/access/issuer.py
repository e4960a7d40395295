"""What others need to verify tokens of service accounts: OpenID Connect discovery and the key set (RFC 8414, 7517)."""

from __future__ import annotations

from apimachinery.access.control import Access
from apimachinery.http.messages import Request, Response
from apimachinery.wire.json import encode

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
# As kube-apiserver's --service-account-issuer discovery: relying parties may keep both for an hour.
_CACHED = (("Cache-Control", "public, max-age=3600"),)


MEDIA_TYPES = {CONFIGURATION: ("application/json",), KEYS: ("application/jwk-set+json",)}


def issuer_path(request: Request, access: Access) -> str:
    """Which of the two a path is, or is below; empty for any other."""
    if access.service_accounts is None:
        return ""
    return next((path for path in MEDIA_TYPES if f"{request.path}/".startswith(f"{path}/")), "")


def issuer_document(path: str, access: Access) -> Response:
    """The answer to one of the two paths."""
    assert access.service_accounts is not None
    keys = access.service_accounts.keys
    if path == KEYS:
        from apimachinery.access.keys import key_set

        return Response(200, encode(key_set(keys.verifying)), "application/jwk-set+json", _CACHED)
    document = {
        "issuer": keys.issuers[0],
        "jwks_uri": keys.jwks_uri or f"{access.url()}{KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key.algorithms[0] for key in keys.verifying}),
    }
    return Response(200, encode(document), headers=_CACHED)
