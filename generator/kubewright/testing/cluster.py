"""A cluster on loopback: etcd members and several servers over them, as processes, for demonstrations and tests.

``python -m kubewright.testing.cluster`` starts one and waits until it is interrupted; behind ``--`` it runs a command
with KUBECONFIG set to it, and ends. Whoever reaches loopback is its administrator: it is nothing to keep secrets in.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from kubewright.testing.etcd import EtcdMembers, EtcdMissing
from kubewright.testing.ports import free_ports

START_SECONDS = 60.0


class Cluster:
    """``members`` of etcd and ``servers``, with what they write in ``folder``.

    ``through`` are the client ports that each server is told, where it is not to reach the members directly.
    """

    def __init__(
        self,
        folder: Path,
        members: int = 3,
        servers: int = 2,
        *,
        ports: Sequence[int] = (),
        flags: tuple[str, ...] = (),
        through: Sequence[Sequence[int]] = (),
        server_flags: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        chosen = list(ports) or free_ports(2 * members + servers)
        self.etcd = EtcdMembers(
            folder / "etcd", members, ports=chosen[: 2 * members], flags=flags, durable=True
        )
        self.ports = chosen[2 * members : 2 * members + servers]
        self._through = [list(one) for one in through] or [self.etcd.client_ports] * servers
        self._flags = server_flags
        self._servers: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def urls(self) -> list[str]:
        """Where the servers listen."""
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with a context for each server: ``one``, ``two``, …"""
        return self.folder / "kubeconfig"

    def start(self) -> None:
        """Starts all; returns when all are ready. Raises TimeoutError."""
        self.etcd.start()
        for number in range(len(self.ports)):
            self.start_server(number)
        for number in range(len(self.ports)):
            self.wait_ready(number)
        self.kubeconfig.write_text(_kubeconfig(self.urls))

    def start_server(self, number: int) -> None:
        """Starts a server; it is ready some seconds later."""
        url = "etcd://" + ",".join(f"127.0.0.1:{port}" for port in self._through[number])
        with (self.folder / f"server{number}.log").open("ab") as output:
            self._servers[number] = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "kubewright",
                    "serve",
                    f"--storage={url}",
                    f"--port={self.ports[number]}",
                    "--tls=off",
                    "--anonymous-admin",
                    f"--cert-dir={self.folder / 'certs'}",
                    f"--kubeconfig={self.folder / f'server{number}.kubeconfig'}",
                    "--log-level=warning",
                    *self._flags,
                ],
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_ready(self, number: int, seconds: float = START_SECONDS) -> None:
        """Returns when a server is ready. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if (code := self._servers[number].poll()) is not None:
                raise TimeoutError(f"server {number} ended with {code}: see {self.folder}/server{number}.log")
            if self.is_ready(number):
                return
            time.sleep(0.2)
        raise TimeoutError(f"server {number} is not ready: see {self.folder}/server{number}.log")

    def is_ready(self, number: int) -> bool:
        """Whether a server says that it is."""
        try:
            with urllib.request.urlopen(f"{self.urls[number]}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def kill_server(self, number: int) -> None:
        """Ends a server without a word."""
        self._servers[number].kill()
        self._servers[number].wait()

    def stop(self) -> None:
        """Ends all."""
        for server in self._servers.values():
            if server.poll() is None:
                server.send_signal(signal.SIGCONT)
                server.terminate()
        for server in self._servers.values():
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        self.etcd.stop()


def _kubeconfig(urls: Sequence[str]) -> str:
    names = ("one", "two", "three", "four", "five")
    named = [(names[number], url) for number, url in enumerate(urls)]
    clusters = "".join(f'- {{name: {name}, cluster: {{server: "{url}"}}}}\n' for name, url in named)
    contexts = "".join(
        f"- {{name: {name}, context: {{cluster: {name}, user: admin}}}}\n" for name, _ in named
    )
    return (
        "apiVersion: v1\nkind: Config\nusers:\n- {name: admin, user: {}}\n"
        f"clusters:\n{clusters}contexts:\n{contexts}current-context: one\n"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Starts a cluster; see the header. Returns the command's exit code."""
    parser = argparse.ArgumentParser(prog="python -m kubewright.testing.cluster", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("build/cluster"), help="kept; removed at the next start"
    )
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- COMMAND …")
    options = parser.parse_args(words)
    shutil.rmtree(options.folder, ignore_errors=True)
    try:
        cluster = Cluster(options.folder, options.members, options.servers)
        try:
            cluster.start()
            return _use(cluster, [word for word in options.command if word != "--"])
        finally:
            cluster.stop()
    except (EtcdMissing, TimeoutError) as fault:
        print(fault, file=sys.stderr)
        return 1


def _use(cluster: Cluster, command: list[str]) -> int:
    if command:
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        return subprocess.run(command, env=environment, check=False).returncode
    print(f"etcd: {cluster.etcd.url}\nservers: {', '.join(cluster.urls)}")
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    print("kubectl --context one create configmap hello --from-literal=from=one")
    print("kubectl --context two get configmap hello -o yaml")
    print("Ctrl-C ends it", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause() if hasattr(signal, "pause") else time.sleep(1 << 30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
