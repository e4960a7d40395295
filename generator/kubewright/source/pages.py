"""How listings of an OpenAPI document go on: by what it declares (a Link header, ``links`` that lead back to the
operation), and by the plain patterns of bodies, the URL of the next page or a cursor for a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from kubewright.ir.operations import Listing
from kubewright.ir.types import Json
from kubewright.location import escape_pointer

Follow: TypeAlias = Callable[[Json], Json]
"""Follows references."""
_URLS: Final = (
    *("/links/pages/next", "/links/next", "/_links/next/href", "/_links/next", "/paging/next"),
    *("/next_page_uri", "/next_page_url", "/next_url", "/nextLink", "/@odata.nextLink"),
)
_AROUND: Final = ("", "/meta", "/metadata", "/pagination", "/paging", "/page_info", "/response_metadata")
_MORE: Final = ("/has_more", "/hasMore")
_LISTS: Final = frozenset({"data", "entries", "items", "records", "results", "values"})
_AFTER: Final = ("next", "lastid", "endcursor")


def pages_of(said: Json, name: str, parameters: Iterable[str], follow: Follow) -> Listing | None:
    """How the operation ``said``, called ``name``, goes on; ``parameters`` are those in its query."""
    answer = _success(said, follow)
    if answer is None:
        return None
    schema = _schema(answer, follow)
    named = list(parameters)
    if cursors := _linked(follow(answer.get("links")), name, named, follow):
        return Listing(cursors=cursors, items=_items(schema, follow))
    headers = follow(answer.get("headers"))
    if named and isinstance(headers, dict) and any(str(each).lower() == "link" for each in headers):
        return Listing(link_header=True, items=_items(schema, follow))
    if not named or schema is None:
        return None
    url = next((place for place in _URLS if _is_text(_at(schema, place, follow))), "")
    plain = _at(schema, "/next", follow)
    if not url and isinstance(plain, dict) and plain.get("format") in ("uri", "url", "uri-reference"):
        url = "/next"
    more = next((place for place in _MORE if _at(schema, place, follow) is not None), "")
    if url:
        return Listing(url=url, items=_items(schema, follow))
    cursor = next(_cursors(schema, named, bool(more), follow), None)
    return Listing(cursors=(cursor,), more=more, items=_items(schema, follow)) if cursor else None


def _success(said: Json, follow: Follow) -> Json | None:
    answers = said.get("responses")
    for status, given in answers.items() if isinstance(answers, dict) else ():
        answer = follow(given)
        if str(status).startswith("2") and isinstance(answer, dict):
            return answer
    return None


def _schema(answer: Json, follow: Follow) -> Json | None:
    content = answer.get("content")
    for media_type, said in content.items() if isinstance(content, dict) else ():
        plain = str(media_type).partition(";")[0]
        if isinstance(said, dict) and (plain == "application/json" or plain.endswith("+json")):
            return follow(said.get("schema"))
    return follow(answer.get("schema"))


def _linked(links: Json, name: str, parameters: list[str], follow: Follow) -> tuple[tuple[str, str], ...]:
    """The parameters that a link back to the operation sets, and where in the answer their values are."""
    for link in map(follow, links.values() if isinstance(links, dict) else ()):
        if not isinstance(link, dict) or link.get("operationId") != name:
            continue
        given = link.get("parameters")
        found = []
        for key, expression in given.items() if isinstance(given, dict) else ():
            parameter = str(key).removeprefix("query.")
            text = str(expression)
            if text.startswith("$response.body#/"):
                found.append((parameter, text.removeprefix("$response.body#")))
            elif text.startswith("$response.header."):
                found.append((parameter, f"header {text.removeprefix('$response.header.').lower()}"))
        if found and all(parameter in parameters for parameter, _ in found):
            return tuple(found)
    return ()


def _cursors(
    schema: Json, parameters: list[str], has_more: bool, follow: Follow
) -> Iterator[tuple[str, str]]:
    """Parameters and the field of the body that is their next value: ``next_marker`` of ``marker``."""
    for around in _AROUND:
        fields = {_letters(key): key for key in _fields(_at(schema, around, follow), follow)}
        for parameter in parameters:
            word = _letters(parameter)
            wanted = [f"next{word}"]
            if word in ("after", "startingafter", "cursor"):
                wanted += _AFTER if has_more else ("next", "endcursor")
            if word == "continue" and around == "/metadata":
                wanted.append(word)
            for each in wanted:
                if each in fields:
                    yield parameter, f"{around}/{escape_pointer(fields[each])}"


def _items(schema: Json | None, follow: Follow) -> str | None:
    """The field that has the items: the only list, or the only one of a usual name; empty for a body that is a list,
    ``None`` where none is plain."""
    if isinstance(schema, dict) and schema.get("type") == "array":
        return ""
    lists = [
        name
        for name, given in _fields(schema, follow).items()
        if isinstance(said := follow(given), dict) and (said.get("type") == "array" or "items" in said)
    ]
    usual = [name for name in lists if name in _LISTS] or lists
    return usual[0] if len(usual) == 1 else None


def _at(schema: Json, pointer: str, follow: Follow) -> Json | None:
    """The schema of what a JSON pointer leads to in values of ``schema``."""
    found = follow(schema)
    for step in pointer.split("/")[1:]:
        found = follow(_fields(found, follow).get(step))
    return found


def _fields(schema: Json, follow: Follow, depth: int = 0) -> dict[str, Json]:
    """The fields of an object, with those of its parts and alternatives."""
    found: dict[str, Json] = {}
    schema = follow(schema)
    if not isinstance(schema, dict) or depth > 8:
        return found
    for key in ("allOf", "anyOf", "oneOf"):
        for part in schema[key] if isinstance(schema.get(key), list) else ():
            found |= _fields(part, follow, depth + 1)
    properties = schema.get("properties")
    return found | properties if isinstance(properties, dict) else found


def _is_text(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    words = schema.get("type")
    parts = [part for key in ("anyOf", "oneOf") for part in schema.get(key) or ()]
    return "string" in (words if isinstance(words, list) else [words]) or any(map(_is_text, parts))


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
