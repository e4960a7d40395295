"""Certificates, keys and authorities that are replaced while a client lives: the next connection has the new ones."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.client.test_wire import MAPS
from tests.client.wires import Answer, ScriptedServer, answer

from apimachinery.client import credentials
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.config import Config, ConfigError, FileBytes
from apimachinery.client.connection import Client
from apimachinery.client.credentials import CredentialSource
from apimachinery.client.resource import DynamicResource
from apimachinery.client.retry import RetryPolicy
from apimachinery.http.tls import ensure_certificate

both = pytest.mark.parametrize("mode", ["sync", "async"])
BODY = b'{"metadata":{"name":"a"}}'
CLOSING = answer(200, BODY, Connection="close")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    class Module:
        now = 1000.0

        @classmethod
        def monotonic(cls) -> float:
            return cls.now

    monkeypatch.setattr(credentials, "time", Module)
    return Module


class Files:
    """A folder with two pairs, and the ``tls.crt`` and ``tls.key`` that are in use, replaced as kubelets do it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        hosts = {"one": "127.0.0.1", "two": "other.example", "server": "127.0.0.1", "moved": "127.0.0.1"}
        self.pairs = {name: ensure_certificate(folder / name, host) for name, host in hosts.items()}
        self.certificate, self.key, self.authority = (
            folder / name for name in ("tls.crt", "tls.key", "ca.crt")
        )
        self.use("one")
        self.trust("server")

    def put(self, source: Path, target: Path) -> None:
        part = target.with_suffix(".part")
        shutil.copy(source, part)
        part.replace(target)

    def use(self, name: str) -> None:
        self.put(self.pairs[name][0], self.certificate)
        self.put(self.pairs[name][1], self.key)

    def trust(self, name: str) -> None:
        self.put(self.pairs[name][0], self.authority)

    def config(self, port: int = 0) -> Config:
        return Config(
            server=f"https://127.0.0.1:{port}",
            certificate=FileBytes.read(str(self.certificate)),
            key=FileBytes.read(str(self.key)),
            certificate_authority=FileBytes.read(str(self.authority)),
        )

    def tls(self, client: str = "one") -> ssl.SSLContext:
        """A server that knows one client's certificate."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(*self.pairs["server"])
        made.load_verify_locations(self.pairs[client][0])
        made.verify_mode = ssl.CERT_REQUIRED
        return made


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def told(mode: str, config: Config, steps: list[Callable[[], None]]) -> list[Any]:
    """One get before each step and one after the last, by one client."""
    retry = RetryPolicy(first_wait=0.001, longest_wait=0.001)

    async def awaited() -> list[Any]:
        async with AsyncClient(config, retry=retry) as client:
            found = [await AsyncDynamicResource(client, MAPS).get("a")]
            for step in steps:
                step()
                found.append(await AsyncDynamicResource(client, MAPS).get("a"))
            return found

    if mode == "async":
        return asyncio.run(awaited())
    with Client(config, retry=retry) as client:
        found = [DynamicResource(client, MAPS).get("a")]
        for step in steps:
            step()
            found.append(DynamicResource(client, MAPS).get("a"))
        return found


@both
def test_a_new_certificate_is_shown_by_the_next_connection(mode: str, files: Files, clock: Any) -> None:
    def rotate() -> None:
        files.use("two")
        server._tls = files.tls("two")
        clock.now += credentials.MATERIAL_SECONDS

    with ScriptedServer([answer(200, BODY)] * 2, tls=files.tls()) as server:
        assert (
            len(told(mode, files.config(server.port), [rotate])) == 2
        )  # a kept connection is not used again
    serials = [peer["serialNumber"] for peer in server.peers if isinstance(peer, dict)]
    assert len(set(serials)) == 2


@both
def test_a_new_authority_is_trusted_at_once(mode: str, files: Files, clock: Any) -> None:
    """The old one does not know the server any more: that has it read again, before its time."""
    tls = files.tls()

    def rotate() -> None:
        tls.load_cert_chain(*files.pairs["moved"])
        files.trust("moved")

    with ScriptedServer([CLOSING, CLOSING], tls=tls) as server:
        assert len(told(mode, files.config(server.port), [rotate])) == 2


@both
def test_a_401_has_the_files_read_again(mode: str, files: Files, clock: Any) -> None:
    def script() -> Iterator[Answer]:
        yield CLOSING
        server._tls = files.tls("two")
        yield answer(401, Connection="close")
        yield answer(200, BODY)

    # the first answer is that of a server that knows the old certificate, the last that of one that knows the new one
    with ScriptedServer([], tls=files.tls()) as server:
        server._script = script()
        assert len(told(mode, files.config(server.port), [lambda: files.use("two")])) == 2
    serials = [peer["serialNumber"] for peer in server.peers if isinstance(peer, dict)]
    assert serials[0] == serials[1] != serials[2]


def test_a_pair_that_is_half_replaced_leaves_the_last_in_use(
    files: Files, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    source = CredentialSource(files.config())
    first = source.current()
    files.put(files.pairs["two"][0], files.certificate)
    clock.now += credentials.MATERIAL_SECONDS
    assert source.current() == first
    assert "client-certificate and client-key do not fit" in caplog.text
    files.put(files.pairs["two"][1], files.key)
    clock.now += credentials.MISSING_FILE_SECONDS
    assert source.current().certificate == files.pairs["two"][0].read_bytes()


def test_a_file_that_is_missing_or_no_certificate_leaves_the_last_in_use(files: Files, clock: Any) -> None:
    source = CredentialSource(files.config())
    first = source.current()
    for spoil in (files.authority.unlink, lambda: files.authority.write_text("nonsense")):
        spoil()
        clock.now += credentials.MATERIAL_SECONDS
        assert source.current() == first
    files.trust("two")
    clock.now += credentials.MISSING_FILE_SECONDS
    assert source.current().authority == files.pairs["two"][0].read_bytes()


def test_files_are_not_read_for_each_request(files: Files, clock: Any) -> None:
    source = CredentialSource(files.config())
    first = source.current()
    files.use("two")
    assert source.current() is first
    assert not source.may_block


def test_bytes_that_replace_those_of_a_file_stay(files: Files, clock: Any) -> None:
    source = CredentialSource(
        replace(files.config(), certificate=files.pairs["two"][0].read_bytes(), key=b"k")
    )
    clock.now += credentials.MATERIAL_SECONDS
    assert source.current().certificate == files.pairs["two"][0].read_bytes()


def test_a_kubeconfig_and_a_pod_name_files_that_are_read_again(tmp_path: Path, files: Files) -> None:
    names = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    text = {
        "clusters": [{"name": "c", "cluster": {"server": "https://h", "certificate-authority": "ca.crt"}}],
        "users": [{"name": "u", "user": names}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(text))
    config = Config.load(kubeconfig, environment={})
    for read, path in (
        (config.certificate, files.certificate),
        (config.key, files.key),
        (config.certificate_authority, files.authority),
    ):
        assert isinstance(read, FileBytes)
        assert Path(read.path) == path
    (tmp_path / "token").write_text("t")
    pod = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "443"}
    assert isinstance(Config.in_cluster(folder=tmp_path, environment=pod).certificate_authority, FileBytes)
    with pytest.raises(ConfigError, match="file: cannot read /nowhere: No such file"):
        FileBytes.read("/nowhere")
