"""Where the operations of an OpenAPI document are called, and with which credentials."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.ir.operations import SecurityScheme
from kubewright.ir.types import Json


def server_of(value: Json, is_v2: bool) -> str:
    """The URL of the first server that a document, a path or an operation names; empty where there is none."""
    if is_v2:
        host, base = value.get("host"), value.get("basePath", "")
        if not isinstance(host, str) or not isinstance(base, str):
            return base if isinstance(base, str) else ""
        schemes = value.get("schemes")
        scheme = "http" if isinstance(schemes, list) and schemes and "https" not in schemes else "https"
        return f"{scheme}://{host}{base}".rstrip("/")
    servers = value.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    url = first.get("url") if isinstance(first, dict) else None
    if not isinstance(url, str):
        return ""
    variables = first.get("variables") if isinstance(first, dict) else None
    for name, said in variables.items() if isinstance(variables, dict) else ():
        if isinstance(said, dict):
            url = url.replace("{" + str(name) + "}", str(said.get("default", "")))
    return url.rstrip("/")


def scheme_of(name: str, said: Mapping[str, Json]) -> SecurityScheme | None:
    """What a security scheme asks for; ``None`` for one that no client can give."""
    word = said.get("type")
    doc = said["description"] if isinstance(said.get("description"), str) else ""
    if word == "apiKey" and said.get("in") in ("header", "query", "cookie"):
        return SecurityScheme(name=name, place=str(said["in"]), key=str(said.get("name", "")), doc=doc)
    form = str(said.get("scheme", "")).lower()
    if word == "basic" or (word == "http" and form == "basic"):
        return SecurityScheme(
            name=name, place="header", key="Authorization", prefix="Basic ", is_pair=True, doc=doc
        )
    if word in ("oauth2", "openIdConnect") or (word == "http" and form):
        prefix = "Bearer " if word != "http" or form == "bearer" else f"{said['scheme']} "
        return SecurityScheme(name=name, place="header", key="Authorization", prefix=prefix, doc=doc)
    return None


def alternatives_of(given: Json, known: set[str]) -> tuple[tuple[str, ...], ...]:
    """The sets of ``known`` schemes of which an operation needs one."""
    return tuple(
        tuple(entry)
        for entry in (given if isinstance(given, list) else [])
        if isinstance(entry, dict) and entry and all(name in known for name in entry)
    )
