"""Calls every operation of an OpenAPI document through its generated client, and judges each request by its schemas.

    python -m tests.openapi.every_request petstore.yaml box.json

Arguments are drawn from the document and turned into the types of the client; a server on loopback reads the requests
by itself (styles, forms, bodies), holds them against the schemas with openapi-schema-validator, and answers with a
body drawn from the document, which the client has to read. Prints a line a document: operations, calls, what was wrong.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import tempfile
import threading
import types
import typing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from tests.openapi.drawing import Described, Undrawable

from apimachinery.openapi.encoding import encode, plain
from apimachinery.openapi.operation import Left
from apimachinery.typed.unions import read_untagged
from kubewright.cli import main
from kubewright.diagnostics import Diagnostics
from kubewright.source.reading import read_input

Json = Any
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


@dataclass(slots=True)
class Judge:
    """Reads requests by the document, and says what is wrong with them."""

    described: Described
    expected: Json = None
    wrong: list[str] = field(default_factory=list)
    answer: tuple[int, str, bytes] = (200, "", b"")

    def judge(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        path, given, said, drawn, media = self.expected
        route, _, query = target.partition("?")
        pattern = re.sub(r"\\\{[^{}]+?\\\}", "([^/]*)", re.escape(path.partition("?")[0]))
        match = re.fullmatch(pattern, route)
        if method.lower() != said["method"] or match is None:
            self.wrong.append(f"{method} {target} for {said['method']} {path}")
            return
        names = re.findall(r"\{([^{}]+)\}", path)
        sent: dict[tuple[str, str], Any] = {
            ("path", n): unquote(t) for n, t in zip(names, match.groups(), strict=True)
        }
        pairs = parse_qsl(query, keep_blank_values=True)
        for parameter in given:
            self._parameter(parameter, sent, pairs, headers)
        for (name, place), value in drawn.items():
            if (place, name) not in sent or sent[place, name] != value:
                self.wrong.append(f"{place} {name}: {value!r} came as {sent.get((place, name))!r}")
        if media:
            self._body(headers.get("content-type", ""), body, said, media)

    def _parameter(
        self,
        parameter: Json,
        sent: dict[tuple[str, str], Any],
        pairs: list[tuple[str, str]],
        headers: dict[str, str],
    ) -> None:
        name, place = parameter["name"], parameter["in"]
        if place in ("body", "formData") or is_set_elsewhere(parameter):
            return
        schema = self.described.follow(schema_of(parameter))
        text: Any = sent.pop((place, name), None)
        if place == "query":
            text = [value for key, value in pairs if key == name] or None
            if "content" in parameter and text:
                sent[place, name] = json.loads(text[0])
                return
            if text and not (is_list(self.described, schema) and exploded(parameter)):
                text = text[0]
            if text is None and is_object(self.described, schema):
                return
        elif place == "header":
            text = headers.get(name.lower())
        if text is None:
            if parameter.get("required") and place != "cookie":
                self.wrong.append(f"{place} {name} is missing")
            return
        value = coerce(self.described, schema, text, separator(parameter))
        sent[place, name] = value
        self.wrong += [f"{place} {name}: {fault}" for fault in self.described.faults(schema, value)]

    def _body(self, content_type: str, body: bytes, said: Json, media: tuple[str, Json, Json]) -> None:
        name, schema, drawn = media
        if name != "*/*" and content_type.partition(";")[0] != name.partition(";")[0]:
            self.wrong.append(f"the body is {content_type}, not {name}")
        elif name.startswith(MULTIPART) or isinstance(drawn, bytes):
            return
        elif name.startswith("text/"):
            if body.decode() != drawn:
                self.wrong.append(f"text {drawn!r} came as {body!r}")
        elif name == FORM:
            names = {key.partition("[")[0] for key, _ in parse_qsl(body.decode(), keep_blank_values=True)}
            if not names <= set(drawn):
                self.wrong.append(f"the form has {sorted(names - set(drawn))}")
        else:
            value = json.loads(body)
            self.wrong += [f"body: {fault}" for fault in self.described.faults(schema, value)]
            if not same(value, drawn):
                self.wrong.append(f"body {drawn!r} came as {value!r}"[:300])


def same(one: Json, other: Json) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def schema_of(parameter: Json) -> Json:
    if "content" in parameter:
        return next(iter(parameter["content"].values())).get("schema", {})
    known = {"name", "in", "required", "description", "collectionFormat"}
    return (
        parameter["schema"]
        if "schema" in parameter
        else {k: v for k, v in parameter.items() if k not in known}
    )


def is_set_elsewhere(parameter: Json) -> bool:
    """Whether a header follows from the body, the answers or the credentials, as OpenAPI has it."""
    return parameter["in"] == "header" and parameter["name"].lower() in (
        "accept",
        "content-type",
        "authorization",
    )


def is_list(described: Described, schema: Json) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "array" or "items" in schema)


def is_object(described: Described, schema: Json) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "object" or "properties" in schema)


def exploded(parameter: Json) -> bool:
    if "collectionFormat" in parameter or ("type" in parameter and "schema" not in parameter):
        return bool(parameter.get("collectionFormat") == "multi")
    return bool(parameter.get("explode", parameter.get("style", "form") == "form"))


def separator(parameter: Json) -> str:
    return {"spaceDelimited": " ", "pipeDelimited": "|", "ssv": " ", "pipes": "|"}.get(
        parameter.get("style", parameter.get("collectionFormat", "")), ","
    )


def coerce(described: Described, schema: Json, text: Any, between: str) -> Json:
    """Text of a request as the schema has it."""
    schema = described.follow(schema)
    if not isinstance(schema, dict):
        return text
    if isinstance(text, list) or is_list(described, schema):
        parts = text if isinstance(text, list) else text.split(between)
        return [coerce(described, schema.get("items", {}), part, between) for part in parts]
    if is_object(described, schema):
        return json.loads(text) if text.startswith("{") else text
    words = schema.get("type")
    words = words if isinstance(words, list) else [words]
    parts = [*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())]
    if words == [None]:
        for part in parts:
            value = coerce(described, part, text, between)
            if not described.faults(part, value):
                return value
    if "boolean" in words and text in ("true", "false"):
        return text == "true"
    if "integer" in words and re.fullmatch(r"-?\d+", text):
        return int(text)
    if "number" in words and re.fullmatch(r"-?[\d.eE+-]+", text):
        return float(text)
    return text


class Handler(BaseHTTPRequestHandler):
    """Hands each request to the judge, and answers as it says."""

    protocol_version = "HTTP/1.1"
    judge: Judge

    def do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {key.lower(): value for key, value in self.headers.items()}
        try:
            self.judge.judge(self.command, self.path, headers, body)
        except Exception as error:  # a fault of this judge counts too
            self.judge.wrong.append(f"judge: {type(error).__name__}: {error}")
        code, kind, data = self.judge.answer
        self.send_response(code)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = do_TRACE = do  # noqa: N815

    def log_message(self, *arguments: Any) -> None:
        """Silent."""


@dataclass(slots=True)
class Outcome:
    """What came of a document."""

    operations: int = 0
    called: int = 0
    undrawn: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def check(
    path: Path, package: str, folder: Path, options: tuple[str, ...] = (), judged_by: Path | None = None
) -> Outcome:
    """Generates a client and calls each operation once; requests are held against ``judged_by``, if that is given."""
    outcome = Outcome()
    if main(["generate", str(path), "--package", package, "--output", str(folder), "-q", "-j1", *options]):
        outcome.wrong.append("nothing is generated")
        return outcome
    (document,) = read_input([judged_by or path], Diagnostics()).openapi
    described = Described(document.value)
    sys.path.insert(0, str(folder))
    client = importlib.import_module(f"{package}.client")
    judge = Judge(described)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"judge": judge}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with client.Client(f"http://127.0.0.1:{server.server_address[1]}", timeout=90) as made:
            methods = methods_of(made)
            for where, method, said, parameters in described.operations():
                outcome.operations += 1
                found = methods.get((method.upper(), where))
                if found is None:
                    outcome.wrong.append(f"{method} {where}: no method")
                    continue
                _call(described, judge, found, where, {**said, "method": method}, parameters, outcome)
    finally:
        server.shutdown()
        server.server_close()
        sys.path.remove(str(folder))
    return outcome


def methods_of(client: Any) -> dict[tuple[str, str], tuple[Any, Any, dict[str, Any]]]:
    """Method and path → bound method, operation, and the module that has it."""
    found = {}
    for name in dir(type(client)):
        attribute = inspect.getattr_static(type(client), name)
        if not hasattr(attribute, "func") or name.startswith("_"):
            continue
        group = getattr(client, name)
        module = vars(sys.modules[type(group).__module__])
        for each, function in vars(type(group)).items():
            if not each.startswith("_") and not {"stream", "iterate"} & {*function.__code__.co_names}:
                constant = next(n for n in function.__code__.co_names if n.startswith("_") and n != "_client")
                operation = module[constant]
                found[operation.method, operation.path] = (getattr(group, each), operation, module)
    return found


def _call(
    described: Described,
    judge: Judge,
    found: Any,
    path: str,
    said: Json,
    parameters: list[Json],
    outcome: Outcome,
) -> None:
    function, operation, module = found
    where = f"{said['method']} {path}"
    try:
        arguments, drawn, media = _arguments(described, operation, said, parameters)
        judge.answer, wanted = _answer(described, said)
    except Undrawable as reason:
        outcome.undrawn.append(f"{where}: {reason}"[:200])
        return
    judge.expected, judge.wrong = (path, parameters, said, drawn, media), []
    try:
        bound = _bind(function, module, operation, arguments, media)
        result = function(*bound[0], **bound[1])
        if wanted is not None and not same(plain(result), wanted) and not isinstance(wanted, float):
            judge.wrong += [f"answer {wanted!r} was read as {plain(result)!r}"[:300]]
    except Exception as error:
        judge.wrong.append(f"{type(error).__name__}: {error}"[:300])
    outcome.called += 1
    outcome.wrong += [f"{where}: {text}" for text in judge.wrong]


def _arguments(described: Described, operation: Any, said: Json, parameters: list[Json]) -> Any:
    arguments, drawn = {}, {}
    for parameter in parameters:
        name, place = parameter["name"], parameter["in"]
        required = place == "path" or parameter.get("required")
        if place in ("body", "formData", "cookie") or is_set_elsewhere(parameter):
            continue
        schema = described.follow(schema_of(parameter))
        items = described.follow(schema.get("items", {})) if isinstance(schema, dict) else {}
        if (is_object(described, schema) or is_object(described, items)) and not required:
            continue  # how objects in lists are written, OpenAPI leaves open
        try:
            value = described.draw(schema)
        except Undrawable:
            if required:
                raise
            continue
        if (isinstance(value, dict) or value in ("", [])) and not required:
            continue
        arguments[name, place] = value
        if not is_object(described, schema):
            drawn[name, place] = value
    return arguments, drawn, _media(described, said, parameters)


def _media(described: Described, said: Json, parameters: list[Json]) -> tuple[str, Json, Json] | None:
    body = described.follow(said.get("requestBody"))
    if body:
        name, content = next(iter(body["content"].items()))
        schema = content.get("schema", {})
    else:
        given = next((p for p in parameters if p["in"] == "body"), None)
        if given is None:
            return None
        takes = said.get("consumes", described.value.get("consumes")) or ["application/json"]
        name, schema = takes[0], given.get("schema", {})
    if given_bytes(name):
        return name, schema, b"bytes"
    if name.startswith("text/"):
        return name, schema, "text"
    if name == MULTIPART:
        return name, schema, described.draw(schema)
    if not (
        name in (FORM, "application/json") or name.partition(";")[0].endswith("+json")
    ) and not name.startswith("application/json"):
        return None if not (body or {}).get("required") else (name, schema, b"bytes")
    reason = Undrawable("the schema asks for what it does not declare")
    for _ in range(8):
        try:
            drawn = described.draw(schema)
        except Undrawable as found:
            reason = found
            continue
        if not described.faults(schema, drawn):
            return name, schema, drawn
    raise reason


def given_bytes(media_type: str) -> bool:
    """Whether a body is bytes."""
    return media_type.startswith(("application/octet-stream", "application/x-tar", "image/", "*/*"))


def _bind(
    function: Any, module: dict[str, Any], operation: Any, arguments: Any, media: Any
) -> tuple[list[Any], dict[str, Any]]:
    hints = typing.get_type_hints(function, module)
    names = list(inspect.signature(function).parameters)
    by_place = dict(
        zip(
            ((p.name, p.place) for p in operation.parameters),
            _ordered(function, names, operation),
            strict=True,
        )
    )
    keywords = {}
    for key, value in arguments.items():
        if key in by_place:
            keywords[by_place[key]] = msgspec.convert(value, hints[by_place[key]], dec_hook=read_untagged)
    if media is not None and "body" in names:
        kinds = hints["body"]
        members = [each for each in typing.get_args(kinds) if each is not Left]
        if Left in typing.get_args(kinds):
            kinds = typing.Union[tuple(members)]  # noqa: UP007
        keywords["body"] = typed(media[2], kinds)
        if "content_type" in names:
            keywords["content_type"] = media[0]
    return [], keywords


def typed(value: Json, kinds: Any) -> Any:
    """``value`` as one of the types of an argument: as the first that takes it whole."""
    if isinstance(value, bytes):
        return value
    first: Exception | None = None
    for kind in (
        *(typing.get_args(kinds) if typing.get_origin(kinds) in (typing.Union, types.UnionType) else ()),
        kinds,
    ):
        try:
            made = msgspec.convert(value, kind, builtin_types=(), dec_hook=read_untagged)
            if same(json.loads(encode(made)), value):
                return made
        except (msgspec.ValidationError, TypeError) as error:
            first = first or error
    raise first or ValueError(f"no type takes {value!r} whole: {kinds}")


def _ordered(function: Any, names: list[str], operation: Any) -> list[str]:
    """The argument of each parameter: as the function passes them on."""
    source = inspect.getsource(function)
    passed = source[source.rindex("self._client.call(") :].splitlines()[2:]
    return [line.strip().rstrip(",") for line in passed[: len(operation.parameters)]]


def _answer(described: Described, said: Json) -> tuple[tuple[int, str, bytes], Json]:
    for status, answer in said.get("responses", {}).items():
        text = str(status)
        if text[:1] != "2":
            continue
        answer = described.follow(answer)
        code = int(text.replace("X", "0").replace("x", "0"))
        for name, content in (answer.get("content") or {}).items():
            if (
                name.partition(";")[0] in ("application/json",)
                and "schema" in content
                and said["method"] != "head"
            ):
                value = described.draw(content["schema"], sent=False)
                return (code, "application/json", json.dumps(value).encode()), value
        if "schema" in answer and answer["schema"].get("type") != "file" and said["method"] != "head":
            value = described.draw(answer["schema"], sent=False)
            return (code, "application/json", json.dumps(value).encode()), value
        return (code, "", b""), None
    return (200, "", b""), None


def run(paths: list[str]) -> int:
    """Checks each document; returns how many things were wrong."""
    total = 0
    for number, name in enumerate(paths):
        with tempfile.TemporaryDirectory() as folder:
            outcome = check(Path(name), f"every{number}_api", Path(folder))
        total += len(outcome.wrong)
        undrawn = len(outcome.undrawn)
        counts = f"{outcome.operations} operations, {outcome.called} called, {undrawn} not drawn"
        print(f"{Path(name).name}: {counts}, {len(outcome.wrong)} wrong")
        for line in [*outcome.wrong[:40], *(f"not drawn: {line}" for line in outcome.undrawn)]:
            print(f"  {line}")
    return total


if __name__ == "__main__":
    sys.exit(bool(run(sys.argv[1:])))
