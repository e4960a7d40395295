"""Combinations of options of ``kubewright serve``: kubectl works with the kubeconfig, or the start is refused."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from apimachinery.access.certificates import made_authority
from tests.packaging.warm import Stem

ROOT = Path(__file__).parents[2]
KUBECTL = shutil.which("kubectl")
PATIENCE_SECONDS = 120.0
FILES = {
    "admin.csv": "t1,root,1,system:masters\n",
    "users.csv": "t1,ann,1\n",
    "authentication.yaml": "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
    "anonymous: {enabled: false}\n",
}
WORKS = (
    "",
    "--anonymous-admin",
    "--anonymous-admin --tls off",
    "--anonymous-admin --tls auto",
    "--anonymous-admin --token-file admin.csv",
    "--anonymous-admin --token-file users.csv",
    "--anonymous-admin --client-ca-file ca.crt",
    "--token-file admin.csv",
    "--token-file users.csv",
    "--token-file admin.csv --tls auto",
    "--token-file admin.csv --host 0.0.0.0",
    "--token-file users.csv --host 0.0.0.0",
    "--token-file admin.csv --host localhost",
    "--token-file admin.csv --anonymous-auth false",
    "--token-file admin.csv --client-ca-file ca.crt",
    "--client-ca-file ca.crt",
    "--client-ca-file ca.crt --host 0.0.0.0",
    "--requestheader-client-ca-file ca.crt",
    "--enable-bootstrap-token-auth",
    "--anonymous-auth false",
    "--authentication-config authentication.yaml",
    "--authorization-mode AlwaysAllow",
    "--authorization-mode AlwaysDeny",
    "--authorization-mode Node,RBAC --token-file users.csv",
    "--tls auto",
    "--cert-dir 'a folder'",
    "--kubeconfig 'a kubeconfig'",
    "--kubeconfig new/folder/kubeconfig",
    "--storage memory:// --token-file admin.csv",
)
USUAL = frozenset(
    {
        "",
        "--anonymous-admin",
        "--anonymous-admin --tls auto",
        "--token-file users.csv",
        "--token-file admin.csv --host 0.0.0.0",
        "--client-ca-file ca.crt",
        "--anonymous-auth false",
        "--authorization-mode AlwaysDeny",
        "--kubeconfig new/folder/kubeconfig",
    }
)
"""Those of each sort: a start takes a second of CPU, so `make test-real` has the others."""
REFUSED = {
    "--tls off": "kubectl sends no token over http",
    "--tls off --token-file admin.csv --kubeconfig k": "kubectl sends no token over http",
    "--tls off --client-ca-file ca.crt": "kubectl sends no token over http",
    "--anonymous-admin --host 0.0.0.0": "leave out --anonymous-admin",
    "--host 0.0.0.0": "give --token-file",
    "--token-file admin.csv --host 0.0.0.0 --tls off": "",
    "--kubeconfig ca.crt/k": "ca.crt/k: cannot be written: ",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "ca.crt").write_bytes(made_authority().pem)
    return tmp_path


@contextmanager
def started(
    stem: Stem, folder: Path, arguments: Sequence[str], **variables: str
) -> Iterator[subprocess.Popen[str]]:
    command = [*stem.words, "serve", "--port", "0", "--log-level", "error"]
    command += ["--controllers", "none", *arguments]
    path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            yield server
        finally:
            server.terminate()
            try:
                server.communicate(timeout=PATIENCE_SECONDS)
            finally:
                server.kill()  # without a use where it has ended


def lines_of(server: subprocess.Popen[str]) -> list[str]:
    """What the start says, to its last line."""
    assert server.stdout is not None and server.stderr is not None
    lines: list[str] = []
    for line in server.stdout:
        lines.append(line.strip())
        if line.startswith("next: "):
            return lines
    raise AssertionError(f"the server ended: {server.stderr.read()}")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")
@pytest.mark.parametrize(
    "options", [pytest.param(each, marks=() if each in USUAL else pytest.mark.thorough) for each in WORKS]
)
def test_kubectl_works_with_the_kubeconfig(options: str, stem: Stem, folder: Path) -> None:
    assert KUBECTL is not None
    with started(stem, folder, shlex.split(options)) as server:
        lines = lines_of(server)
        [serving] = [line for line in lines if line.startswith("serving on ")]
        _, _, setting = serving.partition("; export ")
        [word] = shlex.split(setting)
        path = word.removeprefix("KUBECONFIG=")
        assert Path(path).is_absolute()
        done = subprocess.run(
            [KUBECTL, "get", "ns", "-o", "name"],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert "namespace/default" in done.stdout, (lines, done.stderr)
        assert any(line.startswith("pods run nowhere") for line in lines)
        assert any(line.startswith("requests without credentials: ") for line in lines)


@pytest.mark.parametrize("options", ["", "--tls nowhere.crt,nowhere.key"], ids=["served", "refused"])
def test_keys_of_a_server_in_memory_end_with_it(options: str, stem: Stem, folder: Path) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    arguments = ["--storage", "memory://", *shlex.split(options)]
    with started(stem, folder, arguments, TMPDIR=str(temporary)) as server:
        if options:
            _, err = server.communicate(timeout=PATIENCE_SECONDS)
            assert "nowhere" in err
        else:
            lines_of(server)
            assert list(temporary.glob("*/apiserver.key"))
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("options", REFUSED)
def test_options_without_a_use_for_kubectl_are_refused(options: str, stem: Stem, folder: Path) -> None:
    with started(stem, folder, shlex.split(options)) as server:
        _, err = server.communicate(timeout=PATIENCE_SECONDS)
    assert server.returncode == 2
    assert err.startswith("kubewright serve: error: --") and REFUSED[options] in err


def test_an_address_in_use_is_named(stem: Stem, folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with started(stem, folder, ["--port", str(port)]) as server:
            _, err = server.communicate(timeout=PATIENCE_SECONDS)
    assert server.returncode == 2
    assert f"--host 127.0.0.1 --port {port}: Address already in use; --port 0 takes a free one" in err
