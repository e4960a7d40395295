"""The CHANGELOG is by version, and a version has a page at most."""

from __future__ import annotations

import re
from pathlib import Path

from apimachinery.meta.version import VERSION

LONGEST_SECTION = 100


def test_the_changelog_is_by_version_and_short() -> None:
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    titles = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert titles[0] == "Unreleased" and VERSION in titles and len(titles) == len(set(titles))
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[2:]:
        assert section.count("\n") <= LONGEST_SECTION, (
            f"{section.partition(chr(10))[0]}: a rebase may have brought lines back that another branch removed. "
            'Check out CHANGELOG.md of the other branch, and put your own lines under "Unreleased"'
        )
