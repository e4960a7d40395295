"""The server under load from other processes: rates, p99, fan-out, start-up, memory; medians of several runs.

    python tests/bench/server_load.py [--seconds 4] [--runs 3] [--storage memory://] [--tls] [--only get,create]

Needs wrk. The ceiling is a bare protocol that sends one prepared body over the same parser and loop
(``http_servers.py``), so that a run says what the API costs above its floor. One line a measure; ``--json FILE``
keeps all.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PORT = 7680
TOKEN = "bench"
TLS = ssl._create_unverified_context()

# Of a kube-apiserver v1.36 with etcd over TLS on two cores: per second; and what is aimed at.
REFERENCE = {
    "get": 5320,
    "list-1k": 95,
    "list-10k": 9,
    "page-500": 120,
    "create": 1930,
    "apply": 1190,
    "fan-out": 33000,
}
AIM = {"get": 3, "list-1k": 10, "list-10k": 10, "page-500": 10, "create": 2, "apply": 2, "fan-out": 3}

CREATE = """
local thread_number, made = 0, 0
function setup(thread) thread_number = thread_number + 1; thread:set("number", thread_number) end
function request()
  made = made + 1
  local text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%d-%d"},"data":{"key":"%s"}}'
  local body = string.format(text, RUN, number, made, string.rep("v", 600))
  return wrk.format("POST", PATH, {["Content-Type"]="application/json", ["Authorization"]="Bearer bench"}, body)
end
"""
APPLY = """
local made = 0
function request()
  made = made + 1
  local name = "applied-" .. made % 100
  local text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"key":"%d"}}'
  local body = string.format(text, name, made)
  return wrk.format("PATCH", PATH .. "/" .. name .. "?fieldManager=bench&force=true",
    {["Content-Type"]="application/apply-patch+yaml", ["Authorization"]="Bearer bench"}, body)
end
"""


class Target:
    """A running server."""

    def __init__(self, url: str, process: subprocess.Popen[bytes], ready_seconds: float) -> None:
        self.url = url
        self.process = process
        self.ready_seconds = ready_seconds

    def connect(self) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.hostname, parts.port, context=TLS)
        return http.client.HTTPConnection(parts.hostname, parts.port)

    def post(self, connection: http.client.HTTPConnection, path: str, body: object) -> None:
        head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), head)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 201:
            raise SystemExit(f"POST {path}: {answer.status} {said[:300]!r}")

    def resident(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) // 1024


@contextmanager
def running(storage: str, tls: bool, extra: list[str], port: int = PORT) -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="kubewright-bench-") as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(f"{TOKEN},admin,1,system:masters\n")
        command = [sys.executable, "-m", "kubewright.cli", "serve", "--port", str(port), "--log-level", "error",
                   "--token-file", str(tokens), "--storage", storage.replace("FOLDER", folder), *extra]  # fmt: skip
        command += ["--tls", "auto" if tls else "off", "--cert-dir", folder]
        path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path})
        target = Target(f"{'https' if tls else 'http'}://127.0.0.1:{port}", process, 0)
        try:
            wait_ready(target)
            target.ready_seconds = time.monotonic() - began
            yield target
        finally:
            process.terminate()
            process.wait(20)


def wait_ready(target: Target) -> None:
    for _ in range(3000):
        if target.process.poll() is not None:
            raise SystemExit("the server ended")
        try:
            connection = target.connect()
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.005)
    raise SystemExit("the server did not become ready")


def seed(target: Target, namespace: str, count: int) -> None:
    target.post(target.connect(), "/api/v1/namespaces", {"metadata": {"name": namespace}})

    def work(first: int) -> None:
        connection = target.connect()
        for number in range(first, count, 8):
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"cm-{number:06d}", "labels": {"app": f"a{number % 10}", "tier": "x"}},
                "data": {f"key{n}": "v" * 60 for n in range(10)},
            }
            target.post(connection, f"/api/v1/namespaces/{namespace}/configmaps", body)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wrk(url: str, connections: int, seconds: int, script: str = "") -> tuple[float, str, int]:
    command = ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", "--latency"]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        if script:
            file.write(script)
            file.flush()
            command += ["-s", file.name]
        command += ["-H", f"Authorization: Bearer {TOKEN}", url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))
    slow = re.search(r"^\s+99%\s+(\d\S*)", said, re.MULTILINE).group(1)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    return rate, slow, int(failed.group(1)) if failed else 0


async def fan_out(target: Target, watchers: int = 500, writes: int = 200) -> tuple[float, str, int]:
    parts = urllib.parse.urlsplit(target.url)
    context = TLS if parts.scheme == "https" else None
    namespace = f"fan-{time.time_ns()}"
    late: list[float] = []
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"

    async def call(
        streams, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> bytes:
        reader, writer = streams
        sent = json.dumps(body).encode() if body is not None else b""
        lines = (
            f"{method} {path} HTTP/1.1\r\n{head}Content-Type: {kind}\r\nContent-Length: {len(sent)}\r\n\r\n"
        )
        writer.write(lines.encode() + sent)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", answer)
        return await reader.readexactly(int(length.group(1))) if length else answer

    base = f"/api/v1/namespaces/{namespace}/configmaps"
    main = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
    await call(main, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    made = json.loads(await call(main, "POST", base, {"metadata": {"name": "x"}, "data": {"pad": "v" * 600}}))
    version = made["metadata"]["resourceVersion"]
    standing = 0

    async def watch() -> int:
        nonlocal standing
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context, limit=1 << 22)
        writer.write(f"GET {base}?watch=1&resourceVersion={version} HTTP/1.1\r\n{head}\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        standing += 1
        seen = 0
        while seen < writes and (block := await reader.read(1 << 18)):
            seen += block.count(b'"MODIFIED"')
            at = block.rfind(b'"sent":"')
            if at >= 0:
                late.append(time.time() - float(block[at + 8 : block.index(b'"', at + 8)]))
        writer.close()
        return seen

    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    while standing < watchers:
        await asyncio.sleep(0.01)
    began = time.monotonic()
    for _ in range(writes):
        change = {"data": {"sent": f"{time.time():.6f}"}}
        await call(main, "PATCH", f"{base}/x", change, "application/merge-patch+json")
    seen = sum(await asyncio.wait_for(asyncio.gather(*tasks), 120))
    took = time.monotonic() - began
    late.sort()
    slow = f"{late[int(len(late) * 0.99)] * 1e3:.1f}ms"
    return seen / took, slow, watchers * writes - seen


def ceiling(seconds: int, tls: bool) -> str:
    said = subprocess.run(
        [sys.executable, str(HERE / "http_servers.py"), str(seconds), "protocol"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout.splitlines()  # fmt: skip
    return said[1 if tls else 0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--storage", default="sqlite:///FOLDER/bench.db", help="FOLDER is a temporary folder")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--packages", default="kubernetes_api")
    options = parser.parse_args()
    print(
        f"{options.storage.partition(':')[0]}, {'TLS' if options.tls else 'plain'},"
        f" medians of {options.runs} runs of {options.seconds} s"
    )
    print("ceiling:", ceiling(options.seconds, options.tls), flush=True)
    report: dict[str, object] = {}
    with running(options.storage, options.tls, ["--packages", options.packages]) as target:
        idle = target.resident()
        seed(target, "load1k", 1000)
        seed(target, "load10k", 10_000)
        seed(target, "load4k", 4_000)
        full = target.resident()
        report |= {"ready seconds": target.ready_seconds, "idle MB": idle, "15,000 objects MB": full}
        print(
            f"ready in {target.ready_seconds:.2f} s; {idle} MB idle, {full} MB with 15,000 objects",
            flush=True,
        )
        one, ten = (f"/api/v1/namespaces/{name}/configmaps" for name in ("load1k", "load10k"))
        measures = {
            "get": lambda: wrk(f"{target.url}{one}/cm-000005", 32, options.seconds),
            "list-1k": lambda: wrk(target.url + one, 8, options.seconds),
            "list-10k": lambda: wrk(target.url + ten, 4, options.seconds),
            "page-500": lambda: wrk(f"{target.url}{ten}?limit=500", 4, options.seconds),
            "fan-out": lambda: asyncio.run(fan_out(target)),
            "apply": lambda: wrk(target.url, 16, options.seconds, f'local PATH = "{one}"' + APPLY),
            "create": lambda: wrk(
                target.url, 32, options.seconds, f'local PATH, RUN = "{one}", "w{time.time_ns()}"' + CREATE
            ),
        }
        for name, measure in measures.items():
            if options.only and name not in options.only.split(","):
                continue
            runs = [measure() for _ in range(options.runs)]
            rate = statistics.median(run[0] for run in runs)
            ratio = rate / REFERENCE[name]
            failed = sum(run[2] for run in runs)
            report[name] = {"per second": rate, "p99": [run[1] for run in runs], "failed": failed}
            print(
                f"{name:10s} {rate:12,.0f}/s   p99 {'/'.join(run[1] for run in runs):24s} {ratio:6.1f} x reference"
                f" (aim {AIM[name]} x)   failed {failed}",
                flush=True,
            )
        print(f"{target.resident()} MB at the end")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
