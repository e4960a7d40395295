"""What others need to verify tokens of service accounts: OpenID Connect discovery and the key set (RFC 8414, 7517)."""

from __future__ import annotations

from apimachinery.server.access.control import Access
from apimachinery.server.http.messages import Request, Response
from apimachinery.wire.json import encode

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
_CACHED = (("Cache-Control", "public, max-age=3600"),)


def issuer_document(request: Request, access: Access) -> Response | None:
    """The answer to one of the two paths, None for any other."""
    path = request.path.rstrip("/")
    if path not in (CONFIGURATION, KEYS) or access.service_accounts is None:
        return None
    if request.method != "GET":
        return Response(405, b"", "")
    keys = access.service_accounts.keys
    if path == KEYS:
        from apimachinery.server.access.keys import key_set

        return Response(200, encode(key_set(keys.verifying)), "application/jwk-set+json", _CACHED)
    document = {
        "issuer": keys.issuers[0],
        "jwks_uri": keys.jwks_uri or f"{access.url}{KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key.algorithms[0] for key in keys.verifying}),
    }
    return Response(200, encode(document), headers=_CACHED)
