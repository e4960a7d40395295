"""Listings in pages: where the next page is, by the Link header (RFC 8288), a URL in the body, or a cursor.

Credentials go to the client's server alone: of a link that leads elsewhere only the query is taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from apimachinery.client.endpoint import Request, TransportResponse
from apimachinery.openapi.errors import UnreadableAnswerError
from apimachinery.openapi.operation import Operation

_LINK: Final = re.compile(r'<([^>]*)>((?:\s*;\s*[^\s;,="<>]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]*))?)*)')
_REL: Final = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]*))', re.IGNORECASE)
_SAFE: Final = "/%:=&?~+!$,;'@()*[]-._"


class PageWalk:
    """Goes over the pages of one listing: makes the request of each, takes its items, and says whether one follows."""

    def __init__(
        self, operation: Operation[Any], arguments: Sequence[Any], server: str, keys: frozenset[str]
    ) -> None:
        """``keys`` are the names of credentials that go into the query."""
        self._keys = keys
        self.arguments = list(arguments)
        self._operation = operation
        self._server = server.rstrip("/")
        self._linked = ""
        self._current = ""
        self._seen: set[str] = set()

    def request(self, made: Request) -> Request:
        """The request of the page that is next; ``made`` is that of the first, or of the cursor reached."""
        if self._linked:
            path, _, query = self._linked.partition("?")
            pairs = [pair for pair in query.split("&") if pair and pair.partition("=")[0] not in self._keys]
            sent = made.target.partition("?")[2].split("&")
            pairs += [pair for pair in sent if pair.partition("=")[0] in self._keys]
            made = replace(made, target=path + ("?" + "&".join(pairs) if pairs else ""))
        self._current = made.target
        return made

    def items(self, value: Any) -> Sequence[Any]:
        """The items of a page; the page itself where they are not known."""
        pages = self._operation.pages
        assert pages is not None
        if pages.items is None:
            return [value]
        if pages.items:
            names = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
            value = getattr(value, names[pages.items])
        return value or []

    def go_on(self, response: TransportResponse) -> bool:
        """Takes the next page from an answer. Raises ``UnreadableAnswerError`` where it is one that has been."""
        pages = self._operation.pages
        assert pages is not None
        body = _json(response.body) if pages.url or pages.cursors or pages.more else None
        if pages.more and not _at(body, pages.more):
            return False
        link = _next_link(response.headers) if pages.link_header else ""
        link = link or (_at(body, pages.url) if pages.url else "")
        if isinstance(link, str) and link:
            self._linked = self._target(link)
            return self._is_new(self._linked, response)
        found = {
            name: response.headers.get(where.removeprefix("header "))
            if where.startswith("header ")
            else _at(body, where)
            for name, where in pages.cursors.items()
        }
        if not found or any(value is None or value == "" for value in found.values()):
            return False
        for index, parameter in enumerate(self._operation.parameters):
            if parameter.place == "query" and parameter.name in found:
                self.arguments[index] = found[parameter.name]
        return self._is_new(repr(found), response)

    def _is_new(self, place: str, response: TransportResponse) -> bool:
        """Notes a page, and says that there is one. Raises UnreadableAnswerError for one that was read before, since
        reading would never end."""
        if place in self._seen or place == self._current:
            said = f"{self._operation.method} {self._operation.path}"
            reason = "its next page is one that has been read"
            raise UnreadableAnswerError(said, response.code, response.headers, response.body, reason)
        self._seen.add(place)
        return True

    def _target(self, link: str) -> str:
        """The target of a link, below the server's path; of another place only the query counts."""
        base, there = urlsplit(self._server), urlsplit(urljoin(self._server + self._current, link))
        path, inside = self._current.partition("?")[0], base.path + "/"
        if (there.scheme, there.netloc) == (base.scheme, base.netloc) and there.path.startswith(inside):
            path = quote(there.path[len(base.path) :], safe=_SAFE)
        return path + (f"?{quote(there.query, safe=_SAFE)}" if there.query else "")


def _next_link(headers: Mapping[str, str]) -> str:
    for target, parameters in _LINK.findall(headers.get("link", "")):
        rel = _REL.search(parameters)
        if rel and "next" in (rel[1] or rel[2]).lower().split():
            return str(target)
    return ""


def _json(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None


def _at(value: Any, pointer: str) -> Any:
    """What a JSON pointer leads to; ``None`` where there is nothing."""
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        value = value.get(step) if isinstance(value, dict) else None
    return value
