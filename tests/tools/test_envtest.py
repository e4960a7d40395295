"""``kubewright envtest``: the programs, started as envtest starts kube-apiserver and etcd.

That is: help first, then the etcd, keys and certificates of its own in a folder, and /healthz until it answers.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import marshal
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from kubewright.testing.ports import free_ports
from kubewright.tools.envtest.assets import AssetsError, write_assets
from kubewright.tools.envtest.image import FLAG, KIND, SIZE_BYTES
from tests.tools.command import kubewright

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")
PATIENCE_SECONDS = 120.0
ETCD_FLAGS = ("--unsafe-no-fsync=true", "--listen-peer-urls=http://127.0.0.1:1")


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("envtest") / "bin"
    write_assets(folder, ["--controllers=all"])
    return folder


def wait_for(url: str, process: subprocess.Popen[bytes]) -> str:
    """The answer of a program, once it gives one."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, process.communicate()
        try:
            with urllib.request.urlopen(url, context=ssl._create_unverified_context(), timeout=60) as answer:
                return str(answer.read().decode())
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


Issued = tuple[x509.Certificate, Any]


def issue(folder: Path, name: str, subject: str, by: Issued | None = None, of: str = "") -> Issued:
    """A certificate with its key, in files of the folder; without a signer it is an authority."""
    key: Any = (
        rsa.generate_private_key(65537, 2048)
        if name == "sa-signer"
        else ec.generate_private_key(ec.SECP256R1())
    )
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, of)] if of else []
    whose = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(whose)
        .issuer_name(by[0].subject if by else whose)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    if by is None:
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
    else:
        # As envtest's: it names less than this server's own certificates do.
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(by[1] if by else key, hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made, key


@dataclass
class ControlPlane:
    """A started pair, and what envtest knows of it."""

    folder: Path
    port: int
    api: subprocess.Popen[bytes]
    etcd: subprocess.Popen[bytes]

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """An answer to the user of the client certificate; the server shows the certificate of the folder."""
        tls = ssl.create_default_context(cafile=str(self.folder / "authority.crt"))
        tls.load_cert_chain(self.folder / "user.crt", self.folder / "user.key")
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, context=tls, timeout=30) as answer:
            return json.load(answer)

    def stop(self) -> tuple[int, int]:
        """Ends both; the exit codes."""
        for program in (self.api, self.etcd):
            program.send_signal(signal.SIGTERM)
        return self.api.wait(PATIENCE_SECONDS), self.etcd.wait(PATIENCE_SECONDS)


def start(assets: Path, folder: Path, environment: dict[str, str] | None = None) -> ControlPlane:
    """What envtest does, in its order."""
    shown = subprocess.run([assets / "etcd", "--help"], capture_output=True, check=True, text=True).stdout
    assert "\n  --unsafe-no-fsync\n" in shown
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    urls = (f"--advertise-client-urls={url}", f"--listen-client-urls={url}", f"--data-dir={folder}/etcd")
    etcd = subprocess.Popen([assets / "etcd", *urls, *ETCD_FLAGS])
    assert json.loads(wait_for(f"{url}/health", etcd))["health"] == "true"
    authority = issue(folder, "authority", "envtest-environment")
    issue(folder, "apiserver", "localhost", authority)
    issue(folder, "sa-signer", "service accounts", authority)
    issue(folder, "user", "admin", issue(folder, "clients", "clients"), "system:masters")
    help_ = subprocess.run(
        [assets / "kube-apiserver", "--help"], capture_output=True, check=True, text=True
    ).stdout
    assert "\n      --secure-port value\n" in help_
    assert "insecure-port" not in help_
    [port] = free_ports(1)
    flags = {
        "allow-privileged": "true",
        "authorization-mode": "RBAC",
        "bind-address": "127.0.0.1",
        "cert-dir": folder,
        "client-ca-file": folder / "clients.crt",
        "disable-admission-plugins": "ServiceAccount",
        "etcd-servers": url,
        "secure-port": port,
        "service-account-issuer": f"https://127.0.0.1:{port}/",
        "service-account-key-file": folder / "sa-signer.crt",
        "service-account-signing-key-file": folder / "sa-signer.key",
        "service-cluster-ip-range": "10.0.0.0/24",
    }
    words = [f"--{name}={value}" for name, value in flags.items()]
    api = subprocess.Popen([assets / "kube-apiserver", *words], stderr=subprocess.PIPE, env=environment)
    assert wait_for(f"https://127.0.0.1:{port}/healthz", api) == "ok"
    return ControlPlane(folder, port, api, etcd)


FILES = {
    "policy": "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n",
    "tokens": 'secret,someone,uid,"system:masters"\n',
    "tracing": "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:1\n",
    "metrics": "{}\n",
    "encryption": "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
    "resources: [{resources: [secrets], providers: [{identity: {}}]}]\n",
    "kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
    "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1/'}}]\n"
    "contexts: [{name: c, context: {cluster: c}}]\n",
}
"""Files that flags name, by what stands for them in kube_apiserver_flags.yaml."""
OTHER_WAYS = re.compile(
    r"etcd-(servers|cafile|certfile|keyfile|prefix)|secure-port|authentication-config|authorization-config|cert-dir"
    r"|admission-control"
)
"""Flags of another storage, and of another way to say who may what or which plugins run."""


def test_a_server_starts_with_all_flags_that_are_taken(assets: Path, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    authority = issue(tmp_path, "authority", "some authority")
    issue(tmp_path, "apiserver", "localhost", authority)
    places = {name: tmp_path / name for name in FILES} | {
        "folder": tmp_path,
        "ca": tmp_path / "authority.crt",
        "cert": tmp_path / "apiserver.crt",
        "key": tmp_path / "apiserver.key",
    }
    flags = yaml.safe_load((Path(__file__).parent / "kube_apiserver_flags.yaml").read_text())
    [port] = free_ports(1)
    words = [f"--secure-port={port}", f"--cert-dir={tmp_path}"]
    for name, value in {**flags["taken"], **flags["noted"]}.items():
        if not OTHER_WAYS.fullmatch(name):
            words.append(f"--{name}" if value is True else f"--{name}={value.format(**places)}")
    with (tmp_path / "log").open("wb") as log:
        api = subprocess.Popen([assets / "kube-apiserver", *words], stderr=log)
    try:
        assert wait_for(f"https://127.0.0.1:{port}/livez", api) == "ok"
        url = f"https://127.0.0.1:{port}/.well-known/openid-configuration"
        request = urllib.request.Request(url, headers={"Authorization": "Bearer secret"})
        tls = ssl._create_unverified_context()
        with urllib.request.urlopen(request, context=tls, timeout=60) as answer:
            document = json.load(answer)
        assert document["jwks_uri"] == flags["taken"]["service-account-jwks-uri"]
    finally:
        api.kill()
        api.wait(PATIENCE_SECONDS)
    noted = (tmp_path / "log").read_text()
    assert not [name for name in flags["noted"] if f"--{name}" not in noted]


@pytest.fixture
def plane(assets: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    started = start(assets, tmp_path)
    yield started
    for program in (started.api, started.etcd):
        if program.poll() is None:
            program.kill()
        program.communicate()


def test_a_suite_gets_what_it_expects(plane: ControlPlane) -> None:
    """The folder's certificate is shown, users are those of the client authority, tokens verify, namespaces end."""
    plane.ask("/api/v1/namespaces", "POST", {"metadata": {"name": "shop"}})
    plane.ask("/api/v1/namespaces/shop/configmaps", "POST", {"metadata": {"name": "c"}})
    accounts = "/api/v1/namespaces/shop/serviceaccounts"
    plane.ask(accounts, "POST", {"metadata": {"name": "robot"}})
    token = plane.ask(f"{accounts}/robot/token", "POST", {"spec": {}})["status"]["token"]
    review = plane.ask("/apis/authentication.k8s.io/v1/tokenreviews", "POST", {"spec": {"token": token}})
    assert review["status"]["user"]["username"] == "system:serviceaccount:shop:robot"
    plane.ask("/api/v1/namespaces/shop", "DELETE")
    until = time.monotonic() + PATIENCE_SECONDS
    while "shop" in {each["metadata"]["name"] for each in plane.ask("/api/v1/namespaces")["items"]}:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert plane.stop() == (0, 0)
    assert b"--allow-privileged: taken" in plane.api.stderr.read()  # type: ignore[union-attr]


def test_a_command_runs_with_the_programs_and_its_exit_code_is_passed_on(tmp_path: Path) -> None:
    """Its servers come from the warm process, one after another, and end with the command at the latest."""
    script = (
        "import sys; from pathlib import Path; import os\n"
        "from tests.tools.test_envtest import start\n"
        "assets = Path(os.environ['KUBEBUILDER_ASSETS'])\n"
        "for name in ('one', 'two'):\n"
        "    folder = Path(sys.argv[1]) / name; folder.mkdir()\n"
        "    plane = start(assets, folder)\n"
        "    assert len(plane.ask('/api/v1/namespaces')['items']) == 4\n"
        "    if name == 'one': assert plane.stop() == (0, 0)\n"
        "plane.etcd.terminate()\n"
        "print(assets, plane.port, flush=True); os._exit(7)\n"
    )
    command = [
        sys.executable,
        "-m",
        "kubewright",
        "envtest",
        "--",
        sys.executable,
        "-c",
        script,
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE_SECONDS, check=False)
    assert done.returncode == 7, done.stderr
    folder, port = done.stdout.splitlines()[-1].split()
    assert not Path(folder).exists()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", int(port)), 5).close()


def test_programs_that_a_crashed_suite_leaves_behind_end() -> None:
    suite = (
        "import os, subprocess\n"
        "program = os.path.join(os.environ['KUBEBUILDER_ASSETS'], 'etcd')\n"
        f"subprocess.Popen([program, '--listen-client-urls=http://127.0.0.1:{free_ports(1)[0]}'])\n"
        "os.abort()\n"
    )
    command = [sys.executable, "-m", "kubewright", "envtest", "--", sys.executable, "-c", suite]
    # Its output ends with the last program that holds it.
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 128 + signal.SIGABRT


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "Error: unknown flag: --nope\n"),
        (["--nope=1", "--v=2"], "Error: unknown flag: --nope\n"),
        (["-x"], "Error: unknown shorthand flag: 'x' in -x\n"),
        (["--secure-port"], "Error: flag needs an argument: --secure-port\n"),
        (["foo"], 'Error: "kube-apiserver" does not take any arguments, got ["foo"]\n'),
        (
            ["--allow-privileged=maybe"],
            'Error: invalid argument "maybe" for "--allow-privileged" flag: strconv.ParseBool: parsing "maybe": '
            "invalid syntax\n",
        ),
    ],
)
def test_what_kube_apiserver_refuses_is_refused_in_its_words(
    assets: Path, words: list[str], said: str
) -> None:
    """The words are those of kube-apiserver 1.36."""
    done = subprocess.run([assets / "kube-apiserver", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, said)


_SOURCES = """
import sys
from kubewright.tools.envtest.image import use
use()
import apimachinery.server.assembly.api
import apimachinery.wire.json
from dataclasses import dataclass
@dataclass
class Pair:
    one: int
assert Pair(1) == Pair(1)
print(sum(type(getattr(module, "__loader__", None)).__name__ == "_Loader" for module in sys.modules.values()))
print(type(apimachinery.wire.json.__loader__).__name__)
"""


def sources(image: Path) -> tuple[int, str]:
    """How many modules a start takes from an image, and what loads one of them."""
    command = [sys.executable, "-X", f"{FLAG}={image}", "-c", _SOURCES]
    count, loader = subprocess.check_output(command, text=True).split()
    return int(count), loader


def test_a_start_takes_its_modules_from_the_image(assets: Path) -> None:
    count, loader = sources(assets / ".image")
    assert count > 300
    assert loader == "_Loader"


def test_an_image_is_for_the_sources_it_was_made_of(assets: Path, tmp_path: Path) -> None:
    """A module that changed is read from its source; an image of another Python, or a damaged one, is not read."""
    data = (assets / ".image").read_bytes()
    start = len(KIND) + SIZE_BYTES
    end = start + int.from_bytes(data[len(KIND) : start], "little")
    state, entries, texts = marshal.loads(data[start:end])
    source, is_package, changed, *rest = entries["apimachinery.wire.json"]
    entries["apimachinery.wire.json"] = (source, is_package, changed - 1, *rest)
    head = marshal.dumps((state, entries, texts))
    older = tmp_path / "older"
    older.write_bytes(KIND + len(head).to_bytes(SIZE_BYTES, "little") + head + data[end:])
    count, loader = sources(older)
    assert count > 300
    assert loader == "SourceFileLoader"
    other = tmp_path / "other"
    for wrong in (b"", b"kubewright image cpython-310" + data, data[:start], data[: end - 9]):
        other.write_bytes(wrong)
        assert sources(other) == (0, "SourceFileLoader")
    assert sources(tmp_path / "missing") == (0, "SourceFileLoader")


_KEPT = """
import sys
from pathlib import Path
from kubewright.tools.envtest.image import KeptImage
kept = KeptImage(sys.argv[1])
kept.use()
import apimachinery.wire.json
import own
print(type(apimachinery.wire.json.__loader__).__name__, type(own.__loader__).__name__)
kept.renew()
"""


def test_an_image_is_kept_for_one_state_of_what_is_installed(tmp_path: Path) -> None:
    """The first start writes it where Python writes bytecode. Modules of the folder that a program runs in are not in
    it, and hide those that are; folders that were added to, and others, are noticed."""
    here, more, other = tmp_path / "here", tmp_path / "more", tmp_path / "other"
    kept = tmp_path / "kept"
    for folder in (here, more, other):
        folder.mkdir()
    (here / "own.py").write_text("")

    def loaders(path: Path = more, **variables: str) -> list[str]:
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        roots = os.pathsep.join([str(path), *(place for place in sys.path if place)])
        environment |= {"PYTHONPATH": roots, "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode"), **variables}
        command = [sys.executable, "-c", _KEPT, kept]
        return subprocess.check_output(command, text=True, env=environment, cwd=here).split()

    assert loaders(PYTHONDONTWRITEBYTECODE="1") == ["SourceFileLoader", "SourceFileLoader"]
    assert not kept.exists()
    read = ["SourceFileLoader", "SourceFileLoader"]
    taken = ["_Loader", "SourceFileLoader"]
    assert [loaders(), loaders()] == [read, taken]
    (here / "apimachinery.txt").touch()
    assert loaders() == read
    (here / "apimachinery.txt").unlink()
    assert loaders() == taken
    (more / "own.py").write_text("")
    assert [loaders(), loaders()] == [read, taken]
    assert [loaders(other), loaders(other)] == [read, taken]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bytecode", "here", "kept", "more", "other"]


def test_a_test_server_keeps_the_image_of_its_start(tmp_path: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    program = [sys.executable, "-m", "kubewright", "testserver", "--stay"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        assert any(line == b"}\n" for line in server.stdout)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_SECONDS) == 0
    (kept,) = tmp_path.rglob("*-kept")
    assert kept.read_bytes().startswith(KIND)


def test_versions(assets: Path) -> None:
    shown = subprocess.run(
        [assets / "kube-apiserver", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "Kubernetes v1.36.0\n"
    assert "etcd Version" in subprocess.check_output([assets / "etcd", "--version"], text=True)


def test_a_folder_is_written_again_but_programs_of_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / "with a space and 'quotes'"
    code, out, _ = kubewright("envtest", "--output", folder)
    assert (code, f"export KUBEBUILDER_ASSETS={folder}" in out) == (0, True)
    assert kubewright("envtest", "--output", folder, "-q") == (0, "", "")
    assert subprocess.check_output([folder / "etcd", "--help"])
    (folder / "etcd").write_text("the real one")
    with pytest.raises(AssetsError):
        write_assets(folder)
    code, _, err = kubewright("envtest", "--output", folder)
    assert (code, (folder / "etcd").read_text()) == (2, "the real one")
    assert f"{folder}/etcd is not this command's" in err


def test_either_a_folder_or_a_command(tmp_path: Path) -> None:
    for words in ([], ["--output", tmp_path, "--", "true"]):
        code, _, err = kubewright("envtest", *words)
        assert (code, "give --output DIR, or -- COMMAND" in err) == (2, True)
    code, _, err = kubewright("envtest", "--controllers", "nope", "--", "true")
    assert (code, "--controllers: 'nope' is none" in err) == (2, True)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    done = subprocess.run(
        [sys.executable, "-m", "kubewright", "envtest", "--", missing],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        127,
        f"kubewright envtest: {missing}: No such file or directory\n",
    )


def test_a_test_server_refuses_a_port_that_is_none() -> None:
    program = [sys.executable, "-m", "kubewright", "testserver", "--port", "99999"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'99999' is no port: give 0 to 65535" in done.stderr


def test_a_command_runs_beside_a_test_server() -> None:
    program = """
import json, os, socket, ssl, sys, urllib.request
config = json.load(open(os.environ["KUBECONFIG"]))
server = config["clusters"][0]["cluster"]["server"]
token = config["users"][0]["user"]["token"]
context = ssl._create_unverified_context()
asked = urllib.request.Request(server + "/api/v1/namespaces/default", headers={"Authorization": f"Bearer {token}"})
print(json.load(urllib.request.urlopen(asked, context=context))["metadata"]["name"])
for _ in range(20):  # clients that go before they are answered
    address = server.removeprefix("https://").split(":")
    with context.wrap_socket(socket.create_connection((address[0], int(address[1])))) as gone:
        head = f"GET /openapi/v2 HTTP/1.1\\r\\nAuthorization: Bearer {token}\\r\\nHost: a\\r\\n\\r\\n"
        gone.sendall(head.encode())
        try:
            gone.unwrap()
        except OSError:
            pass
sys.exit(3)
"""
    command = [sys.executable, "-m", "kubewright", "testserver", "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout) == (3, "default\n")
    assert "eof_received" not in done.stderr
    command[-3:] = ["no-such-program"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stderr) == (
        127,
        "kubewright testserver: no-such-program: No such file or directory\n",
    )


def test_a_test_server_prints_its_kubeconfig_and_ends_with_its_parent() -> None:
    parent = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-m', 'kubewright', 'testserver']\n"
        "server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[int(sys.argv[1])])\n"
        "lines = []\n"
        "while not lines or lines[-1] != '}\\n': lines.append(server.stdout.readline())\n"
        "print(''.join(lines), flush=True)\n"
    )
    # Its number may go on being known when it has ended: not every first process waits for those that are left to it.
    lives, held = os.pipe()
    command = [sys.executable, "-c", parent, str(held)]
    shown = subprocess.check_output(command, text=True, timeout=PATIENCE_SECONDS, pass_fds=[held])
    os.close(held)
    server = json.loads(shown)["clusters"][0]["cluster"]["server"]
    assert server.startswith("https://127.0.0.1:")
    ended, _, _ = select.select([lives], [], [], PATIENCE_SECONDS)
    assert ended and os.read(lives, 1) == b""
    os.close(lives)
