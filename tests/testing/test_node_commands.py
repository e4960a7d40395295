"""Commands in simulated containers: a small shell, streams of stdin, attaching, and port-forwards of every kind."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import wsproto
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, TextMessage
from wsproto.events import Request as Handshake

from apimachinery.server.node.commands import Command, CommandInput, ErrorOutput
from apimachinery.server.node.shell import ContainerShell
from apimachinery.wire.spdy import DICTIONARY, Came, OpenedStream, SpdyConnection, SpdyFault
from kubernetes_api.client import Client
from kubewright.testing import ApiServer

PODS = "/api/v1/namespaces/default/pods"
POD: dict[str, Any] = {
    "metadata": {"name": "p", "uid": "u", "labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "env": [
                    {"name": "COLOR", "value": "blue"},
                    {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                ],
            }
        ]
    },
}


def ran(shell: ContainerShell, *argv: str, stdin: bytes = b"") -> tuple[bytes, bytes, int]:
    given = CommandInput()
    given.feed(stdin)
    given.end()
    found = shell(Command(POD, "c", argv, given))
    stdout = found.stdout if isinstance(found.stdout, bytes) else b"".join(found.stdout)
    return stdout, found.stderr, found.exit_code


@pytest.mark.parametrize(
    ("line", "out", "code"),
    [
        ("echo a; echo b", "a\nb\n", 0),
        ("echo $COLOR ${APP} $NONE.", "blue web .\n", 0),
        ("false && echo no || echo yes", "yes\n", 0),
        ("echo one > /f; echo two >> /f; cat /f", "one\ntwo\n", 0),
        ("echo 'a  b' | cat", "a  b\n", 0),
        ("cat < /f", "", 1),
        ("exit 42; echo no", "", 42),
        ("mkdir -p /d && touch /d/x /d/y && ls /d && rm -r /d && ls /d", "x\ny\n", 1),
        ("[ -f /f ] || echo none", "none\n", 0),
        ("test a = a && echo same", "same\n", 0),
        ("hostname; printenv COLOR; printenv NOT", "p\nblue\n", 1),
        ("nothing here", "", 127),
        ("echo -n x", "x", 0),
        ("sleep 0; sleep x", "", 1),
        ("echo 'open", "", 2),
        ("sleep 1 &", "", 2),
        ("for i in $(seq 1 3); do echo $i-${i}; done", "1-1\n2-2\n3-3\n", 0),
        ("for i in a b; do echo $i\nfalse; done || echo no", "a\nb\nno\n", 0),
        ("for i in; do echo $i; done; echo x", "x\n", 0),
        ("case a in a) echo no;; esac", "", 2),
        ("while true; do true; done", "", 1),
        ("n=0; while [ $n -lt 3 ]; do n=$((n + 1)); echo $n; done; echo end $n", "1\n2\n3\nend 3\n", 0),
        ("until [ -f /f ]; do touch /f; done && echo there", "there\n", 0),
        ("if [ $(expr 5 % 2) -ne 0 ]; then exit 3; else exit 4; fi", "", 3),
        ("if false; then echo a; elif [[ -r /none ]]; then echo b; else echo c; fi", "c\n", 0),
        ("if false; then echo a; fi", "", 0),
        ("! true || echo not", "not\n", 0),
        ("{ echo a; echo b; } | wc -l", "2\n", 0),
        ("a=1; (a=2; echo a; exit 7); echo $? $a", "a\n7 1\n", 0),
        ("f=/f; count=$(echo hello >> $f; wc -l $f | awk {'print $1'}); echo $count", "1\n", 0),
        ('a=\'x y\'; for i in $a "$a"; do echo "<$i>"; done', "<x>\n<y>\n<x y>\n", 0),
        ('echo ${NONE:-else} ${COLOR:-else} $? "$(echo a  b)" `echo c`', "else blue 0 a b c\n", 0),
        ("echo $((2 * (3 + 4) - -1)) $((7 / 2)) $((-7 % 3)) $((COLOR))", "15 3 -1 0\n", 0),
        ("echo a > /f; mv /f /tmp/; cp /tmp/f /g; cat /g /tmp/f; cat /f", "a\na\n", 1),
        ("trap 'echo no' TERM # a comment", "", 0),
        ("echo '$COLOR' \\$COLOR \"\\$COLOR\"", "$COLOR $COLOR $COLOR\n", 0),
        ("if true; then echo", "", 2),
        ("echo )", "", 2),
        ("exec echo a", "a\n", 0),
        ("echo a$(hostname)b", "apb\n", 0),
        ("cat /none 2>&1", "cat: /none: No such file or directory\n", 1),
        ("cat /none 2>/f; cat /f", "cat: /none: No such file or directory\n", 0),
        ("cat /none >/dev/null 2>&1 || echo quiet; ls /dev/null", "quiet\n", 1),
        ("echo bad >&2; echo 2 > /f; cat /f", "2\n", 0),
        ("echo 'a 2>b'", "a 2>b\n", 0),
        ("printf '%s-%d%%\\n' a 5", "a-5%\n", 0),
        ("ls / | cat > /f; ls /srv", "", 1),
        ("seq x", "", 1),
        ("date foo 2>&1", "date: invalid date 'foo'\n", 1),
    ],
)
def test_lines(line: str, out: str, code: int) -> None:
    found, _, status = ran(ContainerShell(), "sh", "-c", line)
    assert (found.decode(), status) == (out, code)


def test_a_shell_reads_its_lines() -> None:
    assert (
        ran(ContainerShell(), "/bin/sh", stdin=b"echo hi\necho $COLOR\nexit\necho no\n")[0] == b"hi\nblue\n"
    )


def test_what_a_shell_says_keeps_its_stream() -> None:
    given = CommandInput()
    given.feed(b"echo one\necho two >&2\ngzip < /f\n")
    given.end()
    found = ContainerShell()(Command(POD, "c", ("sh",), given))
    assert not isinstance(found.stdout, bytes)
    pieces = [(isinstance(piece, ErrorOutput), bytes(piece)) for piece in found.stdout if piece]
    assert pieces[:2] == [(False, b"one\n"), (True, b"two\n")]
    assert ran(ContainerShell(), "sh", "-c", "echo bad >&2")[1] == b"bad\n"


def test_a_line_says_what_it_says_while_it_runs() -> None:
    given = CommandInput()
    given.feed(b"one")
    found = ContainerShell()(Command(POD, "c", ("sh", "-c", "echo first; cat"), given))
    assert not isinstance(found.stdout, bytes)
    assert [next(found.stdout), next(found.stdout)] == [b"first\n", b"one"]


def client_stream(kind: str, number: int, pack: Any, port: int = 80) -> bytes:
    headers = {"streamtype": kind, "port": str(port), "requestid": "0"}
    plain = struct.pack(">I", len(headers))
    for word in (word for pair in headers.items() for word in pair):
        plain += struct.pack(">I", len(word)) + word.encode()
    body = struct.pack(">IIBB", number, 0, 0, 0) + pack.compress(plain) + pack.flush(zlib.Z_SYNC_FLUSH)
    return bytes(struct.pack(">II", 0x80030001, len(body)) + body)


def test_spdy_frames_arrive_in_any_pieces() -> None:
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2, "the dictionary of SPDY 3"
    pack = zlib.compressobj(zdict=DICTIONARY)
    sent = client_stream("error", 1, pack) + client_stream("data", 3, pack)
    sent += struct.pack(">II", 3, 4) + b"ping" + struct.pack(">II", 3, 1 << 24)
    sent += struct.pack(">III", 0x80030006, 4, 7)
    for size in (1, 5, len(sent)):
        server, events = SpdyConnection(), []
        for low in range(0, len(sent), size):
            events += list(server.receive(sent[low : low + size]))
        opened = [event for event in events if isinstance(event, OpenedStream)]
        assert [event.headers["streamtype"] for event in opened] == ["error", "data"]
        assert [event for event in events if isinstance(event, Came)] == [
            Came(3, b"ping"),
            Came(3, b"", True),
        ]
        assert server.outgoing.endswith(struct.pack(">III", 0x80030006, 4, 7)), "a ping is answered"


NO_SPDY = (
    struct.pack(">II", 3, 2 << 20),
    struct.pack(">II", 0x80030001, 12) + b"x" * 12,
    struct.pack(">II", 0x80030001, 2) + b"xx",
)


@pytest.mark.parametrize("sent", NO_SPDY)
def test_what_is_no_spdy(sent: bytes) -> None:
    with pytest.raises(SpdyFault):
        list(SpdyConnection().receive(sent))


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(node=True) as running:
        for name, fields in (("p", {}), ("reads", {"command": ["cat"], "stdin": True, "stdinOnce": True})):
            container = {"name": "c", "image": "i", **fields}
            body = {"metadata": {"name": name}, "spec": {"containers": [container], "restartPolicy": "Never"}}
            running.request("POST", PODS, body)
        running.settle()
        yield running


def test_what_does_not_read_its_stdin_does_not_wait_for_its_end(server: ApiServer) -> None:
    with server.client() as client:
        assert isinstance(client, Client)
        with client.core_v1.pods.start_exec("p", ["echo", "hi"], stdin=True) as process:
            assert process.wait().stdout == b"hi\n"
        with client.core_v1.pods.start_exec("p", ["cat"], stdin=True) as process:
            process.write(b"one")
            assert process.read() == (1, b"one"), "before the end of what is sent"
            process.end_stdin()
            assert process.wait().exit_code == 0


def test_what_is_attached_to_ends_with_what_it_is_sent(server: ApiServer) -> None:
    with server.client() as client:
        assert isinstance(client, Client)
        with client.core_v1.pods.attach("reads", stdin=True) as process:
            process.write(b"words")
            process.end_stdin()
            assert process.wait().stdout == b"words"
    server.settle()
    status = server.request("GET", f"{PODS}/reads")["status"]
    assert status["phase"] == "Succeeded"


def spoken(server: ApiServer, path: str, protocol: str) -> list[bytes | str]:
    """The messages of a websocket, to its end."""
    target = urlsplit(server.url)
    token = server._users.token("admin", ())
    headers = [(b"Authorization", f"Bearer {token}".encode())]
    socket_end = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
    offer = Handshake(
        target.netloc, PODS + path, extra_headers=headers, subprotocols=[protocol] if protocol else []
    )
    address = str(target.hostname), int(target.port or 0)
    messages: list[bytes | str] = []
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(socket_end.send(offer))
        while data := connection.recv(1 << 16):
            socket_end.receive_data(data)
            for event in socket_end.events():
                if isinstance(event, AcceptConnection):
                    assert (event.subprotocol or "") == protocol
                elif isinstance(event, BytesMessage | TextMessage):
                    messages.append(bytes(event.data) if isinstance(event, BytesMessage) else event.data)
                elif isinstance(event, CloseConnection):
                    connection.sendall(socket_end.send(event.response()))
                    return messages
    return messages


def test_every_protocol_of_websockets_is_spoken(server: ApiServer) -> None:
    exec_ = "/p/exec?stdout=1&stderr=1&container=c&command=sh&command=-c&command=echo+hi%3Bexit+"
    words = "command terminated with non-zero exit code: exit status 3"
    encoded = base64.b64encode(b"hi\n").decode()
    assert spoken(server, exec_ + "0", "channel.k8s.io") == [b"\x01hi\n"]
    assert spoken(server, exec_ + "3", "channel.k8s.io") == [b"\x01hi\n", b"\x03" + words.encode()]
    assert spoken(server, exec_ + "0", "base64.channel.k8s.io") == ["1" + encoded]
    said, status = spoken(server, exec_ + "0", "v4.base64.channel.k8s.io")
    assert isinstance(status, str)
    assert (said, status[0]) == ("1" + encoded, "3")
    assert json.loads(base64.b64decode(status[1:]))["status"] == "Success"


def test_logs_come_over_websockets(server: ApiServer) -> None:
    container = {"name": "c", "image": "i", "command": ["sh", "-c", "echo alive; sleep 60"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "logs"},
        "spec": {"containers": [container]},
    }
    server.request("POST", PODS, pod)
    server.settle()
    assert spoken(server, "/logs/log?container=c", "binary.k8s.io") == [b"alive\n"]
    assert spoken(server, "/logs/log?container=c", "") == [b"alive\n"]
    text = base64.b64encode(b"alive\n").decode()
    assert spoken(server, "/logs/log?container=c", "base64.binary.k8s.io") == [text]


@pytest.mark.parametrize(
    ("context", "pod", "line", "out", "code"),
    [
        ({}, {}, "id -u; id -g", "0\n0\n", 0),
        ({"runAsUser": 7}, {"runAsUser": 5, "runAsGroup": 6}, "id -u; id -g", "7\n6\n", 0),
        ({}, {"runAsUser": 5}, "[ $(id -u) -eq 5 ] && whoami", "5\n", 0),
        ({}, {"runAsUser": 5, "fsGroup": 9}, "id", "uid=5 gid=0(root) groups=0(root),9\n", 0),
    ],
)
def test_who_a_container_is(
    context: dict[str, Any], pod: dict[str, Any], line: str, out: str, code: int
) -> None:
    spec = {"containers": [{"name": "c", "securityContext": context}], "securityContext": pod}
    made = {"metadata": {"name": "p", "uid": "u"}, "spec": spec}
    found = ContainerShell()(Command(made, "c", ("sh", "-c", line)))
    assert (found.stdout, found.exit_code) == (out.encode(), code)


def test_a_root_that_is_read_only_is_not_written() -> None:
    read_only = {"readOnlyRootFilesystem": True}
    mounts = [{"name": "v", "mountPath": "/data"}]
    spec = {"containers": [{"name": "c", "securityContext": read_only, "volumeMounts": mounts}]}
    made = {"metadata": {"name": "p", "uid": "u"}, "spec": spec}
    line = "echo a > /data/f; cat /data/f; touch /g; echo b > /file; ls /file"
    found = ContainerShell()(Command(made, "c", ("/bin/sh", "-c", line)))
    assert found.stdout == b"a\n"
    assert found.stderr == (
        b"touch: /g: Read-only file system\n/bin/sh: can't create /file: Read-only file system\n"
        b"ls: /file: No such file or directory\n"
    )


kubectl = shutil.which("kubectl")


PROTOCOLS = {
    "websocket": os.environ,
    "SPDY": {
        **os.environ,
        "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false",
        "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false",
    },
}


def run(
    server: ApiServer, *words: str, given: bytes = b"", over: str = "websocket"
) -> subprocess.CompletedProcess[bytes]:
    assert kubectl is not None
    command = [kubectl, f"--kubeconfig={server.kubeconfig}", *words]
    return subprocess.run(
        command, input=given, capture_output=True, timeout=60, check=False, env=PROTOCOLS[over]
    )


@pytest.mark.skipif(kubectl is None, reason="kubectl is not here")
def test_kubectl_execs_over_spdy(server: ApiServer) -> None:
    for given in (b"hello", b"long" * 100_000):
        script = "cat; ls /none; exit 3"
        done = run(server, "exec", "-i", "p", "--", "sh", "-c", script, given=given, over="SPDY")
        assert (done.stdout == given, done.returncode) == (True, 3), done.stderr
        assert b"/none" in done.stderr
    done = run(server, "exec", "p", "-c", "none", "--", "ls", over="SPDY")
    assert b"container none is not valid for pod p" in done.stderr
    assert done.returncode == 1


@pytest.mark.skipif(kubectl is None, reason="kubectl is not here")
def test_kubectl_runs_and_execs(server: ApiServer) -> None:
    done = run(server, "exec", "-i", "p", "--", "sh", "-c", "cat; exit 3", given=b"hello")
    assert (done.stdout, done.returncode) == (b"hello", 3)
    done = run(
        server,
        "run",
        "once",
        "--rm",
        "-i",
        "--restart=Never",
        "--image=i",
        "--command",
        "--",
        "cat",
        given=b"hello",
    )
    assert b"hello" in done.stdout, done.stderr
    assert done.returncode == 0
    done = run(server, "get", "pods", "once")
    assert b"not found" in done.stderr


@pytest.mark.skipif(kubectl is None, reason="kubectl is not here")
@pytest.mark.parametrize("over", PROTOCOLS)
def test_kubectl_forwards_ports(server: ApiServer, over: str) -> None:
    assert kubectl is not None
    command = [kubectl, f"--kubeconfig={server.kubeconfig}", "port-forward", "p", ":8080"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=PROTOCOLS[over]
    ) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            port = int(line.split("127.0.0.1:")[1].split()[0])
            for text in (b"ping", b"pong" * 20_000):
                with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                    connection.sendall(text)
                    found = b""
                    while len(found) < len(text):
                        found += connection.recv(65536) or pytest.fail("the connection ended")
                    assert found == text
        finally:
            watchdog.cancel()
            process.kill()


def test_a_probe_that_fails(server: ApiServer) -> None:
    def ready() -> str:
        conditions = server.request("GET", f"{PODS}/p")["status"]["conditions"]
        return str(next(each["status"] for each in conditions if each["type"] == "Ready"))

    assert ready() == "True"
    for value, expected in (("false", "False"), ("true", "True")):
        notes = {"metadata": {"annotations": {"node.kubewright.dev/ready": value}}}
        server.request("PATCH", f"{PODS}/p", notes, "application/merge-patch+json")
        server.settle()
        assert ready() == expected
