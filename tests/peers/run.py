"""Other people's test suites against a server of ours: what passed, what did not, and why.

    python tests/peers/run.py [SUITE …]

Sources come from PyPI as source distributions, into a folder of the user's cache; what they need is installed next to
them. A suite that cannot be had is skipped, saying so. Exit code 1 where a test fails that ``suites.yaml`` does not
allow.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from apimachinery.client.config import Config
from apimachinery.client.resource import DynamicResource
from kubernetes_api.client import Client

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REFERENCE = ROOT.parent / "shared/reference/reference.sh"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "kubewright-peers"
OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (?:\[\d+\] )?(\S+)", re.M)


def main() -> int:
    """Runs the suites; returns the exit code."""
    plan: dict[str, Any] = yaml.safe_load((HERE / "suites.yaml").read_text())
    wanted = sys.argv[1:] or [*plan["suites"]]
    surprises = 0
    with tempfile.TemporaryDirectory(prefix="kubewright-peers-") as folder:
        for name in wanted:
            suite = plan["suites"][name]
            source = fetch(name, suite)
            if source is None:
                print(f"{name}: skipped: {suite['requirement']} cannot be had as a source distribution")
                continue
            with Server(Path(folder) / name) as kubeconfig:
                surprises += judge(name, run(source, suite, kubeconfig), plan["allowed"] or {})
    for name, why in plan["without"].items():
        print(f"{name}: not run: {why}")
    return int(bool(surprises))


def fetch(name: str, suite: dict[str, Any]) -> Path | None:
    """The unpacked source distribution of a suite."""
    folder = CACHE / suite["requirement"].replace("==", "-")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    package = suite["requirement"].partition("==")[0]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as part:
            download = [
                *pip,
                "download",
                "--no-deps",
                "--no-binary",
                package,
                "-d",
                part,
                suite["requirement"],
            ]
            if subprocess.run(download, check=False, capture_output=True).returncode:
                return None
            (archive,) = Path(part).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                tar.extractall(part, filter="data")
            (unpacked,) = (path for path in Path(part).iterdir() if path.is_dir())
            unpacked.rename(folder)
    needs = CACHE / "needs"
    if suite["needs"] and not (needs / f".{name}").exists():
        install = [*pip, "install", "--target", str(needs), *suite["needs"]]
        if subprocess.run(install, check=False, capture_output=True).returncode:
            return None
        (needs / f".{name}").touch()
    return folder


class Server:
    """A server in a process of its own, with a simulated node; what a cluster made by kind runs in kube-system, as far
    as ``cluster.yaml`` says; and the stock controller manager where the reference is at hand.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._kubeconfig = folder / "kubeconfig"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Path:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "kubewright", "serve", "--storage", "memory://", "--port", str(port)]
        command += [
            "--kubeconfig",
            str(self._kubeconfig),
            "--controllers",
            "all,node",
            "--log-level",
            "error",
        ]
        path = os.pathsep.join(str(ROOT / name) for name in ("generator", "generated"))
        self._process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
        )
        ends = time.monotonic() + 60
        while not self._kubeconfig.exists():
            if self._process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError("the server did not start")
            time.sleep(0.05)
        with Client(Config.load(str(self._kubeconfig))) as client:
            for obj in yaml.safe_load_all((HERE / "cluster.yaml").read_text()):
                resource = DynamicResource.of(client, obj["apiVersion"], obj["kind"])
                resource.create(obj, namespace=obj["metadata"]["namespace"])
        if REFERENCE.is_file():
            self._manage("start-controllers", "*,-nodeipam,-nodelifecycle,-ttl")
        return self._kubeconfig

    def _manage(self, verb: str, *arguments: str) -> None:
        environment = os.environ | {"KUBECONFIG_OF": str(self._kubeconfig)}
        command = [str(REFERENCE), verb, str(self._folder / "controllers"), *arguments]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        if REFERENCE.is_file():
            self._manage("stop")
        self._process.terminate()
        self._process.wait(20)


def run(source: Path, suite: dict[str, Any], kubeconfig: Path) -> dict[str, str]:
    """Outcome by test."""
    paths = [source, HERE / "shims", CACHE / "needs"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PEERS_KUBECONFIG": str(kubeconfig),
        "KUBECONFIG": str(kubeconfig),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "--tb=line",
        "-p",
        "peers_plugin",
        "-p",
        "no:xdist",
    ]
    command += [
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
        "-p",
        "no:kubewright",
        *suite["options"],
        *suite["tests"],
    ]
    command += ["--timeout", "60"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    found = {test: outcome for outcome, test in OUTCOME.findall(done.stdout)}
    if not found:
        print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
    return found


def judge(name: str, found: dict[str, str], allowed: dict[str, str]) -> int:
    """Prints what came of a suite; how many failures nobody allowed."""
    passed = [test for test, outcome in found.items() if outcome in ("PASSED", "XPASS")]
    failed = [test for test, outcome in found.items() if outcome in ("FAILED", "ERROR")]
    reasons = {test: why for test in failed for part, why in allowed.items() if part in test}
    print(
        f"{name}: {len(passed)} passed, {len(failed)} not passed, {len(found) - len(passed) - len(failed)} skipped"
    )
    for test in failed:
        print(f"  {'allowed' if test in reasons else 'FAILED'}: {test}: {reasons.get(test, '')}")
    return len(failed) - len(reasons) or int(not found)


if __name__ == "__main__":
    sys.exit(main())
