"""Tokens of an OpenID Connect provider, as the ``auth-provider: {name: oidc}`` of a kubeconfig names one.

Rules (client-go's oidc plugin): the ID token is used while its ``exp`` lies in the future; then the provider's
discovery document (``<issuer>/.well-known/openid-configuration``, OpenID Connect Discovery 1.0) gives the token
endpoint, and the refresh token is exchanged there for a new ID token (RFC 6749, section 6). New tokens are written
back into the kubeconfig, since a provider may make a refresh token good for one use: in place of the old ones, with
everything else in the file as it is.
"""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import ssl

EXPIRY_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 30.0
LARGEST_ANSWER: Final = 1 << 20


class OidcError(Exception):
    """The provider could not be asked, or gave no ID token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcProvider:
    """What a kubeconfig says of a provider; ``file`` is the kubeconfig to write new tokens to, or empty."""

    issuer: str
    client_id: str
    client_secret: str = ""
    id_token: str = ""
    refresh_token: str = ""
    certificate_authority: bytes = b""
    file: str = ""


def seconds_left(token: str) -> float:
    """For how many seconds an ID token still holds; 0 for one that has no readable ``exp``."""
    parts = token.split(".")
    if len(parts) != 3:
        return 0.0
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return max(0.0, float(claims["exp"]) - time.time() - EXPIRY_SECONDS)
    except (ValueError, KeyError, TypeError):
        return 0.0


def refreshed(provider: OidcProvider) -> OidcProvider:
    """The provider with a new ID token, written to its kubeconfig too. Raises ``OidcError``."""
    if not provider.refresh_token:
        raise OidcError("the id-token has expired and there is no refresh-token: log in again")
    context = None
    if provider.certificate_authority:
        import ssl

        from apimachinery.http.trust import trusting

        try:
            context = trusting(provider.certificate_authority)
        except (ssl.SSLError, ValueError) as error:
            raise OidcError(f"idp-certificate-authority: not PEM certificates: {error}") from None
    discovery = _ask(provider.issuer.rstrip("/") + "/.well-known/openid-configuration", None, context)
    endpoint = discovery.get("token_endpoint")
    if not isinstance(endpoint, str) or urllib.parse.urlsplit(endpoint).scheme not in ("http", "https"):
        raise OidcError(f"{provider.issuer}: its discovery document names no token_endpoint")
    form = {"grant_type": "refresh_token", "refresh_token": provider.refresh_token}
    form["client_id"] = provider.client_id
    if provider.client_secret:
        form["client_secret"] = provider.client_secret
    answer = _ask(endpoint, form, context)
    token = answer.get("id_token")
    if not isinstance(token, str) or not token:
        raise OidcError(f"{endpoint}: the answer has no id_token; ask the provider for the scope openid")
    made = replace(provider, id_token=token)
    if isinstance(answer.get("refresh_token"), str):
        made = replace(made, refresh_token=answer["refresh_token"])
    _keep(provider, made)
    return made


def _ask(url: str, form: Mapping[str, str] | None, context: ssl.SSLContext | None) -> dict[str, Any]:
    import urllib.error  # here, since few programs come here and the import costs a tenth of all of the client's
    import urllib.request

    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise OidcError(f"{url}: an issuer must be an http or https URL")
    body = None if form is None else urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(url, body, TIMEOUT_SECONDS, context=context) as answer:
            found = json.loads(answer.read(LARGEST_ANSWER))
    except urllib.error.HTTPError as error:
        # The provider's words say why (RFC 6749, section 5.2); they hold no token.
        said = error.read(500).decode("utf-8", "replace").strip()
        raise OidcError(f"{url} answered {error.code}: {said}") from None
    except (OSError, ValueError) as error:
        raise OidcError(f"{url}: {error}") from None
    if not isinstance(found, dict):
        raise OidcError(f"{url}: the answer is no JSON object")
    return found


def _keep(old: OidcProvider, new: OidcProvider) -> None:
    """Writes new tokens over the old ones in the kubeconfig: text for text, so that comments and order stay."""
    path = Path(old.file)
    try:
        if not old.file or not path.is_file():
            return
        text = path.read_text("utf-8")
        for was, now in ((old.refresh_token, new.refresh_token), (old.id_token, new.id_token)):
            if was and was != now and text.count(was) == 1:
                text = text.replace(was, now)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, path.stat().st_mode & 0o777)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(path)
    except OSError:
        return  # a kubeconfig that cannot be written still connects; the next program refreshes again
