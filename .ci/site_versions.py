"""The site for readers of several versions, in build/versions: main, and the newest patch of every release that is tagged.

    python .ci/site_versions.py

Each version is a folder of its own; versions.json, in the form of mike, is what the selector in the header reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "build/versions"
MAIN = "main"


def releases(tags: Iterable[str]) -> dict[str, str]:
    """Minor version → the tag of its newest patch, newest first."""
    found: dict[tuple[int, int], tuple[int, str]] = {}
    for tag in tags:
        if match := re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", tag):
            major, minor, patch = map(int, match.groups())
            found[major, minor] = max(found.get((major, minor), (-1, "")), (patch, tag))
    return {f"{major}.{minor}": tag for (major, minor), (_, tag) in sorted(found.items(), reverse=True)}


def write(tags: Iterable[str], target: Path, build: Callable[[str, str, Path], None]) -> list[str]:
    """Builds every version with ``build(name, tag, folder)``, tag ``""`` for this checkout; returns their names. The
    address of the site leads to the newest release, to main before there is one."""
    shutil.rmtree(target, ignore_errors=True)
    newest, *_ = [*(tagged := releases(tags)), MAIN]
    versions = [{"version": MAIN, "title": MAIN, "aliases": []}]
    versions += [{"version": n, "title": t, "aliases": ["latest"] * (n == newest)} for n, t in tagged.items()]
    for name in (MAIN, *tagged):
        build(name, tagged.get(name, ""), target / name)
        _list_home(target / name / "sitemap.xml", name)
    (target / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")
    page = f'<!doctype html><title>Kubewright</title><meta http-equiv="refresh" content="0; url={newest}/index.html">'
    (target / "index.html").write_text(f'{page}<a href="{newest}/index.html">Kubewright {newest}</a>\n')
    return [MAIN, *tagged]


def _list_home(sitemap: Path, name: str) -> None:
    """Lists the first page by its folder. Else the selector, which looks for that address, finds no page of the same
    name in another version and leads to its first page."""
    if sitemap.is_file():
        text = sitemap.read_text().replace(f"/{name}/index.html</loc>", f"/{name}/</loc>")
        sitemap.write_text(text)


def build(name: str, tag: str, folder: Path) -> None:
    """Builds one version, of a release from its tag."""
    with tempfile.TemporaryDirectory(prefix="kubewright-site-") as place:
        source = Path(place, "source") if tag else ROOT
        if tag:
            source.mkdir()
            archive = subprocess.run(["git", "archive", tag], cwd=ROOT, check=True, capture_output=True)
            subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
        path = os.pathsep.join(str(source / each) for each in ("generator", "generated"))
        subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder.absolute())],
            cwd=source, env={**os.environ, "PYTHONPATH": path, "SITE_VERSION": name}, check=True,
        )  # fmt: skip


def main() -> int:
    """Builds the site of every version."""
    tags = subprocess.run(
        ["git", "tag", "--list"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    print(*write(tags.split(), TARGET, build), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
