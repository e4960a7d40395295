"""``make release``: says what keeps a version from being released, then builds it twice and compares the bytes.

What is built is the commit, not the folder: files that nobody added cannot get in, but for the explorer's page, which
``make explorer`` makes of the commit. Nothing is tagged or sent anywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from apimachinery.meta.version import VERSION
from tests.packaging.environment import ROOT

LONGEST_SUBJECT = 72
PAGE = "generator/kubewright/tools/explore/page"
ODD_SETTINGS = {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7", "LC_ALL": "C"}
"""Settings of the second build: another machine has others."""


def main() -> int:
    """Builds into dist/, or prints what is in the way and returns 1."""
    obstacles = [*_in_changelog((ROOT / "CHANGELOG.md").read_text(), VERSION), *_in_repository()]
    if obstacles:
        print(*obstacles, sep="\n", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="kubewright-release-") as name:
        source = Path(name, "source")
        _export(source)
        shutil.copytree(ROOT / PAGE, source / PAGE)
        built = build(source, Path(name), _git("log", "-1", "--format=%ct"))
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(built, ROOT / "dist")
    sums = "".join(f"{_sha256(path)}  {path.name}\n" for path in sorted((ROOT / "dist").iterdir()))
    (ROOT / "dist" / "SHA256SUMS").write_text(sums)
    print(
        f"{sums}\nThis is {VERSION}. To publish it:\n"
        f"  git tag -a v{VERSION} -m 'Kubewright {VERSION}'\n  git push --tags"
    )
    print(f"  python -m twine upload dist/kubewright-{VERSION}*")
    return 0


def build(source: Path, folder: Path, epoch: str) -> Path:
    """Builds ``source`` below ``folder``, a second time from the archive that was made, and compares the bytes."""
    first, second = folder / "first", folder / "second"
    _hatchling(source, first, {"SOURCE_DATE_EPOCH": epoch})
    (archive,) = first.glob("*.tar.gz")
    _unpack(archive, folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    (unpacked / "PKG-INFO").unlink()  # every build adds its own
    _hatchling(unpacked, second, {"SOURCE_DATE_EPOCH": epoch, **ODD_SETTINGS})
    for path in sorted(first.iterdir()):
        if path.read_bytes() != (second / path.name).read_bytes():
            raise SystemExit(
                f"{path.name} differs when it is built from {archive.name}: the build is not reproducible"
            )
    return first


def _hatchling(source: Path, target: Path, settings: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    environment = {**os.environ, **settings}
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True, timeout=300)


def _in_changelog(text: str, version: str) -> Iterator[str]:
    sections = dict(re.findall(r"^## (\S+)[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    if sections.get("Unreleased", "").strip():
        yield f'CHANGELOG.md: move the lines under "Unreleased" to "## {version}"'
    if version not in sections:
        yield f'CHANGELOG.md: no section "## {version}" (VERSION of apimachinery/meta/version.py)'
    elif "### What you must do" not in sections[version]:
        yield f'CHANGELOG.md: "## {version}" lacks "### What you must do", if only to say that there is nothing'


def _in_repository() -> Iterator[str]:
    if changed := _git("status", "--porcelain"):
        yield f"not committed:\n{changed}"
    if not (ROOT / PAGE).is_dir():
        yield "the explorer's page is not built: make explorer"
    if _git("tag", "--list", f"v{VERSION}"):
        yield f"v{VERSION} is tagged already: raise VERSION in apimachinery/meta/version.py"
    # The history before the first tag is as it is.
    if before := _git("tag", "--list", "v*", "--sort=-creatordate").splitlines():
        yield from long_subjects(_git("log", "--format=%h %s", f"{before[0]}..HEAD"))


def long_subjects(log: str) -> Iterator[str]:
    """The commits of ``git log --format='%h %s'`` whose subjects are too long."""
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT:
            yield f"{commit}: the subject has {len(subject)} characters, at most {LONGEST_SUBJECT}: {subject}"


def _export(target: Path) -> None:
    """Writes the files of the commit, with their modes."""
    archive = target.with_suffix(".tar")
    _git("archive", "--output", str(archive), "HEAD")
    _unpack(archive, target)


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)  # which Python before 3.11.4 lacks
        opened.extractall(target)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
