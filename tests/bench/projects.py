"""What kubewright makes of real projects: a table, one line a project of ``projects.yaml``.

``python -m tests.bench.projects CLONES`` takes a folder of git clones (bare ones too), found by the name of the
repository. ``--only`` limits the projects, ``--steps`` what is measured, ``--tree`` measures another checkout.

Seconds are CPU seconds of the processes that were run. A sample is a manifest of the newer release, anywhere in its
repository, of a kind that it defines and that its own schema finds nothing wrong with. It is read and written by the
package that was made (``project_samples.py``) and must come out as a server stores it.
Pyright is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.bench import project_languages
from tests.bench.measuring import ROOT
from tests.compiler.real.constructed import CONSTRUCT, exported
from tests.compiler.real.minimal import definitions

from apimachinery.wire.yaml import decode_all

Json = Any
STEPS = ("generate", "construct", "types", "samples", "lint", "diff", "mypy", "pyright", "languages")
COLUMNS = {
    "crds": "CRDs",
    "generate_s": "generate s",
    "megabytes": "MB",
    "lines": "lines",
    "classes": "classes",
    "longest": "longest name",
    "resources": "clients built",
    "minimal": "minimal objects",
    "untrue": "types unlike the CRD",
    "samples": "samples alike",
    "refused": "not valid",
    "lint": "lint",
    "diff": "diff lines",
    "mypy": "mypy",
    "mypy_s": "mypy s",
    "pyright": "pyright",
    "pyright_s": "pyright s",
    **project_languages.COLUMNS,
}
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_TOO_LONG = 1 << 22
_UNFILLED = re.compile(r"\$\{\w+[^}]*\}|<[A-Za-z][\w -]*>$")


@dataclass(slots=True)
class Measured:
    """One line of the table, and what is to be said about it."""

    values: dict[str, Json] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Project:
    """A project with its clone; ``tree`` is the checkout of kubewright that is measured, ``folder`` where files
    go."""

    name: str
    clone: Path
    releases: tuple[str, ...]
    definitions: tuple[str, ...]
    excluded: tuple[str, ...]
    tree: Path
    folder: Path

    @property
    def package(self) -> str:
        return self.name.replace("-", "_") + "_api"

    def git(self, *arguments: str) -> bytes:
        return subprocess.run(
            ["git", f"--git-dir={self.clone}", *arguments], check=True, capture_output=True
        ).stdout

    def paths(self, release: str) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", "-z", release).decode().rstrip("\0").split("\0")

    def unpack(self) -> None:
        """The files of both releases that have the definitions, in ``old`` and ``new``."""
        for release, name in zip(self.releases[::-1], ("new", "old"), strict=False):
            for path in self.paths(release):
                if any(fnmatch.fnmatch(path, pattern) for pattern in self.definitions):
                    target = self.folder / name / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    try:
                        target.write_bytes(self.git("show", f"{release}:{path}"))
                    except subprocess.CalledProcessError:
                        print(f"  {self.name}: the clone lacks {path}", file=sys.stderr)

    def crds(self) -> Iterator[Json]:
        """The definitions of the newer release."""
        return definitions(self.folder / "new")

    def run(self, *arguments: str, text: str | None = None) -> tuple[subprocess.CompletedProcess[str], float]:
        """A run of Python with the checkout to be measured, and its CPU seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": self._path(), "PYTHONHASHSEED": "0"},
            check=False,
            capture_output=True,
            text=True,
            input=text,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return done, round(spent, 1)

    def _path(self) -> str:
        return os.pathsep.join(
            [*(str(self.tree / part) for part in ("generator", "generated")), ".", str(ROOT)]
        )


def generate(project: Project, line: Measured) -> None:
    done, seconds = project.run(
        "-m", "kubewright", "generate", "new", "--package", project.package, "--output", ".", "-q", "-j1"
    )
    line.values["generate_s"] = seconds
    if done.returncode:
        line.notes.append(f"generate: {done.stderr[-400:]}")
        return
    files = [path for path in (project.folder / project.package).rglob("*") if path.is_file()]
    texts = [path.read_text() for path in files if path.suffix == ".py"]
    models = [path.read_text() for path in files if path.name == "models.py"]
    found = [name for text in models for name in _CLASS.findall(text)]
    line.values |= {
        "megabytes": round(sum(path.stat().st_size for path in files) / 1e6, 1),
        "lines": sum(text.count("\n") for text in texts),
        "classes": len(found),
        "longest": max(map(len, (name for text in texts for name in _CLASS.findall(text))), default=0),
    }


def construct(project: Project, line: Measured) -> None:
    """Builds the clients, also of the definitions as a cluster shows them."""
    shown = {"apiVersion": "v1", "kind": "List", "items": [exported(crd) for crd in project.crds()]}
    (project.folder / "exported.json").write_text(json.dumps(shown))
    package = f"exported_{project.package}"
    made = ("exported.json", "--package", package, "--output", ".", "-q", "-j1")
    runs = [
        ("-c", CONSTRUCT, project.package),
        ("-m", "kubewright", "generate", *made),
        ("-c", CONSTRUCT, package),
    ]
    done = [project.run(*run)[0] for run in runs]
    line.notes += [f"construct: {each.stderr[-400:]}" for each in done if each.returncode]
    line.values["resources"] = f"{done[0].stdout.strip()}/{done[2].stdout.strip()}"


def types(project: Project, line: Measured) -> None:
    """Builds objects with what their constructors ask for; counts what their schemas miss, and classes of others."""
    done, _ = project.run(str(ROOT / "tests/compiler/real/minimal.py"), project.package, "new")
    if done.returncode:
        line.notes.append(f"types: {done.stderr[-400:]}")
        return
    tried, *faults = done.stdout.splitlines()
    line.values |= {"minimal": tried, "untrue": len(faults)}
    line.notes += [f"types: {fault}" for fault in faults]


def samples(project: Project, line: Measured) -> None:
    found, refused = _samples(project)
    found = [each for each in found if not _is_template(each[1])]
    text = "".join(json.dumps(each) + "\n" for each in found)
    script = str(ROOT / "tests/bench/project_samples.py")
    done, _ = project.run(script, project.package, "new", text=text)
    if done.returncode:
        line.notes.append(f"samples: {done.stderr[-400:]}")
        return
    alike, faults = json.loads(done.stdout)
    line.values |= {"samples": f"{alike}/{len(found)}", "refused": refused}
    line.notes += faults


def _samples(project: Project) -> tuple[list[tuple[str, Json]], int]:
    """Manifests of the project's kinds that its own schemas find nothing wrong with, and how many they refuse."""
    kinds = _kinds(project)
    release = project.releases[-1]
    listing = project.git("ls-tree", "-r", "-l", "-z", release).decode().rstrip("\0").split("\0")
    groups = tuple({api_version.partition("/")[0].encode() for api_version, _ in kinds})
    folder = project.folder / "samples"
    folder.mkdir(exist_ok=True)
    found: dict[str, Json] = {}
    for entry in listing:
        head, _, path = entry.partition("\t")
        size = head.split()[3]
        if not path.endswith((".yaml", ".yml")) or not size.isdigit() or int(size) > _TOO_LONG:
            continue
        if any(fnmatch.fnmatch(path, pattern) for pattern in project.excluded):
            continue
        try:
            content = project.git("cat-file", "blob", head.split()[2])
        except subprocess.CalledProcessError:  # the clone lacks it, as some lack their largest files
            continue
        if not any(group in content for group in groups):
            continue
        try:
            documents = list(decode_all(content))
        except ValueError:  # templates are not YAML yet
            continue
        for index, value in enumerate(documents):
            if isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) in kinds:
                name = f"{len(found):05}.json"
                (folder / name).write_text(json.dumps(value))
                found[name] = (f"{path}#{index}", value)
    if not found:
        return [], 0
    done, _ = project.run(
        "-m", "kubewright", "validate", "--crds", "new", "samples", "--format", "json", "-q"
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-800:])
    report = json.loads(done.stdout)
    faulty = {Path(each["file"]).name for each in report["findings"] if each["severity"] == "error"}
    good = [each for name, each in found.items() if name not in faulty]
    return good, len(found) - len(good)


def _kinds(project: Project) -> set[tuple[str, str]]:
    return {
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
        for crd in project.crds()
        for version in crd["spec"]["versions"]
    }


def lint(project: Project, line: Measured) -> None:
    done, _ = project.run("-m", "kubewright", "lint", "new", "--least", "note", "--format", "json")
    if done.returncode not in (0, 1):
        line.notes.append(f"lint: {done.stderr[-400:]}")
        return
    line.values["lint"] = len(json.loads(done.stdout)["findings"])


def diff(project: Project, line: Measured) -> None:
    done, _ = project.run("-m", "kubewright", "diff", "old", "new")
    if done.returncode not in (0, 1):
        line.notes.append(f"diff: {done.stderr[-400:]}")
        return
    line.values["diff"] = done.stdout.count("\n")


def mypy(project: Project, line: Measured) -> None:
    config = ["--config-file", str(project.tree / "pyproject.toml"), "--cache-dir", ".mypy_cache"]
    done, seconds = project.run("-m", "mypy", "--strict", *config, "-p", project.package)
    line.values |= {"mypy": "ok" if done.returncode == 0 else "errors", "mypy_s": seconds}
    if done.returncode:
        line.notes.append(f"mypy: {done.stdout[-600:]}")


def pyright(project: Project, line: Measured) -> None:
    tool = shutil.which("pyright")
    if tool is None:
        line.notes.append("pyright: not installed")
        return
    paths = [str(project.tree / part) for part in ("generator", "generated")]
    (project.folder / "pyrightconfig.json").write_text(
        json.dumps({"include": [project.package], "extraPaths": [*paths, "."], "typeCheckingMode": "strict"})
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [tool, "--outputjson", "--pythonpath", sys.executable],
        cwd=project.folder,
        check=False,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(done.stdout)
    line.values |= {
        "pyright": summary["summary"]["errorCount"],
        "pyright_s": round(summary["summary"]["timeInSec"], 1),
        "pyright_cpu_s": round(after.ru_utime - before.ru_utime, 1),
    }
    line.notes += [
        f"pyright: {each['file']}: {each['message'][:200]}" for each in summary["generalDiagnostics"][:3]
    ]


def languages(project: Project, line: Measured) -> None:
    found = [each for each in _samples(project)[0] if not _is_template(each[1])]
    project_languages.measure(project.folder, project.run, found, line.values, line.notes)


def _is_template(value: Json) -> bool:
    """Whether a sample is still to be filled in, so that nobody says yet which types its values have."""
    if isinstance(value, dict):
        return any(map(_is_template, value.values()))
    if isinstance(value, list):
        return any(map(_is_template, value))
    return isinstance(value, str) and _UNFILLED.match(value) is not None


def measure(project: Project, steps: list[str]) -> Measured:
    line = Measured()
    project.unpack()
    line.values["crds"] = len({kind for _, kind in _kinds(project)})
    for step in steps:
        if step == "diff" and len(project.releases) < 2:
            continue
        print(f"  {project.name}: {step}", file=sys.stderr, flush=True)
        globals()[step](project, line)
        if step == "generate" and "classes" not in line.values:
            break
    return line


def find_clone(clones: Path, repository: str) -> Path | None:
    """The git directory of ``owner/name`` below ``clones``: ``name``, ``owner/name``, or a folder that ends so."""
    owner, _, name = repository.partition("/")
    for pattern in (f"{owner}*{name}", name):
        for folder in sorted(clones.glob(pattern)):
            for place in (folder / ".git", folder, *folder.glob("*")):
                if (place / "HEAD").is_file():
                    return place
    return None


def table(lines: dict[str, Measured]) -> str:
    """The measurements as Markdown."""
    shown = [key for key in COLUMNS if any(key in line.values for line in lines.values())]
    rows = [
        "| project | " + " | ".join(COLUMNS[key] for key in shown) + " |",
        "|---" * (len(shown) + 1) + "|",
    ]
    for name, line in lines.items():
        rows.append(f"| {name} | " + " | ".join(str(line.values.get(key, "")) for key in shown) + " |")
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clones", type=Path, help="folder of git clones")
    parser.add_argument("--only", nargs="*", default=[], help="projects to measure")
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=STEPS)
    parser.add_argument("--tree", type=Path, default=ROOT, help="checkout of kubewright to measure")
    parser.add_argument("--keep", type=Path, help="folder for what is made, kept afterwards")
    parser.add_argument("--json", type=Path, help="also write what was measured to this file")
    parser.add_argument("--notes", type=int, default=3, help="how many faults of a project to show")
    given = parser.parse_args(arguments)
    work = (given.keep or Path(tempfile.mkdtemp(prefix="projects-"))).resolve()
    lines: dict[str, Measured] = {}
    for name, said in yaml.safe_load((Path(__file__).parent / "projects.yaml").read_text()).items():
        if given.only and name not in given.only:
            continue
        clone = find_clone(given.clones.resolve(), said["repository"])
        if clone is None:
            print(f"  {name}: no clone of {said['repository']}", file=sys.stderr)
            continue
        folder = work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        project = Project(
            name,
            clone,
            tuple(map(str, said["releases"])),
            tuple(said["definitions"]),
            tuple(said.get("excluded", ())),
            given.tree.resolve(),
            folder,
        )
        lines[name] = measure(project, given.steps)
        if given.json:
            given.json.write_text(json.dumps({n: [m.values, m.notes] for n, m in lines.items()}, indent=1))
    print(table(lines))
    for name, line in lines.items():
        for note in line.notes[: given.notes]:
            print(f"{name}: {note}")
        if len(line.notes) > given.notes:
            print(f"{name}: and {len(line.notes) - given.notes} more")
    if not given.keep:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
