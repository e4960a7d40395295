"""Calls next to each other: a webhook that hangs, is slow or says too much takes its own places alone."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apimachinery.http import outgoing, workers
from apimachinery.http.outgoing import CallFailed, Outgoing, on_behalf_of
from apimachinery.http.remembered import SharedQuestions
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.webhooks import webhook_configurations
from apimachinery.server.network import webhook_calls
from apimachinery.server.network.webhook_calls import WebhookCalls, WebhookFailed
from kubewright.testing import ApiServer
from tests.webhooks.hooks import Hooks, reviewed

Json = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MORE_THAN_THREADS = workers.ASKING_THREADS + 8


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with Hooks({}) as hooks:
        yield hooks


def definition(hooks: Hooks, plural: str) -> Json:
    kind = plural.capitalize()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    client = {"url": hooks.url(plural), "caBundle": hooks.ca}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": f"{kind}List"},
        "versions": [
            {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
        ],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
        },
    }
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def converted(review: Json) -> Json:
    request = review["request"]
    objects = [{**obj, "apiVersion": request["desiredAPIVersion"]} for obj in request["objects"]]
    response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


def path(version: str, plural: str, name: str = "") -> str:
    return f"/apis/example.com/{version}/namespaces/default/{plural}" + (f"/{name}" if name else "")


def test_a_conversion_webhook_that_hangs_holds_up_no_other(hooks: Hooks) -> None:
    """32 threads were shared by all: with as many calls under way nobody else's objects were converted for 30 s."""
    let_go = threading.Event()

    def hang(review: Json) -> Json:
        let_go.wait(60)
        return converted(review)

    hooks.answers.update(hanging=hang, quiet=converted)
    with ApiServer() as server, ThreadPoolExecutor(MORE_THAN_THREADS) as threads:
        for plural in ("hanging", "quiet"):
            made = server.request("POST", CRDS, definition(hooks, plural))
            server._wait_until_served(made)
            obj = {"apiVersion": "example.com/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}}
            server.request("POST", path("v1", plural), obj)
        try:
            held = [
                threads.submit(server.request, "GET", path("v2", "hanging", "a"))
                for _ in range(MORE_THAN_THREADS)
            ]
            while len(hooks.calls) < MORE_THAN_THREADS:
                assert not any(each.done() for each in held), "each waits for the webhook"
            assert server.request("GET", path("v2", "quiet", "a"))["apiVersion"] == "example.com/v2"
            assert not any(each.done() for each in held)
        finally:
            let_go.set()
        assert {each.result()["apiVersion"] for each in held} == {"example.com/v2"}


def test_long_lists_are_converted_in_reviews_of_some_size(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apimachinery.server.catalog.served.REVIEW_BYTES", 5_000)
    hooks.answers["quiet"] = converted
    with ApiServer() as server:
        server._wait_until_served(server.request("POST", CRDS, definition(hooks, "quiet")))
        for number in range(8):
            obj = {"metadata": {"name": f"a{number}"}, "spec": {"text": "x" * 1_500}}
            obj |= {"apiVersion": "example.com/v1", "kind": "Quiet"}
            server.request("POST", path("v1", "quiet"), obj)
        hooks.calls.clear()
        items = server.request("GET", path("v2", "quiet"))["items"]
    assert [(item["apiVersion"], item["metadata"]["name"]) for item in items] == [
        ("example.com/v2", f"a{number}") for number in range(8)
    ]
    assert [len(review["request"]["objects"]) for _, review in hooks.calls] == [2, 2, 2, 2]


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0)


def test_places_of_an_address_are_shared_between_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "CALLS_AT_ONCE", 4)
    monkeypatch.setattr(outgoing, "CALLS_OF_A_USER", 2)

    async def story() -> list[str]:
        calls, let_go, begun = Outgoing(), asyncio.Event(), list[str]()

        async def call(user: str, address: str = "a") -> None:
            on_behalf_of.set(user)
            async with calls.turn(address, 30.0):
                begun.append(user)
                await let_go.wait()

        tasks = [asyncio.create_task(call("loud")) for _ in range(5)]
        await until(lambda: len(begun) == 2)
        tasks.append(asyncio.create_task(call("quiet")))
        tasks.append(asyncio.create_task(call("elsewhere", "b")))
        await until(lambda: len(begun) == 4)
        tasks.append(asyncio.create_task(call("")))
        tasks.append(asyncio.create_task(call("last")))
        await until(lambda: len(begun) == 5)
        for _ in range(10):
            await asyncio.sleep(0)
        first = list(begun)
        gives_up = tasks[2]
        gives_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gives_up
        let_go.set()
        await asyncio.gather(*(task for task in tasks if task is not gives_up))
        assert not calls._lines, "nothing is left of calls that are over"
        return [*first, "|", *sorted(begun[5:])]

    expected = ["loud", "loud", "quiet", "elsewhere", "", "|", "last", "loud", "loud"]
    assert asyncio.run(story()) == expected


def test_a_call_that_gets_no_place_in_time_fails_as_one_that_gets_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outgoing, "CALLS_AT_ONCE", 1)

    async def story() -> None:
        calls = Outgoing()
        async with calls.turn("a", 30.0):
            with pytest.raises(CallFailed, match="context deadline exceeded"):
                async with calls.turn("a", 0.01):
                    raise AssertionError("there is one place")
        async with calls.turn("a", 30.0):
            pass

    asyncio.run(story())


def test_questions_of_the_same_moment_are_asked_once() -> None:
    async def story() -> tuple[list[int], int]:
        together, asked, let_go = SharedQuestions[int](), list[int](), asyncio.Event()

        async def ask() -> int:
            asked.append(1)
            await let_go.wait()
            return len(asked)

        tasks = [asyncio.create_task(together.once("key", ask)) for _ in range(5)]
        await until(lambda: asked)
        tasks[0].cancel()
        await asyncio.sleep(0)
        let_go.set()
        found = [await task for task in tasks[1:]]
        return found, await together.once("key", ask)

    assert asyncio.run(story()) == ([1, 1, 1, 1], 2)


def configured(hooks: Hooks, where: str, **client: Any) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "a.example.com",
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"https://127.0.0.1:{hooks.port}{where}", "caBundle": hooks.ca, **client},
    }
    return {"metadata": {"name": "one"}, "webhooks": [hook]}


def test_paths_are_joined_as_kube_apiserver_joins_them(hooks: Hooks) -> None:
    """What kube-apiserver 1.36 asked for; Go's mux answers 307 to anything else."""
    asked = {
        "//a//b": "/a/b",
        "/a/": "/a",
        "/a/../b": "/b",
        "": "/",
        "/": "/",
        "/a%2Fb//c": "/a/b/c",
        "/a%20b": "/a%20b",
        "/a/./b": "/a/b",
        "//": "/",
    }
    for wanted in asked.values():
        hooks.answers[wanted.strip("/")] = reviewed
    with ApiServer() as server:
        found = {}
        for given in asked:
            server.request("POST", VALIDATING, configured(hooks, given))
            hooks.calls.clear()
            server.request(
                "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "a-"}}
            )
            found[given] = [target for target, _ in hooks.calls]
            server.request("DELETE", f"{VALIDATING}/one")
    assert found == {given: [f"{wanted}?timeout=10s"] for given, wanted in asked.items()}


def test_an_answer_above_what_can_be_stored_is_refused(hooks: Hooks) -> None:
    padding = {"auditAnnotations": {"a": "x" * webhook_calls.ANSWER_BYTES}}
    hooks.answers["big"] = lambda review: reviewed(review, **padding)
    with ApiServer() as server:
        server.request("POST", VALIDATING, configured(hooks, "/big"))
        with pytest.raises(
            ApiError, match=f"answered more than {webhook_calls.ANSWER_BYTES} bytes"
        ) as refused:
            server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    assert refused.value.code == 500


@pytest.mark.parametrize("size", [100, 2_000_000])
def test_large_answers_are_read_apart_from_the_loop(
    hooks: Hooks, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = []

    def read(answer: Any, asked: Json) -> Json:
        readers.append(threading.current_thread().name)
        return webhook_calls.read_review(answer, asked)

    monkeypatch.setattr(webhook_configurations, "read_review", read)
    hooks.answers["x"] = lambda review: reviewed(review, auditAnnotations={"a": "x" * size})
    with ApiServer() as server:
        server.request("POST", VALIDATING, configured(hooks, "/x"))
        server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    assert readers[0].startswith("kubewright-work") is (size > 100)


def test_two_large_answers_of_an_address_are_read_at_a_time_and_small_ones_pass(hooks: Hooks) -> None:
    def answer(review: Json) -> Json:
        return reviewed(review, auditAnnotations={"a": "x" * review["request"]["size"]})

    hooks.answers["x"] = answer
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}

    async def story() -> list[int]:
        calls, let_go, reading = Outgoing(), asyncio.Event(), list[int]()
        posts = WebhookCalls(calls, None)  # type: ignore[arg-type]
        client = {"url": hooks.url("x"), "caBundle": hooks.ca}

        async def read(answer: webhook_calls.WebhookAnswer) -> None:
            reading.append(len(answer.content) // 100_000)
            if len(answer.content) > outgoing.MUCH_BYTES:
                await let_go.wait()

        async def call(size: int) -> None:
            body = json.dumps({**review, "request": {"uid": "u", "size": size}}).encode()
            await posts.post(client, body, 30.0, "agent", read)

        try:
            large = [asyncio.create_task(call(300_000)) for _ in range(5)]
            await until(lambda: len(reading) == 2 and len(hooks.calls) == 5)
            await call(10)
            before = list(reading)
            let_go.set()
            await asyncio.gather(*large)
            return [*before, -1, *reading[3:]]
        finally:
            await calls.close()

    assert asyncio.run(story()) == [3, 3, 0, -1, 3, 3, 3]


# Whom Go trusts: what kube-apiserver 1.36 called and what it refused.

Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def certified(name: str, by: Pair | None = None, *, ca: bool | None = None, days: int = 10) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by[0].subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=20))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca, None), True)
    return builder.sign(by[1] if by else key, hashes.SHA256()), key


ROOT = certified("root", ca=True)
MIDDLE = certified("middle", ROOT, ca=True)
LEAF, OF_MIDDLE = certified("leaf", ROOT, ca=False), certified("leaf", MIDDLE, ca=False)
OWN, PLAIN = certified("own", ca=False), certified("plain")
EXPIRED, OF_LEAF = certified("expired", ROOT, ca=False, days=-1), certified("of-leaf", LEAF)
TRUSTED = {
    "a leaf in the bundle": ([LEAF], LEAF),
    "an intermediate in the bundle": ([OF_MIDDLE], MIDDLE),
    "a leaf in the bundle, more of its chain shown": ([OF_MIDDLE, MIDDLE], OF_MIDDLE),
    "its own issuer, no authority": ([OWN], OWN),
    "its own issuer, says nothing": ([PLAIN], PLAIN),
    "the authority": ([LEAF], ROOT),
}
REFUSED = {
    "expired": ([EXPIRED], EXPIRED, "has expired"),
    "another of the same name": ([LEAF], certified("leaf", ROOT, ca=False), "signed by unknown authority"),
    "a leaf that signs": ([OF_LEAF], LEAF, "signed by unknown authority"),
}


def called(folder: Path, shown: list[Pair], bundle: Pair) -> None:
    pem = b"".join(each.public_bytes(serialization.Encoding.PEM) for each, _ in shown)
    key = shown[0][1].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "cert").write_bytes(pem)
    (folder / "key").write_bytes(key)
    with Hooks({"x": reviewed}) as hooks:
        hooks._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        hooks._context.load_cert_chain(folder / "cert", folder / "key")
        authority = base64.b64encode(bundle[0].public_bytes(serialization.Encoding.PEM)).decode()

        async def story() -> None:
            calls = Outgoing()
            try:
                posts = WebhookCalls(calls, None)  # type: ignore[arg-type]
                client = {"url": hooks.url("x"), "caBundle": authority}
                review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
                review |= {"request": {"uid": "u"}}
                await posts.post(client, json.dumps(review).encode(), 30.0, "agent", webhook_calls._unread)
            finally:
                await calls.close()

        asyncio.run(story())


@pytest.mark.parametrize("case", TRUSTED)
def test_certificates_that_go_trusts_are_trusted(tmp_path: Path, case: str) -> None:
    called(tmp_path, *TRUSTED[case])


@pytest.mark.parametrize("case", REFUSED)
def test_certificates_that_go_refuses_are_refused(tmp_path: Path, case: str) -> None:
    shown, bundle, why = REFUSED[case]
    with pytest.raises(WebhookFailed, match=why):
        called(tmp_path, shown, bundle)
