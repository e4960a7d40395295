"""Calls that the server makes: whom it trusts, what it refuses, where a Service is."""

from __future__ import annotations

import asyncio
import json

import pytest

from apimachinery.http.outgoing import (
    CallFailed,
    Endpoint,
    Outgoing,
    client_tls,
)
from apimachinery.http.tls import ensure_certificate, server_context
from apimachinery.server.network.services import Address, ServiceResolver, Unresolved
from apimachinery.storage.interface import Value
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

NAME = "hook.tests.svc"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return ensure_certificate(tmp_path_factory.mktemp("tls"), NAME)


async def serving(certificate, answer: bytes):
    """A server of one answer, and how many connections were made to it."""
    made = []

    async def handle(reader, writer):
        made.append(writer)
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(answer)

    def connected(reader, writer):
        task = asyncio.create_task(handle(reader, writer))
        task.add_done_callback(lambda t: t.exception())

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=server_context(*certificate))
    return server, server.sockets[0].getsockname()[1], made


def answered(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def test_a_connection_and_a_context_are_kept(certificate):
    async def run():
        server, port, made = await serving(certificate, answered(b'{"a": 1}'))
        authority = certificate[0].read_bytes()
        tls = client_tls(authority)
        outgoing = Outgoing()
        endpoint = Endpoint(f"https://127.0.0.1:{port}/x?a=%2F", tls, server_name=NAME)
        assert [await outgoing.json(endpoint) for _ in range(3)] == [{"a": 1}] * 3
        assert len(made) == 1
        assert client_tls(authority) is tls
        await outgoing.close()
        server.close()

    asyncio.run(run())


def test_a_renewed_certificate_is_shown(certificate, tmp_path):
    files = tmp_path / "client.crt", tmp_path / "client.key"
    for source, target in zip(certificate, files, strict=True):
        target.write_bytes(source.read_bytes())
    first = client_tls(insecure=True, certificate=files)
    assert client_tls(insecure=True, certificate=files) is first
    renewed = tmp_path / "renewed"
    renewed.write_bytes(certificate[0].read_bytes())
    renewed.replace(files[0])
    assert client_tls(insecure=True, certificate=files) is not first


@pytest.mark.parametrize(
    ("endpoint", "fault"),
    [
        ({"server_name": "other.tests.svc"}, "not valid for 'other.tests.svc'"),
        ({"tls": client_tls()}, "tls: failed to verify certificate"),
    ],
)
def test_a_certificate_of_another_is_refused(certificate, endpoint, fault):
    async def run():
        server, port, _ = await serving(certificate, answered(b"{}"))
        outgoing = Outgoing()
        options = {"tls": client_tls(certificate[0].read_bytes()), "server_name": NAME, **endpoint}
        with pytest.raises(CallFailed, match=fault):
            await outgoing.json(Endpoint(f"https://127.0.0.1:{port}/", **options))
        insecure = Endpoint(f"https://127.0.0.1:{port}/", client_tls(insecure=True), server_name="any")
        assert await outgoing.json(insecure) == {}
        await outgoing.close()
        server.close()

    asyncio.run(run())


def test_refusals_have_their_status_and_nobody_there_is_said_as_go_says_it(certificate):
    async def run():
        server, port, _ = await serving(certificate, answered(b"no", "403 Forbidden"))
        outgoing = Outgoing()
        endpoint = Endpoint(f"https://127.0.0.1:{port}/", client_tls(insecure=True))
        with pytest.raises(CallFailed) as refused:
            await outgoing.json(endpoint)
        assert (refused.value.status, refused.value.body) == (403, b"no")
        server.close()
        await outgoing.close()
        with pytest.raises(CallFailed, match=f"dial tcp 127.0.0.1:{port}: connect: connection refused"):
            await outgoing.open("GET", endpoint)
        await outgoing.close()

    asyncio.run(run())


SERVICES = {
    "cluster": {"ports": [{"port": 443, "name": "https"}], "clusterIP": "10.0.0.9"},
    "external": {"type": "ExternalName", "externalName": "api.example.com"},
    "headless": {"ports": [{"port": 443}], "clusterIP": "None"},
    "backed": {"ports": [{"port": 443, "name": "https"}], "clusterIP": "10.0.0.8"},
    "unready": {"ports": [{"port": 443, "name": "https"}], "clusterIP": "10.0.0.7"},
}
SLICES = {
    "backed": [{"addresses": ["10.1.0.1"]}, {"addresses": ["10.1.0.2"], "conditions": {"ready": False}}],
    "unready": [{"addresses": ["10.1.0.3"], "conditions": {"ready": False}}],
}
PLACES = [
    ("cluster", 443, "10.0.0.9:443"),
    ("external", 8443, "api.example.com:8443"),
    ("backed", 443, "10.1.0.1:6443"),
    ("given", 443, "127.0.0.1:99"),
    ("unready", 443, 'no endpoints available for service "unready"'),
    ("headless", 443, 'no endpoints available for service "headless"'),
    ("cluster", 80, 'no service port 80 found for service "cluster"'),
    ("missing", 443, 'service "missing" not found'),
]


def value(obj):
    return Value(json.dumps(obj).encode()[:-1] + b', "revision": ', b"}")


@pytest.mark.parametrize(("name", "port", "place"), PLACES)
def test_where_a_service_is(name, port, place):
    async def run():
        storage = MemoryStorage()
        cache = await WatchCache.open(storage)
        for service, spec in SERVICES.items():
            await storage.create(f"/core/services/tests/{service}", value({"spec": spec}))
        for service, endpoints in SLICES.items():
            found = {
                "metadata": {"labels": {"kubernetes.io/service-name": service}},
                "ports": [{"name": "https", "port": 6443}, {"name": "metrics", "port": 9090}],
                "endpoints": endpoints,
            }
            key = f"/discovery.k8s.io/endpointslices/tests/{service}-1"
            await storage.create(key, value(found))
        await asyncio.sleep(0)
        resolver = ServiceResolver(cache, {("tests", "given"): Address("127.0.0.1", 99)})
        try:
            said = str(resolver.resolve("tests", name, port))
        except Unresolved as fault:
            said = str(fault)
        assert said == place

    asyncio.run(run())
