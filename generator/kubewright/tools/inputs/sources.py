"""States of an API as tools name them: a file or folder of specs, ``git:REVISION:PATH``, ``kubernetes:1.36``."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from kubewright.config import KubernetesSource, Package, PathSource, Source, specs_folder
from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api
from kubewright.tools.arguments.several import release


class StateError(Exception):
    """A state cannot be read; the text says why."""


DESCRIPTIONS = (
    "a source checkout has no descriptions of Kubernetes' own kinds; the wheel has them, or run: "
    "pip install kubernetes-validate"
)


def lacks_prose(states: Sequence[str]) -> bool:
    """Whether a state is a Kubernetes release without descriptions here."""
    from kubewright.source.kubernetes_validate import has_prose

    return any(
        state.startswith("kubernetes:") and not has_prose(release(state.removeprefix("kubernetes:")))
        for state in states
    )


def read_states(states: Sequence[str], diagnostics: Diagnostics) -> Api:
    """The linked and checked API of all states together, with its descriptions. Raises ``StateError`` for what is no
    state; what is wrong within one goes into ``diagnostics``."""
    from kubewright.pipeline import read_api

    sources: list[Source] = []
    with ExitStack() as opened:
        for state in states:
            if state.startswith("kubernetes:"):
                sources.append(KubernetesSource(release(state.removeprefix("kubernetes:"))))
                continue
            sources.append(PathSource(opened.enter_context(_checkout(state))))
        package = Package(name="read", sources=tuple(sources), documentation=True)
        return read_api(package, diagnostics, library_prose=True)


def with_facts(
    api: Api, state: str, folder: Path | None, wanted: tuple[str, ...], diagnostics: Diagnostics
) -> Api:
    """``api``, read from ``state``, with the declared rules of ``folder``: those of a git state in its own revision, if
    it has them there, those of a Kubernetes release from the catalog of this installation. Raises ``StateError``."""
    from kubewright.source.reading import read_facts

    if state.startswith("kubernetes:"):
        folder, state = specs_folder() / "kubernetes", ""
    if folder is None:
        return api
    revision = state.removeprefix("git:").partition(":")[0] if state.startswith("git:") else ""
    if revision and not _has(revision, folder):
        return api
    with _checkout(f"git:{revision}:{folder}" if revision else str(folder)) as found:
        return replace(api, facts=read_facts(found, diagnostics, wanted))


def _has(revision: str, path: Path) -> bool:
    command = ["git", "ls-tree", "--name-only", revision, "--", str(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode == 0 and bool(done.stdout.strip())


@contextmanager
def _checkout(state: str) -> Iterator[Path]:
    """The path of a state, taken out of git into a folder of its own where that is meant."""
    if not state.startswith("git:"):
        yield Path(state)
        return
    revision, colon, name = state.removeprefix("git:").partition(":")
    if not colon or not name or not revision or revision.startswith("-"):
        raise StateError(f"{state}: write git:REVISION:PATH")
    command = ["git", "archive", "--format=tar", revision, "--", name]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise StateError(f"{state}: git: {done.stderr.decode('utf-8', 'replace').strip()}")
    with tempfile.TemporaryDirectory(prefix="kubewright-") as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder) / name
