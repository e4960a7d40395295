"""Checks keep what generated code relies on: unless marked, they have nothing to say of a value that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.source.check_functions import check_function

SPECS = Path(__file__).parents[2] / "specs"
OWN = frozenset({"check", "at", "when", "unless", "beside", "versions"})


def lines() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every check of a field in this repository, by name and arguments, once."""
    seen = set()
    for file in sorted(SPECS.glob("*/validation/*.yaml")):
        for entry in yaml.load(file.read_text(), yaml.CSafeLoader)["types"].values():
            fields = entry if isinstance(entry, dict) else {"checks": entry}
            below = (fields.get("on_subresource") or {}).values()
            for part in (*(fields.get(key) or () for key in ("checks", "on_create", "on_update")), *below):
                for line in part:
                    if "check" in line and line["at"] and not str(line["at"]).endswith(("*]", "}")):
                        arguments = {key: value for key, value in line.items() if key not in OWN}
                        if (known := (line["check"], repr(arguments), "beside" in line)) not in seen:
                            seen.add(known)
                            yield line["check"], {**arguments, **({"": None} if "beside" in line else {})}


@pytest.mark.parametrize(("name", "arguments"), list(lines()))
def test_what_is_missing_is_no_fault(name: str, arguments: dict[str, Any]) -> None:
    read = check_function(name)
    assert read is not None
    if read.of_missing or read.takes_old:
        return
    module, _, function = name.rpartition(".")
    check = getattr(import_module(f"apimachinery.kinds.{module or 'checks'}"), function)
    beside = [None] if arguments.pop("", 0) is None else []
    assert list(check(None, "here", *beside, **arguments)) == []
