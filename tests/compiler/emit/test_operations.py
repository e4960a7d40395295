"""Typed clients of ordinary OpenAPI documents, tried against a small server that says what it was sent."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.mypy_run import mypy

from apimachinery.openapi import HttpError, RetryPolicy, UnreadableAnswerError
from kubewright.cli import main
from kubewright.emit.code import render

Json = Any
TEXT, COUNT = {"type": "string"}, {"type": "integer"}
ROOT = Path(__file__).parents[3]


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def parameter(name: str, place: str, schema: Json = TEXT, **more: Json) -> Json:
    return {"name": name, "in": place, "schema": schema, **more}


def content(schema: Json, media_type: str = "application/json") -> Json:
    return {"content": {media_type: {"schema": schema}}}


PROBLEM = {"default": {"description": "", **content(ref("Problem"))}}


def operation(name: str, answer: Json | None = None, tag: str = "pets", **more: Json) -> Json:
    good = {"description": "", **content(answer)} if answer else {"description": ""}
    return {
        "operationId": name,
        "tags": [tag],
        "responses": {"200" if answer else "204": good, **PROBLEM},
        **more,
    }


def body(schema: Json, media_type: str = "application/json", required: bool = True) -> Json:
    return {"requestBody": {"required": required, **content(schema, media_type)}}


PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": TEXT,
        "born": {**TEXT, "format": "date-time"},
        "kind": {**TEXT, "enum": ["cat", "dog"]},
    },
}
ECHO = {"type": "object", "additionalProperties": {}}
LIST = {"type": "array", "items": TEXT}
DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Pet shop", "version": "1"},
    "servers": [{"url": "https://{host}/v1", "variables": {"host": {"default": "pets.example"}}}],
    "security": [{"token": []}],
    "paths": {
        "/pets": {
            "parameters": [parameter("trace", "header")],
            "get": operation(
                "listPets",
                ECHO,
                description="Pets, a page at a time.",
                parameters=[
                    parameter(
                        "limit", "query", {**COUNT, "allOf": [{"minimum": 1}]}, description="How many."
                    ),
                    parameter("tags", "query", LIST),
                    parameter("ids", "query", LIST, explode=False),
                    parameter("either", "query", LIST, style="pipeDelimited"),
                    parameter(
                        "filter", "query", {"type": "object", "properties": {"a": TEXT}}, style="deepObject"
                    ),
                    parameter("since", "query", {**TEXT, "format": "date-time"}),
                    parameter("order", "query", {**TEXT, "enum": ["name", "born"]}, required=True),
                    {"name": "raw", "in": "query", **content(LIST)},
                    parameter("session", "cookie"),
                ],
            ),
            "post": operation("createPet", ref("Pet"), **body(ref("NewPet"))),
        },
        "/pets/{pet-id}": {
            "get": operation("pets/get", ref("Pet"), parameters=[parameter("pet-id", "path", required=True)]),
            "delete": operation(
                "pets/delete",
                parameters=[parameter("pet-id", "path", required=True)],
                security=[{"basic": []}, {"key": []}],
            ),
        },
        "/pets/{id}/photo": {
            "parameters": [parameter("id", "path", COUNT, required=True)],
            "put": operation(
                "uploadPhoto",
                ECHO,
                tag="photos of pets",
                **body(
                    {
                        "type": "object",
                        "required": ["file"],
                        "properties": {"file": {**TEXT, "format": "binary"}, "note": TEXT, "meta": ECHO},
                    },
                    "multipart/form-data",
                ),
            ),
            "get": {
                "operationId": "getPhoto",
                "tags": ["photos of pets"],
                "responses": {"200": {"description": "", "content": {"image/png": {}}}},
            },
        },
        "/login": {
            "post": {
                "security": [],
                **body(
                    {"type": "object", "required": ["user"], "properties": {"user": TEXT, "roles": LIST}},
                    "application/x-www-form-urlencoded",
                ),
                "responses": {"200": {"description": "", **content(ECHO)}},
            }
        },
        "/talk": {
            "post": {
                "operationId": "talk",
                **body(ref("NewPet")),
                "responses": {
                    "200": {
                        "description": "",
                        "content": {
                            "application/json": {"schema": ref("Pet")},
                            "text/event-stream": {},
                            "application/x-ndjson": {"schema": ref("Pet")},
                        },
                    }
                },
            }
        },
        "/log": {
            "get": {"responses": {"200": {"description": "", **content(ref("Pet"), "application/jsonl")}}}
        },
        "/accounts": {"post": operation("signUp", ref("Account"), tag="accounts", **body(ref("Account")))},
        "/notes": {
            "post": {
                "requestBody": {"content": {"text/plain": {}, "application/json": {"schema": ref("NewPet")}}},
                "responses": {"200": {"description": "", **content(ECHO)}},
            }
        },
    },
    "components": {
        "schemas": {
            "NewPet": PET,
            "Pet": {**PET, "required": ["name", "id"], "properties": {**PET["properties"], "id": COUNT}},
            "Account": {
                "type": "object",
                "required": ["id", "user", "password"],
                "properties": {
                    "id": {**COUNT, "readOnly": True},
                    "user": TEXT,
                    "password": {**TEXT, "writeOnly": True},
                    "note": {**TEXT, "nullable": True},
                },
            },
            "Problem": {"type": "object", "required": ["title"], "properties": {"title": TEXT}},
        },
        "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "basic"},
            "key": {"type": "apiKey", "in": "query", "name": "api_key"},
        },
    },
}


class Handler(BaseHTTPRequestHandler):
    """Answers pets by their number, and anything else with what it was sent."""

    protocol_version = "HTTP/1.1"

    def do(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if path == "/v1/pets/1":
            self.answer(200, {"id": 1, "name": "a", "kind": "cat"})
        elif path == "/v1/pets/2":
            self.answer(404, {"title": "no pet 2"})
        elif path == "/v1/pets/3":
            self.answer(200, {"name": "without a number"})
        elif path.endswith("/photo") and self.command == "GET":
            self.answer(200, b"\x89PNG", "image/png")
        elif self.command == "DELETE":
            self.server.seen.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
            self.answer(204, b"")
        elif path == "/v1/accounts":
            self.answer(200, {"id": 1, "user": sent.decode()})
        elif path == "/v1/talk":
            self.server.seen.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
            events = b': hello\r\n\r\nevent: pet\r\nid: 7\r\ndata: {"id": 1,\r\n'
            events += b'data: "name": "a"}\r\n\r\ndata: [DONE]\n\nlost'
            self.answer(200, events, "text/event-stream")
        elif path == "/v1/log":
            self.answer(200, b'{"id": 1, "name": "a"}\n\n{"id": 2, "name": "b"}\r\n', "application/jsonl")
        elif path == "/v1/pets/9":
            self.server.tries += 1  # type: ignore[attr-defined]
            busy = self.server.tries < 3  # type: ignore[attr-defined]
            self.answer(503 if busy else 200, {"title": "busy"} if busy else {"id": 9, "name": "late"})
        elif path == "/v1/pets" and self.command == "POST":
            self.answer(200, {"id": 7, **json.loads(sent)})
        else:
            self.answer(200, {"path": self.path, "headers": dict(self.headers), "sent": sent.decode()})

    do_GET = do_POST = do_PUT = do_DELETE = do  # noqa: N815 - names of the standard library

    def answer(self, code: int, value: Json, kind: str = "application/json; charset=utf-8") -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Silent."""


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.seen = []  # type: ignore[attr-defined]
    made.tries = 0  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("shop")
    (place / "spec.json").write_text(json.dumps(DOCUMENT))
    arguments = ["generate", str(place / "spec.json"), "--package", "pet_shop", "--output", str(place)]
    assert main([*arguments, "-q", "-j1"]) == 0
    sys.path.insert(0, str(place))
    yield place
    sys.path.remove(str(place))
    for name in [name for name in sys.modules if name.startswith("pet_shop")]:
        del sys.modules[name]


@pytest.fixture
def url(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


@pytest.fixture
def shop(folder: Path, url: str) -> Iterator[Any]:
    with importlib.import_module("pet_shop.client").Client(url, token=lambda: "secret") as client:
        yield client


def test_parameters_are_written_by_their_styles(shop: Any) -> None:
    models = importlib.import_module("pet_shop.models")
    told = shop.pets.list_pets(
        order="name",
        limit=3,
        tags=["a b", "c"],
        ids=["1", "2"],
        either=["x", "y"],
        filter=models.Filter(a="&"),
        since=datetime(2026, 1, 2, tzinfo=UTC),
        raw=["j"],
        session="s",
        trace="t",
    )
    path, _, query = told["path"].partition("?")
    assert path == "/v1/pets"
    assert query.split("&") == [
        "limit=3",
        "tags=a%20b",
        "tags=c",
        "ids=1,2",
        "either=x|y",
        "filter[a]=%26",
        "since=2026-01-02T00%3A00%3A00Z",
        "order=name",
        "raw=%5B%22j%22%5D",
    ]
    headers = told["headers"]
    assert (headers["trace"], headers["Cookie"], headers["Authorization"]) == (
        "t",
        "session=s",
        "Bearer secret",
    )


def test_bodies_and_answers_are_models(shop: Any) -> None:
    models = importlib.import_module("pet_shop.models")
    assert shop.pets.create_pet(models.NewPet(name="x")) == models.Pet(id=7, name="x")
    assert shop.pets.get("1").kind == "cat"
    assert shop.photos_of_pets.get_photo(1) == b"\x89PNG"


def test_an_error_has_the_type_that_the_document_says(shop: Any) -> None:
    models = importlib.import_module("pet_shop.models")
    with pytest.raises(HttpError, match=r"GET /pets/\{pet-id\}: 404: .*no pet 2") as caught:
        shop.pets.get("2")
    assert (caught.value.status, caught.value.problem) == (404, models.Problem(title="no pet 2"))
    with pytest.raises(UnreadableAnswerError, match="missing required field `id`"):
        shop.pets.get("3")


def test_forms(shop: Any) -> None:
    models = importlib.import_module("pet_shop.models")
    told = shop.login.post_login(models.PostLoginRequest(user="a&b", roles=["x", "y"]))
    assert told["sent"] == "user=a%26b&roles=x&roles=y"
    assert "Authorization" not in told["headers"]
    told = shop.photos_of_pets.upload_photo(
        1, models.UploadPhotoRequest(file=b"bytes", note="n", meta={"a": 1})
    )
    boundary = told["headers"]["Content-Type"].removeprefix("multipart/form-data; boundary=")
    parts = [part.strip().split("\r\n\r\n") for part in told["sent"].split(f"--{boundary}")[1:-1]]
    assert [part[1] for part in parts] == ["bytes", "n", '{"a":1}']
    assert 'name="file"; filename="file"' in parts[0][0]


def test_answers_that_go_on(folder: Path, shop: Any, server: Any, url: str) -> None:
    models = importlib.import_module("pet_shop.models")
    first, last = shop.talk.stream_talk(models.NewPet(name="x"))
    assert (first.event, first.id, first.read(models.Pet)) == ("pet", "7", models.Pet(id=1, name="a"))
    assert (last.event, last.data) == ("message", "[DONE]")
    _, headers = server.seen.pop()
    assert headers["Accept"] == "text/event-stream, application/x-ndjson"
    pets = [models.Pet(id=1, name="a"), models.Pet(id=2, name="b")]
    assert list(shop.log.stream_get_log()) == pets
    assert shop.log.get_log() == pets

    async def read() -> list[Any]:
        async with importlib.import_module("pet_shop.async_client").AsyncClient(url) as client:
            return [pet async for pet in client.log.stream_get_log()]

    assert asyncio.run(read()) == pets
    text = (folder / "pet_shop/operations/log.py").read_text()
    assert "-> Iterator[models.Pet]:" in text and "-> AsyncIterator[models.Pet]:" in text


def test_each_side_gives_what_is_its_own(shop: Any) -> None:
    account = importlib.import_module("pet_shop.models").Account
    with pytest.raises(TypeError, match="user"):
        account(password="p")
    made = shop.accounts.sign_up(account(user="u", password="p"))
    assert (made.id, made.password) == (1, None)
    assert json.loads(made.user) == {"user": "u", "password": "p"}
    assert json.loads(shop.accounts.sign_up(account(user="u", note=None)).user) == {"user": "u", "note": None}


def test_retries_are_an_option(folder: Path, url: str, server: Any) -> None:
    client = importlib.import_module("pet_shop.client").Client
    with client(url) as shop, pytest.raises(HttpError, match="503"):
        shop.pets.get("9")
    with client(url, retries=RetryPolicy(first_wait=0.001)) as shop:
        assert shop.pets.get("9").name == "late"
        with pytest.raises(HttpError, match="404"):
            shop.pets.get("2")
    assert server.tries == 3


def test_a_body_in_one_of_several_media_types(shop: Any) -> None:
    models = importlib.import_module("pet_shop.models")
    assert shop.notes.post_notes(body="words")["sent"] == "words"
    told = shop.notes.post_notes(body=models.NewPet(name="x"), content_type="application/json")
    assert (told["headers"]["Content-Type"], told["sent"]) == ("application/json", '{"name":"x"}')
    assert shop.notes.post_notes()["sent"] == ""


def test_the_first_credentials_that_are_given_are_sent(folder: Path, url: str, server: Any) -> None:
    client = importlib.import_module("pet_shop.client").Client
    with client(url, key="k&") as shop:
        assert shop.pets.delete("5") is None
    with client(url, key="k", basic=("user", "pass")) as shop:
        shop.pets.delete("5")
    (first, _), (second, headers) = server.seen
    assert first == "/v1/pets/5?api_key=k%26"
    assert (second, headers["Authorization"]) == ("/v1/pets/5", "Basic dXNlcjpwYXNz")


@pytest.mark.parametrize(("value", "reason"), [("..", "part of the path"), ("", "part of the path")])
def test_what_would_lead_elsewhere_is_refused(shop: Any, value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        shop.pets.get(value)
    with pytest.raises(ValueError, match="more than one line"):
        shop.pets.list_pets(order="name", trace="a\r\nHost: b")


def test_awaited(folder: Path, url: str) -> None:
    async def call() -> Json:
        async with importlib.import_module("pet_shop.async_client").AsyncClient(url) as shop:
            return await shop.pets.get("1")

    assert asyncio.run(call()).name == "a"


def test_the_words_of_the_document_and_no_others(folder: Path) -> None:
    client = importlib.import_module("pet_shop.client").Client
    pets = importlib.import_module("pet_shop.operations.pets").Pets
    assert "How many." in pets.list_pets.__doc__ and pets.list_pets.__doc__.startswith("Pets, a page")
    text = "".join(path.read_text() for path in (folder / "pet_shop").rglob("*.py"))
    for word in ("Kubernetes", "group-version", "kubectl", "namespace"):
        assert word not in text
    assert client.__init__.__defaults__ == ("https://pets.example/v1",)


V2 = {
    "swagger": "2.0",
    "info": {"title": "Old", "version": "1"},
    "host": "old.example",
    "basePath": "/api",
    "consumes": ["application/json"],
    "produces": ["application/json"],
    "paths": {
        "/things/{name}": {
            "post": {
                "parameters": [
                    {"name": "name", "in": "path", "required": True, "type": "string"},
                    {
                        "name": "ids",
                        "in": "query",
                        "type": "array",
                        "items": COUNT,
                        "collectionFormat": "multi",
                    },
                    {
                        "name": "thing",
                        "in": "body",
                        "required": True,
                        "schema": {"$ref": "#/definitions/Thing"},
                    },
                ],
                "responses": {"200": {"description": "", "schema": {"$ref": "#/definitions/Thing"}}},
            },
            "put": {
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"name": "name", "in": "path", "required": True, "type": "string"},
                    {"name": "data", "in": "formData", "type": "file", "required": True},
                ],
                "responses": {"default": {"description": ""}},
            },
        }
    },
    "definitions": {"Thing": {"type": "object", "properties": {"a": TEXT}}},
}


def test_documents_of_version_2(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(V2))
    arguments = ["generate", str(tmp_path / "spec.json"), "--package", "old_shop", "--output", str(tmp_path)]
    assert main([*arguments, "-q", "-j1"]) == 0
    text = (tmp_path / "old_shop/operations/things.py").read_text()
    assert 'Parameter("ids", "query", explode=True)' in text
    assert "body: models.Thing," in text and "-> models.Thing:" in text
    assert "data: bytes" in (tmp_path / "old_shop/models/models.py").read_text()
    assert 'server: str = "https://old.example/api"' in (tmp_path / "old_shop/client.py").read_text()


@pytest.mark.parametrize("times", [2, 3])
def test_long_names_take_no_module_to_black(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    long = "of_a_name_that_is_longer_than_half_a_line_" * times
    spec = json.loads(json.dumps(DOCUMENT))
    spec["paths"] = {"/pets": {"get": operation(f"get_{long}", ref("Pet"))}, "/a": {"get": operation(long)}}
    (folder / "long.json").write_text(json.dumps(spec))

    def refuse(source: str) -> str:
        raise AssertionError(f"a module of {source.count(chr(10))} lines goes to black")

    some = {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}}
    spec["paths"]["/b"] = {"post": operation(f"put_{long}", tag="b", **body(some, required=False))}
    (folder / "long.json").write_text(json.dumps(spec))
    monkeypatch.setattr(render, "formatted", refuse)
    arguments = ["generate", str(folder / "long.json"), "--package", "long_shop", "--output", str(folder)]
    assert main([*arguments, "-q", "-j1"]) == 0
    assert "| Left = LEFT_OUT,\n" in (folder / "long_shop/operations/b.py").read_text()


def test_an_operation_id_twice_is_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {"/a": {"get": operation("same")}, "/b": {"get": operation("same")}}
    (folder / "twice.json").write_text(json.dumps({**DOCUMENT, "paths": paths}))
    arguments = ["generate", str(folder / "twice.json"), "--package", "twice_shop", "--output", str(folder)]
    assert main([*arguments, "-q", "-j1"]) == 0
    assert "warning K113: the operationId 'same' is that of another operation too" in capsys.readouterr().err
    assert "def same_2(" in (folder / "twice_shop/operations/pets.py").read_text()


@pytest.mark.thorough
def test_clients_pass_mypy(folder: Path) -> None:
    found = mypy(folder, "-p", "pet_shop", path=(ROOT / "generator", folder))
    assert found.returncode == 0, found.stdout[-3000:]
