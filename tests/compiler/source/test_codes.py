"""Every code the compiler can print is explained in docs/diagnostics.md, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_codes_are_documented() -> None:
    used = {
        code
        for path in (ROOT / "generator" / "kubewright").rglob("*.py")
        for code in re.findall(r'"(K\d{3})"', path.read_text(encoding="utf-8"))
    }
    explained = re.findall(r"^\| (K\d{3}) \|", (ROOT / "docs" / "diagnostics.md").read_text("utf-8"), re.M)
    assert sorted(explained) == sorted(set(explained)), "a code stands twice"
    assert used == set(explained)
