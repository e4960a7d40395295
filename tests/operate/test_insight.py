"""What an operator sees of requests: traces, lines of the log, /debug."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from tests.server.test_shell import ready

from apimachinery.access.authentication import KnownTokens
from apimachinery.access.control import Access, AccessOptions
from apimachinery.http.messages import Request, Response, User
from apimachinery.metrics import Metrics
from apimachinery.server import app as app_module
from apimachinery.server.app import App
from apimachinery.server.operate.debug import Debug
from apimachinery.server.operate.requests import RequestMetrics
from apimachinery.server.operate.tracing import Tracing
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOT_SAMPLED = PARENT[:-1] + "0"
ROOT = User("root", groups=("system:masters",))


async def api(request: Request) -> Response:
    if request.path == "/api/slow":
        await asyncio.sleep(0.06)
    if request.path == "/api/bug":
        raise RuntimeError("a bug")
    return Response(200, b"{}")


async def app(tracing: Tracing | None = None) -> App:
    cache = await WatchCache.open(MemoryStorage())
    tokens = KnownTokens({"root": ROOT, "ann": User("ann")})
    access = Access(AccessOptions(tokens=(tokens,)), cache)
    metrics = Metrics()
    return App(
        api,
        access,
        ready(),
        metrics,
        RequestMetrics(metrics),
        tracing=tracing,
        debug=Debug({"/debug/x": lambda: "x"}),
    )


def ask(
    path: str, *, method: str = "GET", query: str = "", body: bytes = b"", token: str = "root", **more: str
):
    headers = {"host": "x", **{name.replace("_", "-"): value for name, value in more.items()}}
    if token:
        headers["authorization"] = f"Bearer {token}"
    request = Request(method, path, query, headers, body)

    async def run(tracing: Tracing | None = None) -> Response:
        answer = await (await app(tracing)).answer(request, False)
        assert isinstance(answer, Response)
        return answer

    return request, run


def spans(rate: float, *asked):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(rate)))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider, provider.shutdown)
    for _, run in asked:
        asyncio.run(run(tracing))
    return exporter.get_finished_spans()


def test_a_span_is_of_the_trace_that_a_known_client_names():
    (span,) = spans(0, ask("/api/x", traceparent=PARENT, user_agent="u/1", audit_id="given"))
    assert f"{span.context.trace_id:x}" == PARENT[3:35].lstrip("0")
    assert span.parent is not None and f"{span.parent.span_id:x}" == "b7ad6b7169203331"
    assert span.attributes["audit-id"] == "given"
    assert span.attributes["url.path"] == "/api/x" and span.attributes["http.response.status_code"] == 200
    assert span.end_time > span.start_time


def test_sampling():
    assert spans(0, ask("/api/x")) == ()
    assert len(spans(1, ask("/api/x"))) == 1
    assert spans(1, ask("/api/x", traceparent=NOT_SAMPLED)) == ()


def test_who_is_not_known_cannot_make_the_server_sample():
    assert spans(0, ask("/api/x", token="", traceparent=PARENT)) == ()
    (span,) = spans(1, ask("/api/x", token="", traceparent=PARENT))
    assert span.parent is None and f"{span.links[0].context.span_id:x}" == "b7ad6b7169203331"


def test_a_bug_is_an_error_in_the_trace(caplog):
    (span,) = spans(1, ask("/api/bug"))
    assert span.status.status_code.name == "ERROR"


def test_every_answer_has_the_id_of_its_request_and_so_have_lines_of_the_log(caplog):
    caplog.set_level(logging.DEBUG, "kubewright.server")
    request, run = ask("/api/x", audit_id="mine")
    asyncio.run(run())
    assert request.stamp.startswith(b"Audit-Id: mine\r\n") and request.audit_id == "mine"
    made = []
    for _ in range(2):
        request, run = ask("/api/x")
        asyncio.run(run())
        made.append(request.stamp)
    assert made[0] != made[1] and all(len(stamp) == len("Audit-Id: ") + 36 + 2 for stamp in made)
    lines = [record for record in caplog.records if record.message == "request"]
    assert (lines[0].audit_id, lines[0].code, lines[0].user) == ("mine", 200, "root")


def test_secrets_of_a_query_are_not_logged(caplog):
    caplog.set_level(logging.DEBUG, "kubewright.server")
    query = "watch=1&access_token=hid&apiPassword=hid2&x=token&client_secret=hid3"
    asyncio.run(ask("/api/x", query=query)[1]())
    (line,) = [record for record in caplog.records if record.message == "request"]
    assert line.query == "watch=1&access_token=***&apiPassword=***&x=token&client_secret=***"


def test_slow_requests_and_bugs_are_logged_with_the_id(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "kubewright.server")
    for path in ("/api/slow", "/api/x", "/api/bug"):
        # Beside other load any request may take long.
        monkeypatch.setattr(app_module, "SLOW_SECONDS", 0.05 if path == "/api/slow" else 60)
        asyncio.run(ask(path, audit_id=f"id-{path[5:]}")[1]())
    assert [(r.message, r.audit_id) for r in caplog.records] == [
        ("slow request", "id-slow"),
        ("a request failed", "id-bug"),
    ]


@pytest.mark.parametrize(
    ("path", "query", "code", "text"),
    [
        ("/debug/pprof/", "", 200, "/debug/pprof/profile"),
        ("/debug/pprof/goroutine", "", 200, "thread MainThread"),
        ("/debug/pprof/heap", "", 200, " builtins.dict"),
        ("/debug/pprof/profile", "seconds=0.1", 200, "loop;"),
        ("/debug/pprof/profile", "seconds=600", 400, "55 at most"),
        ("/debug/pprof/profile", "seconds=x", 400, "give a number"),
        ("/debug/x", "", 200, "x"),
    ],
)
def test_debug(path, query, code, text):
    answer = asyncio.run(ask(path, query=query)[1]())
    assert answer.status == code and text in answer.body.decode()


def test_debug_is_for_those_who_may():
    for token, code in (("ann", 403), ("", 403)):
        answer = asyncio.run(ask("/debug/pprof/heap", token=token)[1]())
        assert answer.status == code and json.loads(answer.body)["reason"] == "Forbidden"


def test_one_profile_at_a_time():
    async def run() -> list[int]:
        debug = Debug()
        asked = [debug.answer(Request("GET", "/debug/pprof/profile", "seconds=0.1")) for _ in range(2)]
        return [answer.status for answer in await asyncio.gather(*asked) if answer]

    assert sorted(asyncio.run(run())) == [200, 409]


def test_the_level_of_the_log():
    logger = logging.getLogger("kubewright")
    before = logger.level
    try:
        assert asyncio.run(ask("/debug/flags/v", method="PUT", body=b"debug")[1]()).status == 200
        assert asyncio.run(ask("/debug/flags/v")[1]()).body == b"debug\n"
        assert asyncio.run(ask("/debug/flags/v", method="PUT", body=b"9")[1]()).status == 400
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("endpoint: nowhere", "endpoint: 'nowhere' is not HOST:PORT"),
        ("samplingRatePerMillion: 1000001", "is not a number from 0 to 1000000"),
        ("sampling: 1", "sampling: no such field; there are apiVersion, endpoint"),
    ],
)
def test_what_is_no_tracing_configuration(tmp_path, capsys, text, fault):
    path = tmp_path / "tracing.yaml"
    path.write_text(f"apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n{text}\n")
    from kubewright.cli import main

    arguments = [
        "serve",
        "--storage",
        "memory://",
        "--anonymous-admin",
        "--cert-dir",
        str(tmp_path / "certs"),
    ]
    assert main([*arguments, "--tracing-config-file", str(path)]) == 2
    assert fault in capsys.readouterr().err
