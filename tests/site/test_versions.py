"""The site of several versions: which there are, and what the selector reads."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest


def module() -> Any:
    spec = importlib.util.spec_from_file_location(
        "site_versions", Path(__file__).parents[2] / ".ci/site_versions.py"
    )
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


SITE = module()


@pytest.mark.parametrize(
    ("tags", "newest", "wanted"),
    [
        ([], "main", {}),
        (["v0.1.0", "nightly", "v0.2.0-rc1"], "0.1", {"0.1": "v0.1.0"}),
        (
            ["v0.9.0", "v0.10.0", "v0.10.9", "v0.10.10", "v1.0.0"],
            "1.0",
            {"1.0": "v1.0.0", "0.10": "v0.10.10", "0.9": "v0.9.0"},
        ),
    ],
)
def test_each_release_has_its_newest_patch(
    tags: list[str], newest: str, wanted: dict[str, str], tmp_path: Path
) -> None:
    def build(name: str, tag: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "index.html").write_text(tag or name)
        pages = "".join(
            f"<loc>https://a/{name}/{page}.html</loc>" for page in ("index", "tools", "sub/index")
        )
        (folder / "sitemap.xml").write_text(pages)

    target = tmp_path / "versions"
    (target / "0.0").mkdir(parents=True)
    assert SITE.write(tags, target, build) == ["main", *wanted]
    assert {path.name: (path / "index.html").read_text() for path in target.iterdir() if path.is_dir()} == {
        "main": "main",
        **wanted,
    }
    for name in ("main", *wanted):
        base = f"https://a/{name}/"
        listed = f"<loc>{base}</loc><loc>{base}tools.html</loc><loc>{base}sub/index.html</loc>"
        assert (target / name / "sitemap.xml").read_text() == listed, "the selector looks for the folder"
    versions = json.loads((target / "versions.json").read_text())
    assert [each["version"] for each in versions] == ["main", *wanted]
    assert [each["version"] for each in versions if "latest" in each["aliases"]] == [newest][: len(wanted)]
    assert f"url={newest}/index.html" in (target / "index.html").read_text()
