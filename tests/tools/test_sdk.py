"""``kubewright sdk`` from CRDs, an OpenAPI document and a live cluster; installed beside our wheel, its README runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubewright.cli import main
from kubewright.testing import ApiServer
from tests.compiler.languages.node_tools import MODULES, compile_strictly, needs_tsc, node

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "specs/backup/crds"
REAL = ROOT / "../shared/data/crds"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(crds=[CRDS]) as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with our wheel; what the wheels need comes from here, as nothing is fetched in tests."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=60
    )
    python = folder / "venv/bin/python"
    answer = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    Path(answer.stdout.strip(), "needed.pth").write_text(sysconfig.get_path("purelib"))
    install(python, ROOT, folder)
    return python


def install(python: Path, project: Path, folder: Path) -> None:
    """Builds a project's wheel and installs it as pip does: unpacked among the environment's packages."""
    wheels = folder / f"wheels-{project.name}"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = wheels.glob("*.whl")
    unpack = "import sys, sysconfig, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sysconfig.get_path('purelib'))"
    subprocess.run([str(python), "-c", unpack, str(wheel)], check=True, timeout=60)


def run_readme(python: Path, readme: Path, kubeconfig: Path, folder: Path) -> list[str]:
    """What each example prints."""
    printed = []
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    for example in re.findall(r"```python\n(.*?)```", readme.read_text(), re.S):
        done = subprocess.run(
            [str(python), "-W", "error", "-c", example],
            cwd=folder,
            env={**environment, "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{example}\n{done.stderr}"
        printed.append(done.stdout)
    return printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "package"),
    [
        (str(CRDS), "from_crds"),
        (str(ROOT / "specs/messaging/openapi.yaml"), "from_openapi"),
        ("cluster", "from_cluster"),
    ],
)
def test_the_made_package_is_installed_and_its_examples_run(
    server: ApiServer, site: Path, tmp_path: Path, source: str, package: str
) -> None:
    out = tmp_path / "project"
    arguments = ["sdk", "--from", source, "--package", package, "--output", str(out)]
    assert main([*arguments, "--kubeconfig", str(server.kubeconfig)]) == 0
    assert (out / "src" / package / "py.typed").exists()
    install(site, out, tmp_path)
    kubeconfig = server.kubeconfig
    if package == "from_openapi":
        with ApiServer(packages=("kubernetes_api", "messaging_api")) as other:
            other.request(
                "POST",
                "/apis/messaging.kubewright.dev/v1/brokers",
                {
                    "apiVersion": "messaging.kubewright.dev/v1",
                    "kind": "Broker",
                    "metadata": {"name": "made"},
                    "spec": {"address": "b.example"},
                },
            )
            printed = run_readme(site, out / "README.md", other.kubeconfig, tmp_path)
    else:
        printed = run_readme(site, out / "README.md", kubeconfig, tmp_path)
    assert len(printed) == 3
    assert printed[-1] == "True\n"


def test_made_again_it_leaves_what_is_yours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sdk", "--from", str(CRDS), "--package", "mine", "--output", str(tmp_path)]
    assert main(arguments) == 0
    assert "wrote pyproject.toml and README.md" in capsys.readouterr().out
    (tmp_path / "README.md").write_text("mine")
    assert main(arguments) == 0
    assert "0 files added, 0 changed, 0 removed" in capsys.readouterr().out
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the ../shared folder of recordings is absent")
@pytest.mark.parametrize("project", ["flux", pytest.param("", id="all", marks=pytest.mark.thorough)])
def test_real_crds_become_packages(project: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [REAL / project] if project else sorted(path for path in REAL.iterdir() if path.is_dir())
    for number, folder in enumerate(folders):
        out = tmp_path / str(number)
        assert main(["sdk", "--from", str(folder), "--package", "real_api", "--output", str(out)]) == 0, (
            folder
        )
        module = next((out / "src/real_api").glob("*/client.py"))
        assert "class " in module.read_text()
    capsys.readouterr()


REFUSALS = [
    ("a name that cannot be imported", ["--from", str(CRDS), "--package", "my-api"], 2,
     "kubewright sdk: 'my-api' is no name of a Python package\n"),
    ("a name in a package", ["--from", str(CRDS), "--package", "my.api"], 2,
     "kubewright sdk: 'my.api' is no name of a Python package\n"),
    ("nothing there", ["--from", "{tmp}/absent", "--package", "a"], 2,
     "{tmp}/absent: error K001: cannot read: no such file or folder\n"
     "kubewright sdk: nothing written: 1 error\n"),
    ("nothing to call", ["--from", "{tmp}/empty", "--package", "a"], 2,
     "{tmp}/empty: error K003: the folder has no YAML or JSON files\n"
     "  hint: pass the file or folder that has them; `kubewright validate` checks other manifests\n"
     "kubewright sdk: nothing written: 1 error\n"),
    ("no such context", ["--from", "cluster:nowhere", "--package", "a"], 3,
     'kubewright sdk: context "nowhere" does not exist; there are: kubewright\n'),
    ("no such group", ["--from", "cluster", "--group", "absent.example", "--package", "a"], 3,
     "kubewright sdk: the cluster serves no such group; --group names one\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "text"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS]
)
def test_refusals(
    server: ApiServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    text: str,
) -> None:
    (tmp_path / "empty").mkdir()
    given = [argument.format(tmp=tmp_path) for argument in arguments]
    out = tmp_path / "out"
    assert main(["sdk", *given, "--output", str(out), "--kubeconfig", str(server.kubeconfig)]) == code
    assert capsys.readouterr().err == text.replace("{tmp}", str(tmp_path))
    assert not out.exists()


def test_a_cluster_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        '{"kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k"}}],'
        ' "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:9"}}]}'
    )
    out = tmp_path / "out"
    arguments = ["sdk", "--from", "cluster", "--package", "a", "--output", str(out)]
    assert main([*arguments, "--kubeconfig", str(kubeconfig)]) == 3
    assert re.fullmatch(r"kubewright sdk: GET /.*: .*refused\n", capsys.readouterr().err)
    assert not out.exists()


def test_an_ordinary_document_becomes_a_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").write_text(
        "openapi: 3.0.0\ninfo: {title: Clock, version: '1'}\npaths:\n  /time/{zone}:\n    get:\n"
        "      operationId: now\n      parameters: [{name: zone, in: path, required: true, schema: {type: string}}]\n"
        "      responses: {'200': {description: '', content: {application/json: {schema: {type: string}}}}}\n"
    )
    out = tmp_path / "clock"
    assert (
        main(["sdk", "--from", str(tmp_path / "spec.yaml"), "--package", "clock", "--output", str(out)]) == 0
    )
    assert "1 operations" not in capsys.readouterr().out
    assert 'Client("https://api.example.com")' in (out / "README.md").read_text()
    assert "client.time.now(...)" in (out / "README.md").read_text()
    assert (out / "src/clock/operations/time.py").is_file()


def test_a_project_of_npm(tmp_path: Path) -> None:
    out = tmp_path / "client"
    arguments = [
        "sdk",
        "--from",
        str(CRDS),
        "--language",
        "typescript",
        "--package",
        "backup-client",
        "-o",
        str(out),
    ]
    assert main(arguments) == 0
    package = json.loads((out / "package.json").read_text())
    assert package["name"] == "backup-client" and "dependencies" not in package
    (out / "README.md").write_text("mine")
    assert main(arguments) == 0
    assert (out / "README.md").read_text() == "mine"


@needs_tsc
@pytest.mark.thorough
def test_a_project_of_npm_passes_its_tests(tmp_path: Path) -> None:
    out = tmp_path / "client"
    sources = ["--from", str(CRDS), "--language", "typescript", "--package", "backup-client"]
    assert main(["sdk", *sources, "-o", str(out)]) == 0
    (out / "node_modules").symlink_to(MODULES.resolve())
    assert compile_strictly(out) == []
    done = node(out, "--test", "dist")
    assert done.returncode == 0, done.stdout
    package = json.loads((out / "package.json").read_text())
    for export in package["exports"].values():
        for pattern in export.values():
            assert [*out.glob(pattern.removeprefix("./"))], pattern
    inner = 'import("backup-client/backup_v1").then((m) => console.log(m.restores.kind))'
    assert node(out, "-e", inner).stdout == "Restore\n"


def test_a_project_of_npm_needs_resources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = ROOT / "tests/compiler/emit/golden/emitters/spec/pets.yaml"
    arguments = [
        "sdk",
        "--from",
        str(spec),
        "--language",
        "typescript",
        "--package",
        "x",
        "-o",
        str(tmp_path),
    ]
    assert main(arguments) == 2
    assert "for Python alone" in capsys.readouterr().err
