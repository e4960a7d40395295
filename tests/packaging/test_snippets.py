"""What README and docs/ show is run as it is written, from the wheel, in a folder that has what they speak of."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kubewright.testing import ApiServer
from tests.packaging.environment import ROOT, Environment, make_environment
from tests.packaging.warm import Stem
from tests.packaging.world import make_world
from tests.tools.command import kubewright

DOCUMENTS = [
    "README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
]
ELSEWHERE = ("make ", "pip ", "python3 ", "git clone", "docker ", "kustomize ", "helm ", "brew ", "curl ")
"""Commands that are not ours, and may not be there."""
OTHER_PLACE = re.compile(
    r"etcd://|etcd-snapshot:|--from cluster|--host 0\.0\.0\.0|/path/to|kubectl kustomize|^kubewright completion"
    r"| -- (cargo|go|mvn|npm) "
)
UNASKED = re.compile(r"<[A-Z][A-Z ]+>")
ENDLESS = re.compile(r"kubectl .*(--watch|-w)\b|kubectl proxy")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: where, in what language, and its text."""

    document: str
    line: int
    language: str
    text: str
    title: str = ""
    """The file that the block is, as the document calls it."""

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def blocks(document: str) -> Iterator[Block]:
    text = (ROOT / document).read_text()
    for found in re.finditer(r"^( *)```(\w*)([^\n]*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
        inner = "".join(line.removeprefix(found[1]) for line in found[4].splitlines(keepends=True))
        title = re.search(r'title="([^"]+)"', found[3])
        line = text.count("\n", 0, found.start()) + 1
        yield Block(document, line, found[2], inner, title[1] if title else "")
    bare = re.sub(
        r"^ *```.*?^ *```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE
    )
    for found in re.finditer(r"(?:^    \S[^\n]*\n)+", bare, re.MULTILINE):
        lines = [line[4:] for line in found[0].splitlines()]
        if all(line.startswith(("kubewright ", "kustomize ", "helm ", "cd ")) for line in lines):
            yield Block(document, bare.count("\n", 0, found.start()) + 1, "sh", "\n".join(lines) + "\n")


def commands(block: Block) -> list[str]:
    """The commands of a console block, or the lines of a shell block; lines that end in ``\\`` go on."""
    text = re.sub(r"\\\n(?:> )?\s*", "", block.text)
    if block.language == "console":
        return [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


ALL = [block for document in DOCUMENTS for block in blocks(document)]


@pytest.fixture(scope="session")
def everything(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("everything")
    beside = ["kubewright[client]", "kubewright[server]", "pytest", "mypy", "kubernetes", "kopf"]
    return make_environment(wheel, "generate", folder, beside=beside)


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The world as it is before the commands of a document."""
    return make_world(tmp_path_factory.mktemp("world") / "shop")


@pytest.fixture(scope="session")
def stem(everything: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stem]:
    with Stem(f"{everything.wheel}{os.pathsep}{everything.site}", tmp_path_factory.mktemp("stem")) as running:
        yield running


@pytest.fixture
def shell(
    everything: Environment, stem: Stem, pristine: Path, tmp_path: Path
) -> Callable[[list[str]], list[tuple[str, int, str]]]:
    """Runs commands one after the other, as somebody types them: (command, exit code, output) of each."""
    bin_folder, world = tmp_path / "bin", shutil.copytree(pristine, tmp_path / "shop", symlinks=True)
    bin_folder.mkdir()
    python = shlex.quote(sys.executable)
    scripts = {name: f'exec {python} -S -m {name} "$@"\n' for name in ("kubewright", "pytest", "mypy")}
    # A server is ended by its process's end, and takes a free port, which its kubeconfig names: the one in the document
    # may be taken. Anything else may be a fork.
    scripts["kubewright"] = (
        f'[ "$1" = serve ] || exec {stem.command()} "$@"\nexec {python} -S -m kubewright "$@" --port 0\n'
    )
    for name, text in scripts.items():
        script = bin_folder / name
        script.write_text(f"#!/bin/sh\n{text}")
        script.chmod(0o755)
    given = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "KUBE", "GIT"))}
    environment = {
        **given,
        "PATH": f"{bin_folder}{os.pathsep}{given['PATH']}",
        "PYTHONPATH": f"{everything.wheel}{os.pathsep}{everything.site}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "WORLD": str(world),
    }

    def run(lines: list[str]) -> list[tuple[str, int, str]]:
        script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n"
        at_the_end = ""
        for number, line in enumerate(lines):
            said = f"printf '\\n@@%s:%s\\n' {number}"
            if not is_in_background(line):
                script += f"{line}\n{said} $?\n"
                continue
            # A server is ready with its kubeconfig. One that has ended by itself has an exit code, now or at the end.
            ended = f"! kill -0 $started_{number} 2>/dev/null"
            script += f"{line}\nstarted_{number}=$!\n"
            script += (
                f"for _ in $(seq 900); do if [ -s kubeconfig ] || {ended}; then break; fi; sleep 0.1; done\n"
            )
            script += f"{said} 0\n"
            at_the_end += f"if {ended}; then wait $started_{number}; {said} $?; fi\n"
        script += at_the_end
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=world,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed = process.communicate(timeout=240)[0]
        finally:  # a shell that is killed kills nothing
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        parts = re.split(r"\n@@(\d+):(\d+)\n", printed)
        ran: dict[int, tuple[str, int, str]] = {}
        for text, number, code in zip(
            parts[0::3], map(int, parts[1::3]), map(int, parts[2::3]), strict=False
        ):
            ran[number] = lines[number], code, ran.get(number, ("", 0, ""))[2] + text
        return [ran[number] for number in sorted(ran)]

    return run


def is_in_background(line: str) -> bool:
    return re.sub(r"\s+#.*", "", line).rstrip().endswith("&")


def is_ours(line: str) -> bool:
    """Whether a command can be run here: one of ours, or one that is at hand beside it."""
    if line.startswith(ELSEWHERE) or OTHER_PLACE.search(line) or UNASKED.search(line) or ENDLESS.search(line):
        return False
    of_cluster = re.search(r"kubewright (rbac|owners|history|explore)\b", line)
    if of_cluster and " -f " not in line:  # of a live cluster
        return False
    if "kubewright serve" in line:
        return "&" in line and bool(shutil.which("kubectl"))
    if "kubectl" in line:
        return bool(shutil.which("kubectl"))
    return "kubewright" in line or line.startswith(("cd ", "export ", "pytest ", "git "))


SHELL = [block for block in ALL if block.language in ("console", "sh", "bash")]


@pytest.mark.parametrize("document", sorted({block.document for block in SHELL}))
def test_commands_run_as_written(
    document: str, shell: Callable[[list[str]], list[tuple[str, int, str]]]
) -> None:
    lines: list[str] = []
    is_one_session = any(block.title for block in ALL if block.document == document)
    for block in ALL:
        if block.document != document:
            continue
        if block.title:
            folder = shlex.quote(Path(block.title).parent.as_posix())
            lines.append(f"mkdir -p {folder} && cat > {shlex.quote(block.title)} <<'END'\n{block.text}END")
        elif block in SHELL:
            lines += [line for line in commands(block) if is_ours(line)]
            lines += [] if is_one_session else ['cd "$WORLD"']
    if not any("kubewright" in line for line in lines):
        pytest.skip("no commands of ours")
    ran = shell(lines)
    assert len(ran) == len(lines), ran[-1:]
    wrong = [each for each in ran if each[1] > 1 or "Traceback" in each[2]]
    assert wrong == [], "\n".join(f"$ {line}\n{out}exit {code}\n" for line, code, out in wrong)


def test_a_command_in_the_background_that_fails_is_seen(
    shell: Callable[[list[str]], list[tuple[str, int, str]]],
) -> None:
    ran = shell(["kubewright serve --storage none:// &", "kubewright --version", "true &", "(exit 3) &"])
    assert [code for _, code, _ in ran] == [2, 0, 0, 3]
    assert "none://" in ran[0][2]


@pytest.mark.parametrize("block", [b for b in ALL if b.language == "toml"], ids=str)
def test_toml_is_toml(block: Block) -> None:
    tomllib.loads(block.text)


@pytest.mark.parametrize("block", [b for b in ALL if b.language in ("yaml", "yml")], ids=str)
def test_yaml_is_yaml(block: Block) -> None:
    assert [*yaml.safe_load_all(block.text)]


@pytest.mark.parametrize(
    "block", [b for b in ALL if "tool.kubewright.lint" in b.text and b.language == "toml"], ids=str
)
def test_settings_of_lint_are_taken(block: Block, everything: Environment, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(block.text)
    (tmp_path / "lint-baseline.json").write_text("{}")
    done = everything.kubewright(tmp_path, "lint", ROOT / "specs/backup/crds", "-q")
    assert done.returncode in (0, 1), done.stderr


@pytest.mark.parametrize(
    "block", [b for b in ALL if b.language == "yaml" and "introduced:" in b.text], ids=str
)
def test_plans_are_plans(block: Block, everything: Environment, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(block.text)
    done = everything.kubewright(tmp_path, "lifecycle", "plan.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


PYTHON = [block for block in ALL if block.language == "python"]


@pytest.mark.parametrize("document", sorted({block.document for block in PYTHON}))
def test_python_is_python(document: str) -> None:
    for block in PYTHON:
        if block.document == document:
            compile(block.text, str(block), "exec")


@pytest.fixture(scope="session")
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        for body in (
            {"metadata": {"name": "shop"}},
            {"metadata": {"name": "web"}},
        ):
            running.request("POST", "/api/v1/namespaces", body)
        yield running


@pytest.mark.parametrize("block", [b for b in PYTHON if b.document == "README.md"], ids=str)
def test_python_of_the_readme_runs(
    block: Block, everything: Environment, server: ApiServer, tmp_path: Path
) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy/crds").symlink_to(ROOT / "specs/backup/crds")
    (tmp_path / "kubeconfig").write_text(server.kubeconfig_text)
    done = everything.run(tmp_path, "-c", block.text)
    assert done.returncode == 0, done.stderr


UNTYPED = "# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=import-not-found\n"
"""Above programs of tests, whose fixtures nobody annotates, and which import what a reader has made."""
BEFORE = {
    "README.md": "",
    "docs/aggregation.md": "port = 8443\n",
    "docs/cel.md": "from typing import Any\nschema: dict[str, Any]\nobj: dict[str, Any]\nold: dict[str, Any]\n",
    "docs/client.md": "",
    "docs/comparison.md": "",
    "docs/controllers.md": "from kubernetes_api.apps_v1 import DeploymentSpec\n"
    + "from website_api.example_v1 import Website\n"
    + "def wanted(site: Website) -> DeploymentSpec: raise NotImplementedError\n",
    "docs/howto/sdk.md": UNTYPED,
    "docs/merge.md": "from typing import Any\nbefore: dict[str, Any]\nafter = applied = other = before\n",
    "docs/openapi.md": UNTYPED,
    "docs/webhooks.md": "",
    "docs/testing.md": UNTYPED
    + "from typing import Any\n"
    + "from kubernetes_api.client import Client\n"
    + "from kubernetes_api.core_v1 import Pod\n"
    + "from apimachinery.client.informer import Informer\n"
    + "informer: Informer[Pod]\nclient: Client\nrole: dict[str, Any]\n",
}
"""Document → what its program needs before it: what the prose around it speaks of."""


def is_of_ours(block: Block) -> bool:
    """Not of another library: those have another `client`, and are run."""
    return "from kubernetes import" not in block.text and block.title not in (
        "lightkube",
        "kr8s",
        "test_sidecar.py",
    )


def test_python_of_documents_is_typed(tmp_path: Path) -> None:
    """All of a document as one program, under mypy --strict; the cache is that of ``make type``."""
    programs = []
    for document, before in BEFORE.items():
        texts = [block.text for block in PYTHON if block.document == document and is_of_ours(block)]
        assert texts, f"{document} has no Python any more"
        programs.append(tmp_path / (re.sub(r"\W", "_", document) + ".py"))
        programs[-1].write_text(before + "\n".join(texts))
    group = tmp_path / "library"
    for words in (
        ("scaffold", "group", "library", "--domain", "example.com", "--output", group),
        ("scaffold", "kind", "Book", "--version", "v1alpha1", "--output", group),
        ("generate", "--config", group / "kubewright.yaml", "-q"),
    ):
        code, out, err = kubewright(*words)
        assert code == 0, out + err
    files = [block for block in PYTHON if block.title and block.document == "docs/tutorial.md"]
    assert len(files) == 2
    for block in files:
        programs.append(group / block.title)
        programs[-1].write_text((UNTYPED if block.title.startswith("test_") else "") + block.text)
    found = ("generator", "generated", "examples/operator", str(group), str(group / "generated"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, programs)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": os.pathsep.join(found)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_official_client_runs_as_documented(everything: Environment, tmp_path: Path) -> None:
    blocks = [
        b.text for b in PYTHON if b.document == "docs/testing.md" and "from kubernetes import" in b.text
    ]
    assert blocks
    for number, text in enumerate(blocks):
        (tmp_path / f"test_snippet_{number}.py").write_text(text)
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    done = everything.run(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
