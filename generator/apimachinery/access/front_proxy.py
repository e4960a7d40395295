"""Users that a proxy in front has authenticated: it says who in headers, and proves itself by a client certificate.

Headers of anybody else are nothing but headers: without a certificate of the proxy's own authority, and one of the
allowed names, they are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from apimachinery.access.authentication import Identity, authenticated
from apimachinery.access.impersonation import header_text
from apimachinery.http.messages import Request, User

if TYPE_CHECKING:
    from apimachinery.access.certificates import PeerCheck


@dataclass(frozen=True, slots=True)
class ProxyHeaders:
    """The names of the headers, in lower case; of ``extra`` the beginnings. The first header that is there counts."""

    username: tuple[str, ...] = ("x-remote-user",)
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)


class FrontProxy:
    """Users by the headers of a proxy. ``is_proxy`` says whether a certificate is one of its."""

    def __init__(self, is_proxy: PeerCheck, headers: ProxyHeaders = ProxyHeaders()) -> None:
        self._is_proxy = is_proxy
        self._headers = headers

    def authenticate(self, request: Request) -> Identity | None:
        if not request.peer or not self._is_proxy(request.peer):
            return None
        name = self._first(request, self._headers.username)
        if not name:
            return None
        groups: list[str] = []
        for header in self._headers.group:
            groups += (header_text(value) for value in request.values(header) if value)
        extra: dict[str, list[str]] = {}
        for prefix in self._headers.extra:
            for header in request.headers:
                if header.startswith(prefix):
                    # Keys may have been escaped: header names allow few characters.
                    key = unquote(header.removeprefix(prefix))
                    extra.setdefault(key, []).extend(map(header_text, request.values(header)))
        pairs = tuple((key, tuple(values)) for key, values in extra.items())
        return Identity(
            authenticated(User(name, self._first(request, self._headers.uid), tuple(groups), pairs))
        )

    def _first(self, request: Request, headers: Sequence[str]) -> str:
        for header in headers:
            for value in request.values(header):
                if text := header_text(value).strip():
                    return text
        return ""
