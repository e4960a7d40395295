"""Several watches as one answer, with the rights of whoever asks."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from apimachinery.client.config import Config
from kubewright.testing.server import ApiServer
from kubewright.testing.thread import ServerThread
from kubewright.tools.explore.command import ExplorerServer
from kubewright.tools.explore.guard import KEY_HEADER
from kubewright.tools.explore.upstream import Upstream
from tests.explore.scripted import END, ScriptedCluster
from tests.explore.test_server import SECONDS, Asking


@pytest.fixture(scope="module")
def asking(cluster: ApiServer) -> Iterator[Asking]:
    thread = ServerThread(ExplorerServer(Upstream(Config.load(cluster.kubeconfig), login=False)))
    yield Asking(thread.server)
    thread.stop()


def test_what_happens_to_several_kinds_is_one_answer(asking: Asking, cluster: ApiServer) -> None:
    maps, secrets = (f"/api/v1/namespaces/default/{plural}" for plural in ("configmaps", "secrets"))
    none = "/api/v1/namespaces/default/nothings"
    with closing(http.client.HTTPConnection(asking.place, timeout=SECONDS)) as connection:
        asked = json.dumps({"paths": [maps, secrets, none], "labels": "app in (a, b)"})
        connection.request("POST", "/explorer/follow", asked, {KEY_HEADER: asking.server.guard.key})
        answer = connection.getresponse()
        assert answer.status == 200

        def until(wanted: Callable[[Any], bool]) -> Any:
            for _ in range(500):
                if wanted(line := json.loads(answer.readline())):
                    return line
            raise AssertionError("it did not come")

        assert until(lambda line: line.get("path") == none)["refused"]
        for path in (maps, secrets):
            # It follows from some moment on, which nothing says.
            ending = threading.Event()
            writer = threading.Thread(target=_write_until, args=(cluster, path, ending), daemon=True)
            writer.start()
            try:
                line = until(lambda line, path=path: line.get("path") == path)  # type: ignore[misc]
            finally:
                ending.set()
                writer.join(SECONDS)
            assert line["type"] in ("ADDED", "DELETED")
            assert (line["metadata"]["name"], line["metadata"]["labels"]) == ("one", {"app": "a"})
            assert [each["manager"] for each in line["metadata"]["managedFields"]] == ["me"]
            assert "fieldsV1" not in line["metadata"]["managedFields"][0]


def _write_until(cluster: ApiServer, path: str, ending: threading.Event) -> None:
    for _ in range(200):
        metadata = {"name": "one", "labels": {"app": "a"}}
        cluster.request("POST", f"{path}?fieldManager=me", {"metadata": metadata})
        cluster.request("POST", f"{path}?fieldManager=me", {"metadata": {"name": "two"}})
        for name in ("one", "two"):
            cluster.request("DELETE", f"{path}/{name}")
        if ending.wait(0.05):
            return


def test_following_goes_on_where_a_watch_ended() -> None:
    thread = ServerThread(ScriptedCluster())
    scripted = thread.server
    explorer = ServerThread(ExplorerServer(Upstream(Config(server=scripted.url), login=False)))
    try:
        asking = Asking(explorer.server)
        with closing(http.client.HTTPConnection(asking.place, timeout=SECONDS)) as connection:
            asked = json.dumps({"paths": ["/api/v1/configmaps"]})
            connection.request("POST", "/explorer/follow", asked, {KEY_HEADER: asking.server.guard.key})
            answer = connection.getresponse()
            assert answer.readline() == b"{}\n"
            scripted.say(_event(scripted, "a"))
            assert json.loads(answer.readline())["metadata"]["name"] == "a"
            newest = str(scripted.version)
            scripted.say(END)
            scripted.say(_event(scripted, "b"))
            assert json.loads(answer.readline())["metadata"]["name"] == "b"
            assert (scripted.watched_from[-1], scripted.lists) == (newest, 1)
            # Too old: from now on, once more.
            scripted.say({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})
            scripted.say(END)
            scripted.say(_event(scripted, "c"))
            assert json.loads(answer.readline())["metadata"]["name"] == "c"
            assert scripted.lists == 2
    finally:
        explorer.stop()
        thread.stop()


def _event(scripted: ScriptedCluster, name: str) -> dict[str, Any]:
    return {"type": "ADDED", "object": scripted.row(name)["object"]}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "a list of paths"),
        ({"paths": ["api"]}, "a list of paths"),
        ({"paths": ["/api?watch=true"]}, "a list of paths"),
        ({"paths": ["/api"] * 501}, "501 are more than 500"),
    ],
)
def test_what_cannot_be_followed(asking: Asking, asked: Any, said: str) -> None:
    status, _, body = asking("POST", "/explorer/follow", asked)
    assert status == 400 and said in body.decode()
