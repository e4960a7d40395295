"""What audit costs, and whether an event is lost: creates at a pace, at each level, to a log and to a webhook.

    python tests/bench/audit.py [--pace 2000] [--seconds 3] [--port 19090]

For each level a server of its own (memory storage) takes creates on 16 connections at the pace, as far as it keeps up.
Printed: creates a second, CPU of the server for one, events that should be there and that are, those the server counts
as lost, and the bytes of one create.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tenants import Line

LEVELS = (
    "off",
    "None",
    "Metadata",
    "Request",
    "RequestResponse",
    "RequestResponse batch",
    "Metadata webhook",
)
CONNECTIONS = 16
PATH = "/api/v1/namespaces/default/configmaps"


class Sink(ThreadingHTTPServer):
    """Takes events."""

    def __init__(self) -> None:
        self.ids: collections.Counter[str] = collections.Counter()
        super().__init__(("127.0.0.1", 0), _Take)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Take(BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.ids.update(event["auditID"] for event in json.loads(body)["items"])
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None: ...


def metrics(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = [line.rpartition(" ") for line in answer.read().decode().splitlines() if line[:1] != "#"]
    return {name: float(value) for name, _, value in lines}


async def load(port: int, pace: float, seconds: float) -> tuple[int, float]:
    """Creates at a pace; how many, in which time."""
    lines = [Line(f"http://127.0.0.1:{port}", "") for _ in range(CONNECTIONS)]
    for line in lines:
        await line.open()
    total, began, made = int(pace * seconds), time.monotonic(), 0

    async def one(line: Line) -> None:
        nonlocal made
        while made < total and time.monotonic() - began < 3 * seconds:
            due = began + made / pace
            number, made = made, made + 1
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            obj = {"metadata": {"name": f"c{number}"}, "data": {"key": "v" * 600}}
            code = await line.ask("POST", PATH, json.dumps(obj).encode())
            assert code == 201, code

    await asyncio.gather(*map(one, lines))
    return made, time.monotonic() - began


def measure(level: str, port: int, pace: float, seconds: float) -> str:
    name, _, kind = level.partition(" ")
    with tempfile.TemporaryDirectory() as folder:
        policy, log, sink = Path(folder, "policy.json"), Path(folder, "audit.log"), None
        rule = {"level": name, "resources": [{"group": "", "resources": ["configmaps"]}]}
        head = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
        policy.write_text(json.dumps({**head, "rules": [rule]}))
        more: list[str] = []
        if kind == "webhook":
            sink = Sink()
            config = Path(folder, "sink.json")
            cluster = {"name": "s", "cluster": {"server": f"http://127.0.0.1:{sink.server_port}/"}}
            context = {"name": "s", "context": {"cluster": "s", "user": ""}}
            config.write_text(
                json.dumps({"clusters": [cluster], "contexts": [context], "current-context": "s"})
            )
            more = ["--audit-policy-file", str(policy), "--audit-webhook-config-file", str(config)]
            more += ["--audit-webhook-batch-max-wait", "1s"]
        elif name != "off":
            more = [
                "--audit-policy-file",
                str(policy),
                "--audit-log-path",
                str(log),
                "--audit-log-maxsize",
                "1",
            ]
            more += ["--audit-log-mode", kind or "blocking"]
        command = [sys.executable, "-m", "kubewright", "serve", "--storage", "memory://", "--port", str(port)]
        command += [
            "--anonymous-admin",
            "--controllers",
            "none",
            "--tls",
            "off",
            "--log-level",
            "error",
            *more,
        ]
        with subprocess.Popen(
            [*command, "--kubeconfig", str(Path(folder, "kc"))], stdout=subprocess.DEVNULL, env=os.environ
        ) as server:
            try:
                for _ in range(100):
                    try:
                        before = metrics(port)
                        break
                    except OSError:
                        time.sleep(0.1)
                made, took = asyncio.run(load(port, pace, seconds))
                after = metrics(port)
            finally:
                server.terminate()
                server.wait(40)
        ids: collections.Counter[str] = collections.Counter()
        size = 0
        for path in Path(folder).glob("audit*.log"):
            size += path.stat().st_size
            ids.update(json.loads(line)["auditID"] for line in path.read_bytes().splitlines())
        if sink is not None:
            ids = sink.ids
            sink.shutdown()
        wanted = 2 * made if name not in ("off", "None") else 0
        cpu = (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) / made * 1e6
        lost = sum(value for key, value in after.items() if key.startswith("apiserver_audit_error_total"))
        whole = sum(1 for count in ids.values() if count == 2)
        return (
            f"{level:22s} {made / took:6.0f}/s  {cpu:6.0f} us CPU  {sum(ids.values()):6d} of {wanted:6d} events "
            f"({whole} requests whole), {lost:.0f} lost  {size // max(made, 1):5d} bytes"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("levels", nargs="*", default=LEVELS)
    parser.add_argument("--pace", type=float, default=2000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--port", type=int, default=19090)
    options = parser.parse_args()
    for level in options.levels:
        print(measure(level, options.port, options.pace, options.seconds), flush=True)


if __name__ == "__main__":
    main()
