"""Several processes of one server: any of them is asked, and all answer as one. Here they share a process."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from tests.server.test_several_servers import CRD, MAPS, Reached, config_map

from apimachinery.access.authentication import KnownTokens
from apimachinery.access.control import OPEN_TO_LOOPBACK, AccessOptions
from apimachinery.http.handshakes import bound_sockets, listen_on
from apimachinery.http.messages import User
from apimachinery.server.assembly.api import build_api
from apimachinery.server.assembly.leading import LeadingServer
from apimachinery.server.assembly.reader import ReaderServer
from apimachinery.server.catalog.options import ApiOptions, parse_controllers
from apimachinery.server.operate.audit.audit import Audit
from apimachinery.server.operate.audit.policy import read_policy
from apimachinery.server.process import Server, ServerOptions
from apimachinery.storage.following import follower
from apimachinery.storage.following.board import RevisionBoard

NAMESPACE = "/api/v1/namespaces/default"
ROLES = f"/apis/rbac.authorization.k8s.io/v1{NAMESPACE.removeprefix('/api/v1')}"


class Apart(LeadingServer):
    """Has a port of its own for each process, so that a test may choose which one it asks."""

    async def _listen(self) -> None:
        (own,), *others = [await bound_sockets("127.0.0.1", 0) for _ in range(self._workers)]
        self._reader_sockets = [sockets for (sockets,) in others]
        self._listener = await listen_on(self._connections, None, own)
        self.port = own[0].getsockname()[1]


class Processes:
    """A writer with readers, each reached at a port of its own."""

    def __init__(
        self, access: AccessOptions = OPEN_TO_LOOPBACK, controllers: str = "all", **options: Any
    ) -> None:
        self.options = ServerOptions(shutdown_seconds=0.1, **options)
        self._access, self._api = access, ApiOptions(controllers=parse_controllers(controllers))
        self._board = RevisionBoard()
        self.readers: dict[int, ReaderServer] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._started = asyncio.Condition()
        self.session: Any = None

    def _build(self, backend: Any) -> Any:
        return build_api(backend, self._api)

    @asynccontextmanager
    async def running(self, readers: int = 1, audit: Any = None) -> AsyncIterator[list[Reached]]:
        writer = Apart(self.options, self._access, self._build, audit, readers + 1, self._board, self._spawn)
        async with aiohttp.ClientSession() as self.session:
            await writer.start()
            try:
                yield [Reached(writer, self.session), *[await self.reader(n) for n in range(1, readers + 1)]]
            finally:
                async with asyncio.timeout(20):
                    await writer.stop()
                    await asyncio.gather(*self._tasks)

    async def reader(self, number: int, not_this: Server | None = None) -> Reached:
        """The reader of a number, once it serves and is another than before."""
        async with asyncio.timeout(30), self._started:
            await self._started.wait_for(lambda: self.readers.get(number) not in (None, not_this))
        return Reached(self.readers[number], self.session)

    def _spawn(self, number: int, given: Sequence[socket.socket]) -> None:
        door, *sockets = [each.dup() for each in given]
        door.setblocking(False)
        self._tasks.append(asyncio.create_task(self._run(number, door, sockets)))

    async def _run(self, number: int, door: socket.socket, sockets: list[socket.socket]) -> None:
        ended = asyncio.Event()
        server = ReaderServer(
            self.options,
            self._access,
            self._build,
            self._board,
            door,
            sockets,
            asked=ended.set,
            lost=ended.set,
        )
        await server.start()
        async with self._started:
            self.readers[number] = server
            self._started.notify_all()
        await ended.wait()
        await server.stop()
        server._follower.connection.abort()
        door.close()


def told(
    story: Callable[..., Awaitable[None]], readers: int = 1, processes: Callable[[], Processes] = Processes
) -> None:
    async def run() -> None:
        async with processes().running(readers) as reached:
            await story(*reached)

    asyncio.run(run())


def test_each_reads_and_changes_what_another_was_given_at_once():
    async def story(*reached: Reached) -> None:
        for number in range(12):
            first, second = reached[number % 3], reached[(number + 1) % 3]
            code, made = await first.ask("POST", MAPS, config_map(f"m{number}"))
            assert code == 201
            assert await second.ask("GET", f"{MAPS}/m{number}") == (200, made)
            made["data"] = {"a": "b"}
            code, changed = await second.ask("PUT", f"{MAPS}/m{number}", made)
            assert code == 200
            code, found = await first.ask("GET", MAPS)
            assert changed in [{**item, "kind": "ConfigMap", "apiVersion": "v1"} for item in found["items"]]
            assert (await first.ask("PUT", f"{MAPS}/m{number}", made))[0] == 409
            assert (await first.ask("DELETE", f"{MAPS}/m{number}"))[0] == 200
            assert (await second.ask("GET", f"{MAPS}/m{number}"))[0] == 404

    told(story, readers=2)


def test_all_say_the_same_of_themselves():
    paths = "/ /api /apis /apis/apps /apis/apps/v1 /openapi/v2 /openapi/v3 /version /nothing".split()
    paths += ["/openapi/v3/apis/apps/v1"]
    paths += [f"{NAMESPACE}/secrets/missing", "/apis/none.example.com/v1/things", "/api/v1/componentstatuses"]

    async def story(writer: Reached, reader: Reached) -> None:
        for path in paths:
            assert await reader.ask("GET", path) == await writer.ask("GET", path), path

    told(story)


def test_a_watch_goes_on_at_another_process():
    async def story(writer: Reached, one: Reached, two: Reached) -> None:
        async with one.watch(f"{MAPS}?fieldSelector=metadata.name%3Dseen") as event:
            _, made = await two.ask("POST", MAPS, config_map("seen"))
            assert (await event())["object"] == made
        version = made["metadata"]["resourceVersion"]
        _, changed = await writer.ask("PUT", f"{MAPS}/seen", {**made, "data": {"a": "1"}})
        for each in (two, one, writer):
            path = f"{MAPS}?fieldSelector=metadata.name%3Dseen&resourceVersion={version}"
            async with each.watch(path) as event:
                assert (await event())["object"] == changed

    told(story, readers=2)


def test_pages_of_a_list_may_come_from_all_of_them_and_from_one_that_began_later():
    async def run() -> None:
        processes = Processes()
        async with processes.running(2) as reached:
            writer, reader, _ = reached
            for number in range(9):
                await writer.ask("POST", MAPS, config_map(f"p{number}"))
            _, whole = await writer.ask("GET", MAPS)
            version = whole["metadata"]["resourceVersion"]
            _, page = await reader.ask("GET", f"{MAPS}?limit=2")
            for number in range(0, 9, 2):
                await writer.ask("DELETE", f"{MAPS}/p{number}")
            before = reader.server
            processes.readers[
                1
            ]._follower.connection.abort()  # it has nothing of the past when it comes again
            reached[1] = await processes.reader(1, not_this=before)
            items, turn = page["items"], 0
            while token := page["metadata"].get("continue"):
                turn += 1
                code, page = await reached[turn % 3].ask("GET", f"{MAPS}?limit=2&continue={token}")
                assert code == 200, page
                items += page["items"]
            assert items == whole["items"]
            path = f"{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"
            assert (await reached[1].ask("GET", path))[1]["items"] == whole["items"]
            async with reached[1].watch(f"{MAPS}?resourceVersion={version}") as event:
                assert {(await event())["type"] for _ in range(5)} == {"DELETED"}

    asyncio.run(run())


def test_a_definition_is_served_by_all_once_it_is_established():
    async def story(writer: Reached, reader: Reached) -> None:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        async with reader.watch(path) as event:
            assert (await reader.ask("POST", path, CRD))[0] == 201
            conditions: list[Any] = []
            while not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                status = (await event())["object"].get("status", {})
                conditions = status.get("conditions") or []
        assert (await reader.ask("GET", "/apis/example.com/v1"))[1]["resources"][0]["name"] == "gears"
        assert "/apis/example.com/v1/gears" in (await reader.ask("GET", "/openapi/v2"))[1]["paths"]
        gear = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "teeth": 3}
        assert (await reader.ask("POST", "/apis/example.com/v1/gears", gear))[0] == 201
        assert (await reader.ask("GET", "/apis/example.com/v1/gears/g"))[1]["teeth"] == 3

    told(story)


def test_rights_hold_at_all_of_them_from_the_answer_on():
    access = AccessOptions(
        tokens=(KnownTokens({"root": User("root", groups=("system:masters",)), "ann": User("ann")}),)
    )
    root, ann = {"Authorization": "Bearer root"}, {"Authorization": "Bearer ann"}

    async def story(writer: Reached, reader: Reached) -> None:
        assert (await reader.ask("GET", MAPS, **ann))[0] == 403
        assert (await reader.ask("GET", MAPS, Authorization="Bearer nobody"))[0] == 401
        assert (await reader.ask("POST", MAPS, config_map("x"), **ann))[0] == 403
        assert (await reader.ask("POST", MAPS, config_map("x"), Authorization="Bearer nobody"))[0] == 401
        role = {
            "metadata": {"name": "maps"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "create"]}],
        }
        assert (await writer.ask("POST", f"{ROLES}/roles", role, **root))[0] == 201
        for _ in range(5):
            binding = {
                "metadata": {"name": "maps"},
                "subjects": [{"kind": "User", "name": "ann"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
            }
            assert (await writer.ask("POST", f"{ROLES}/rolebindings", binding, **root))[0] == 201
            assert (await reader.ask("GET", MAPS, **ann))[0] == 200
            assert (await reader.ask("POST", MAPS, {"metadata": {"generateName": "x"}}, **ann))[0] == 201
            assert (await writer.ask("DELETE", f"{ROLES}/rolebindings/maps", **root))[0] == 200
            assert (await reader.ask("GET", MAPS, **ann))[0] == 403
        as_ann = {**root, "Impersonate-User": "ann"}
        assert (await reader.ask("GET", MAPS, **as_ann))[0] == 403
        assert (await reader.ask("POST", MAPS, config_map("y"), **as_ann))[0] == 403
        whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        _, said = await reader.ask("POST", whoami, {}, **ann)
        assert said["status"]["userInfo"]["username"] == "ann"

    told(story, processes=lambda: Processes(access))


def test_what_other_servers_answer_is_the_writers():
    async def story(writer: Reached, reader: Reached) -> None:
        service = {
            "metadata": {"name": "v1.far.example.com"},
            "spec": {
                "group": "far.example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"namespace": "default", "name": "far"},
            },
        }
        path = "/apis/apiregistration.k8s.io/v1/apiservices"
        assert (await reader.ask("POST", path, service))[0] == 201
        answers = [await each.ask("GET", "/apis/far.example.com/v1/things") for each in (writer, reader)]
        assert answers[0] == answers[1] and answers[0][0] == 503
        for _ in range(50):  # the aggregator may take it up between two of these
            before, seen, after = [await each.ask("GET", "/apis") for each in (writer, reader, writer)]
            if before == after:
                break
        assert before == seen == after

    told(story)


async def _send(reached: Reached, method: str, path: str, obj: Any) -> tuple[int, Any]:
    data = io.BytesIO(json.dumps(obj).encode())
    headers = {"Content-Type": "application/json"}
    async with reached._session.request(
        method, reached.server.url + path, data=data, headers=headers
    ) as answer:
        return answer.status, await answer.json()


def test_bodies_are_handed_on_whole_and_refused_alike():
    async def story(writer: Reached, reader: Reached) -> None:
        large = {**config_map("large"), "data": {"a": "x" * 900_000}}
        code, made = await reader.ask("POST", MAPS, large)
        assert code == 201 and made["data"] == large["data"]
        assert await reader.ask("GET", f"{MAPS}/large") == await writer.ask("GET", f"{MAPS}/large")
        for body in ("x" * 1_100_000, "x" * 3_200_000):
            object_ = {**config_map("larger"), "data": {"a": body}}
            refused = [await _send(each, "POST", MAPS, object_) for each in (writer, reader)]
            assert refused[0] == refused[1] and refused[0][0] in (413, 422)
        for method in ("POST", "PATCH", "OPTIONS", "DELETE"):
            answers = [await each.ask(method, f"{MAPS}/none", {}) for each in (writer, reader)]
            assert answers[0] == answers[1], method

    told(story)


def test_logs_and_commands_of_pods_go_through_a_reader():
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "command": ["sleep", "1000"]}]},
    }

    async def story(writer: Reached, reader: Reached) -> None:
        async with reader.watch(f"{NAMESPACE}/pods") as event:
            assert (await reader.ask("POST", f"{NAMESPACE}/pods", pod))[0] == 201
            while (await event())["object"].get("status", {}).get("phase") != "Running":
                pass
        assert (await reader.ask("GET", f"{NAMESPACE}/pods/p/log"))[0] == 200
        path = f"{NAMESPACE}/pods/p/exec?command=echo&command=hello&stdout=1"
        outputs = []
        for each in (writer, reader):
            url = each.server.url.replace("http", "ws") + path
            async with each._session.ws_connect(url, protocols=["v4.channel.k8s.io"]) as channel:
                said = [message.data async for message in channel]
                outputs.append((channel.protocol, said))
        assert outputs[0] == outputs[1] and outputs[0][1]
        # An offer that is not taken is answered as a request.
        url = reader.server.url.replace("http", "ws") + path.replace("pods/p", "pods/none")
        try:
            await reader._session.ws_connect(url)
        except aiohttp.WSServerHandshakeError as refused:
            assert refused.status == 404
        else:
            raise AssertionError("there is no such pod")

    told(story, processes=lambda: Processes(controllers="all,workloads,node"))


def test_a_line_end_in_a_certificate_or_address_cannot_be_claimed_by_a_client():
    """What says who a client is comes before the first request, from the process that accepted it."""

    async def story(writer: Reached, reader: Reached) -> None:
        _, out = await asyncio.open_connection("127.0.0.1", reader.server.port)
        out.write(b"127.0.0.1 00ff\nPOST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        in_, _ = _, out
        answer = await asyncio.wait_for(in_.read(), 10)
        assert answer.startswith(b"HTTP/1.1 400 ")
        out.close()
        reader_, out = await asyncio.open_connection("127.0.0.1", reader.server.port)
        body = json.dumps(config_map("one")).encode()
        head = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" % MAPS.encode()
        # Two lengths of a body would let one request hide another.
        out.write(head + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(body) + body)
        assert (await asyncio.wait_for(reader_.read(), 10)).startswith(b"HTTP/1.1 400 ")
        out.close()
        assert (await writer.ask("GET", f"{MAPS}/one"))[0] == 404

    told(story)


def test_the_audit_and_the_metrics_are_of_all_of_them(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
    )
    lines: list[Any] = []

    class Kept:
        name, strict = "log", False

        def write(self, event: bytes) -> None:
            lines.append(json.loads(event))

        def start(self) -> None:
            pass

        async def close(self) -> None:
            pass

    def make(metrics: Any, outgoing: Any, decode: Any) -> Audit:
        return Audit(read_policy(policy), [Kept()], metrics, decode)

    async def run() -> None:
        async with Processes(audit_policy=policy).running(1, make) as (_, reader):
            assert (await reader.ask("POST", MAPS, config_map("kept")))[0] == 201
            assert (await reader.ask("GET", f"{MAPS}/kept"))[0] == 200
            assert (await reader.ask("GET", f"{MAPS}/kept?pretty=true"))[0] == 200
            _, page = await reader.ask("GET", "/metrics")
        seen = [
            (line["verb"], line["stage"]) for line in lines if line.get("objectRef", {}).get("name") == "kept"
        ]
        assert seen == [("get", "ResponseComplete")] * 2 or seen == [
            ("create", "ResponseComplete"),
            *[("get", "ResponseComplete")] * 2,
        ], seen
        assert len({line["auditID"] for line in lines}) == len(lines)
        gets = [
            line for line in page.splitlines() if 'resource="configmaps"' in line and 'verb="GET"' in line
        ]
        assert any(
            line.startswith('apiserver_request_total{worker="1",') and line.endswith(" 2") for line in gets
        )
        heads = [line for line in page.splitlines() if line.startswith("# TYPE ")]
        assert len(heads) == len(set(heads))

    asyncio.run(run())


def test_a_reader_that_is_gone_comes_again_and_lets_others_go_on():
    async def run() -> None:
        processes = Processes()
        async with processes.running(2) as (writer, one, two):
            async with two.watch(MAPS) as event:
                before = one.server
                processes.readers[1]._follower.connection.abort()
                await writer.ask("POST", MAPS, config_map("meanwhile"))
                again = await processes.reader(1, not_this=before)
                while (await event())["object"]["metadata"]["name"] != "meanwhile":
                    pass
            assert (await again.ask("GET", f"{MAPS}/meanwhile"))[0] == 200
            assert (await again.ask("GET", "/readyz"))[0] == 200

    asyncio.run(run())


def test_it_ends_readers_first():
    async def run() -> None:
        processes = Processes()
        async with processes.running(2) as (_, one, _two):
            codes = [(await one.ask("GET", path))[0] for path in ("/livez", "/readyz")]
            assert codes == [200, 200]
        assert all(reader.health.ending for reader in processes.readers.values())

    asyncio.run(run())


def test_a_read_waits_for_what_was_acknowledged_before_it_came(monkeypatch):
    """The log is held back: no read may be answered from the copy of before, but health is."""

    async def story(writer: Reached, reader: Reached) -> None:
        assert isinstance(reader.server, ReaderServer)
        reading = reader.server._follower.connection._transport
        for path in (f"{MAPS}/x", MAPS, f"{MAPS}?resourceVersion=0", "/apis"):
            reading.pause_reading()
            code, made = await writer.ask("POST", MAPS, config_map("x"))
            assert code == 201
            asked = asyncio.create_task(reader.ask("GET", path))
            done, _ = await asyncio.wait({asked}, timeout=0.2)
            assert not done, path
            assert (await reader.ask("GET", "/livez")) == (200, "ok")
            reading.resume_reading()
            code, found = await asked
            assert code == 200
            if path.startswith(MAPS):
                shown = [each["metadata"]["resourceVersion"] for each in found.get("items", [found])]
                assert made["metadata"]["resourceVersion"] in shown
            assert (await writer.ask("DELETE", f"{MAPS}/x"))[0] == 200
        monkeypatch.setattr(follower, "BEHIND_SECONDS", 0.05)
        reading.pause_reading()
        await writer.ask("POST", MAPS, config_map("y"))
        code, refused = await reader.ask("GET", MAPS)
        assert (code, refused["reason"], refused["details"]) == (
            503,
            "ServiceUnavailable",
            {"retryAfterSeconds": 1},
        )
        reading.resume_reading()

    told(story)
