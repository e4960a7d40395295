"""Listings in pages: what documents declare of them, and iterators over a server that has several pages of each."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.compiler.emit.test_operations import COUNT, TEXT, content, parameter, ref

from apimachinery.openapi import HttpError, RetryPolicy, UnreadableAnswerError
from kubewright.cli import main

Json = Any
PETS = {"type": "array", "items": ref("Pet")}
LINK = {"headers": {"Link": {"schema": TEXT}}}


def listing(name: str, fields: Json, *parameters: str, **answer: Json) -> Json:
    schema = {"type": "object", "properties": fields} if isinstance(fields, dict) else PETS
    return {
        "get": {
            "operationId": name,
            "tags": ["pets"],
            "parameters": [parameter(each, "query") for each in parameters],
            "responses": {"200": {"description": "", **content(schema), **answer}},
        }
    }


NEXT = {"data": PETS, "links": {"type": "object", "properties": {"next": TEXT}}}
DOCUMENT: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Pages", "version": "1"},
    "security": [{"key": []}],
    "paths": {
        "/header": listing("byHeader", None, "page", **LINK),
        "/elsewhere": listing("elsewhere", None, "page", **LINK),
        "/declared": listing(
            "declared",
            {"pets": PETS, "at": {"type": ["string", "null"]}},
            "from",
            links={"next": {"operationId": "declared", "parameters": {"from": "$response.body#/at"}}},
        ),
        "/marker": listing("byMarker", {"entries": PETS, "order": PETS, "next_marker": TEXT}, "marker"),
        "/after": listing(
            "byLast", {"data": PETS, "last_id": TEXT, "has_more": {"type": "boolean"}}, "after", "limit"
        ),
        "/url": listing("byUrl", NEXT, "page"),
        "/wholes": listing("wholes", {"a": PETS, "b": PETS, "next_marker": TEXT}, "marker"),
        "/again": listing("again", NEXT, "page"),
        "/fails": listing("fails", NEXT, "page"),
        "/no": listing("noPages", {"data": PETS, "next": TEXT}),
    },
    "components": {
        "schemas": {"Pet": {"type": "object", "required": ["id"], "properties": {"id": COUNT}}},
        "securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}},
    },
}


class Handler(BaseHTTPRequestHandler):
    """Three pages of two pets each, of every listing."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append(self.path)
        split = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(split.query).items()}
        way = split.path.removeprefix("/v1/").split("/")[0]
        at = int(query.get("page") or query.get("from") or query.get("marker") or query.get("after") or 0)
        pets, last = [{"id": 2 * at}, {"id": 2 * at + 1}], at == 2
        here = f"http://127.0.0.1:{self.server.server_address[1]}"
        link, value = "", dict[str, Any]()
        if way in ("header", "elsewhere"):
            there = f"{here}/v1/header/by-id" if way == "header" else "https://elsewhere.example/v2/x"
            link = '</v1>; rel="first"' + ("" if last else f", <{there}?page={at + 1}>; rel=next")
        elif way == "declared":
            value = {"pets": pets, "at": None if last else str(at + 1)}
        elif way in ("marker", "wholes"):
            value = {
                "entries": pets,
                "a": pets,
                "order": [],
                **({} if last else {"next_marker": str(at + 1)}),
            }
        elif way == "after":
            value = {"data": pets, "last_id": str(at + 1), "has_more": not last}
        elif way == "url":
            value = {"data": pets, "links": {} if last else {"next": f"?page={at + 1}"}}
        elif way == "again":
            value = {"data": pets, "links": {"next": "/v1/again?page=1"}}
        else:
            self.server.failures += at
            value = {"data": pets, "links": {"next": f"{here}/v1/fails?page={at + 1}"}}
        busy = way == "fails" and at > 0 and self.server.failures != 2
        self.answer(503 if busy else 200, value or pets, link)

    def answer(self, code: int, value: Json, link: str) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if link:
            self.send_header("Link", link)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Silent."""


class Server(ThreadingHTTPServer):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[str] = []
        self.failures = 0


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join(60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("pages")
    (place / "spec.json").write_text(json.dumps(DOCUMENT))
    arguments = ["generate", str(place / "spec.json"), "--package", "paged_api", "--output", str(place)]
    assert main([*arguments, "-q", "-j1"]) == 0
    sys.path.insert(0, str(place))
    yield place
    sys.path.remove(str(place))
    for name in [name for name in sys.modules if name.startswith("paged_api")]:
        del sys.modules[name]


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


@pytest.fixture
def pets(folder: Path, server: Server) -> Iterator[Any]:
    with importlib.import_module("paged_api.client").Client(url(server), key="s") as client:
        yield client.pets


WAYS = {
    "by_header": ["/v1/header?key=s", "/v1/header/by-id?page=1&key=s", "/v1/header/by-id?page=2&key=s"],
    "elsewhere": ["/v1/elsewhere?key=s", "/v1/elsewhere?page=1&key=s", "/v1/elsewhere?page=2&key=s"],
    "declared": ["/v1/declared?key=s", "/v1/declared?from=1&key=s", "/v1/declared?from=2&key=s"],
    "by_marker": ["/v1/marker?key=s", "/v1/marker?marker=1&key=s", "/v1/marker?marker=2&key=s"],
    "by_last": ["/v1/after?key=s", "/v1/after?after=1&key=s", "/v1/after?after=2&key=s"],
    "by_url": ["/v1/url?key=s", "/v1/url?page=1&key=s", "/v1/url?page=2&key=s"],
}


@pytest.mark.parametrize("way", WAYS)
def test_items_of_all_pages(pets: Any, server: Server, way: str) -> None:
    models = importlib.import_module("paged_api.models")
    assert list(getattr(pets, f"iterate_{way}")()) == [models.Pet(id=number) for number in range(6)]
    assert server.seen == WAYS[way]


def test_pages_are_asked_for_when_they_are_needed_and_arguments_stay(pets: Any, server: Server) -> None:
    found = pets.iterate_by_last(limit="2")
    assert [next(found).id for _ in range(3)] == [0, 1, 2]
    assert server.seen == ["/v1/after?limit=2&key=s", "/v1/after?after=1&limit=2&key=s"]


def test_pages_whose_items_are_not_plain_come_whole(folder: Path, pets: Any) -> None:
    assert [page.a[0].id for page in pets.iterate_wholes()] == [0, 2, 4]
    text = (folder / "paged_api/operations/pets.py").read_text()
    assert "-> Iterator[models.WholesResponse]:" in text and "-> AsyncIterator[models.Pet]:" in text
    assert not hasattr(pets, "iterate_no_pages")


def test_a_page_that_leads_to_itself_is_refused(pets: Any) -> None:
    with pytest.raises(
        UnreadableAnswerError, match=r"GET /again: 200, .* next page is one that has been read"
    ):
        list(pets.iterate_again())


def test_a_page_that_fails(folder: Path, server: Server) -> None:
    client = importlib.import_module("paged_api.client").Client
    with client(url(server)) as shop:
        found = shop.pets.iterate_fails()
        assert [next(found).id, next(found).id] == [0, 1]
        with pytest.raises(HttpError, match="503"):
            next(found)
    server.failures = 0
    with client(url(server), retries=RetryPolicy(first_wait=0.001)) as shop:
        found = shop.pets.iterate_fails()
        assert [next(found).id for _ in range(3)] == [0, 1, 2]


def test_awaited(folder: Path, server: Server) -> None:
    async def read() -> list[int]:
        async with importlib.import_module("paged_api.async_client").AsyncClient(url(server)) as client:
            return [pet.id async for pet in client.pets.iterate_by_header()]

    assert asyncio.run(read()) == list(range(6))
