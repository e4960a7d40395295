"""Other people's test suites against a server of ours: what passed, what did not, and why.

    python tests/peers/run.py [SUITE …]

Sources are source distributions from PyPI, or commits of git repositories (CLONES names a folder of clones, else they
are cloned), in a folder of the user's cache; what they need is installed next to them. A suite that cannot be had is
skipped, saying so. Exit code 1 where a test fails that ``suites.yaml`` does not allow.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.projects import find_clone

from apimachinery.client.config import Config
from kubernetes_api.client import Client

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "kubewright-peers"
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (?:\[\d+\] )?(\S+)", re.M)


def main() -> int:
    """Runs the suites; returns the exit code."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    plan: dict[str, Any] = yaml.safe_load((HERE / "suites.yaml").read_text())
    wanted = sys.argv[1:] or [*plan["suites"]]
    surprises = 0
    with tempfile.TemporaryDirectory(prefix="kubewright-peers-") as folder:
        for name in wanted:
            suite = plan["suites"][name]
            source = fetch(name, suite)
            if source is None:
                print(f"{name}: skipped: {suite['source']}, or what it needs, cannot be had")
                continue
            with Server(Path(folder) / name) as kubeconfig:
                surprises += judge(name, run(name, source, suite, kubeconfig), suite.get("allowed", {}))
    for name, why in plan["without"].items():
        print(f"{name}: not run: {why}")
    return int(bool(surprises))


def fetch(name: str, suite: dict[str, Any]) -> Path | None:
    """The unpacked source of a suite, with what it needs installed; None where either cannot be had."""
    folder = CACHE / re.sub(r"==|@|/", "-", suite["source"])
    CACHE.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=CACHE) as part:
            if "@" in suite["source"]:
                unpacked = _cloned(suite["source"], suite["folder"], Path(part))
            else:
                unpacked = _released(suite["source"], Path(part))
            if unpacked is None:
                return None
            unpacked.rename(folder)
    needs = _needs(name)
    if not needs.is_dir():
        with tempfile.TemporaryDirectory(dir=CACHE) as part:
            install = [*PIP, "install", "--target", f"{part}/needs", *suite["needs"]]
            if subprocess.run(install, check=False, capture_output=True).returncode:
                return None
            Path(part, "needs").rename(needs)
    return folder


def _needs(name: str) -> Path:
    return CACHE / f"needs-{name}"


def _released(source: str, part: Path) -> Path | None:
    package = source.partition("==")[0]
    download = [*PIP, "download", "--no-deps", "--no-binary", package, "-d", str(part), source]
    if subprocess.run(download, check=False, capture_output=True).returncode:
        return None
    (archive,) = part.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(part, filter="data")
    return next(path for path in part.iterdir() if path.is_dir())


def _cloned(source: str, folder: str, part: Path) -> Path | None:
    """One folder of a commit."""
    repository, commit = source.split("@")
    clone = find_clone(Path(os.environ.get("CLONES") or "/none"), repository)
    if clone is None:
        clone = part / "clone"
        command = ["git", "clone", "--quiet", "--bare", f"https://github.com/{repository}", str(clone)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            return None
    archive = [
        "git",
        f"--git-dir={clone}",
        "archive",
        "--format=tar",
        "-o",
        str(part / "tar"),
        commit,
        folder,
    ]
    if subprocess.run(archive, check=False, capture_output=True).returncode:
        return None
    with tarfile.open(part / "tar") as tar:
        tar.extractall(part / "source", filter="data")
    return part / "source"


class Server:
    """A server in a process of its own, with a simulated node (``served.py``), and what a cluster made by kind runs in
    kube-system, as far as ``cluster.yaml`` says.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._kubeconfig = folder / ".kube/config"
        self._kubeconfig.parent.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Path:
        path = os.pathsep.join(str(ROOT / name) for name in ("generator", "generated"))
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "served.py"), str(self._kubeconfig)],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
        )
        ends = time.monotonic() + 60
        while not self._kubeconfig.exists():
            if self._process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError("the server did not start")
            time.sleep(0.05)
        with Client(Config.load(str(self._kubeconfig))) as client:
            made = client.apply_file(str(HERE / "cluster.yaml"), field_manager="kind")
            for obj in made:
                client.wait(obj, "jsonpath={.status.phase}=Running")
        return self._kubeconfig

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.communicate(timeout=60)


def run(name: str, source: Path, suite: dict[str, Any], kubeconfig: Path) -> dict[str, str]:
    """Outcome by test."""
    home = kubeconfig.parents[1]
    for path in suite.get("copied", ()):  # tests whose conftest makes a cluster: ours takes its place
        shutil.copytree(source / path, home / path)
    start = home if "copied" in suite else source
    if suite.get("beside"):  # tests that are to be part of the installed package
        start = _needs(name)
        shutil.copytree(source / suite["folder"], start / suite["folder"], dirs_exist_ok=True)
    if shim := suite.get("conftest"):
        shutil.copy(HERE / "shims" / shim, home / suite["copied"][0] / "conftest.py")
    paths = [start, HERE / "shims", *(source / each for each in suite.get("paths", ["."])), _needs(name)]
    environment = os.environ | {
        "HOME": str(home),
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
    command += ["--timeout", "90"]
    done = subprocess.run(command, cwd=start, env=environment, capture_output=True, text=True, check=False)
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
