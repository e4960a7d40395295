"""``kubewright serve`` with ``--explorer`` and ``--keep-history``, as processes."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubewright.tools.explore.guard import KEY_HEADER
from tests.tools.command import kubewright

SECONDS = 60.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str, int]]:
    """The kubeconfig, the place and the key of the explorer, and its process."""
    folder = tmp_path_factory.mktemp("served")
    words = ["--storage", f"sqlite:///{folder}/x.db", "--port", "0", "--explorer", "--keep-history", "1h"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kubewright", "serve", *words, "--kubeconfig", str(folder / "kubeconfig")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    # Whatever does not come in time ends with the process, and reading with it.
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    seen, place, key = [], "", ""
    assert process.stdout is not None
    try:
        for line in process.stdout:
            seen.append(line)
            found = re.search(r"explorer of https://\S+: http://(127\.0\.0\.1:\d+)/#(\S+)", line)
            if found:
                place, key = found[1], found[2]
            if place and any("next: kubectl" in each for each in seen):
                break
        assert place, seen
        timer.cancel()
        yield folder / "kubeconfig", place, key, process.pid
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        with pytest.raises(OSError, match="refused"):
            http.client.HTTPConnection(place, timeout=SECONDS).request("GET", "/")
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def ask(place: str, key: str, path: str, token: str = "") -> int:
    connection = http.client.HTTPConnection(place, timeout=SECONDS)
    headers = {KEY_HEADER: key} | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request("GET", path, headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_page_has_the_rights_of_whoever_logs_in(served: tuple[Path, str, str, int]) -> None:
    kubeconfig, place, key, _ = served
    token = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
    assert ask(place, "wrong", "/cluster/api/v1/namespaces", token) == 403
    assert ask(place, key, "/cluster/api/v1/namespaces") in (401, 403)
    assert ask(place, key, "/cluster/api/v1/namespaces", token) == 200


def test_the_token_of_the_server_is_not_in_the_explorers_process(served: tuple[Path, str, str, int]) -> None:
    kubeconfig, _, _, pid = served
    if not Path("/proc").is_dir():
        pytest.skip("no /proc here")
    token = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    assert any(b"explore" in each.split(b"\0") for each in commands)
    assert all(token.encode() not in each for each in commands)


def test_history_is_kept(served: tuple[Path, str, str, int]) -> None:
    kubeconfig = served[0]
    code, out, _ = kubewright("history", "namespaces/default", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "created" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--keep-history", "1h"], "memory:// keeps no versions"),
        (["--keep-history", "soon", "--storage", "sqlite:///x.db"], "'soon' is no duration"),
        (["--keep-history", "0s", "--storage", "sqlite:///x.db"], "more than nothing"),
        (["--explorer-port", "70000"], "no port"),
    ],
)
def test_refusals(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = [] if "--storage" in words else ["--storage", "memory://"]
    done = subprocess.run(
        [sys.executable, "-m", "kubewright", "serve", *storage, *words],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
