"""Finds functions, classes, attributes and variables of ``generator/`` that nothing uses, tests included.

    python -m tests.architecture.dead_code

Part of ``make lint``. Prints a line for each and exits 1; ``dead_code.yaml`` lists what others call by name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from vulture import Vulture

ROOT = Path(__file__).parents[2]


def unused() -> list[str]:
    """One line for each piece of dead code, and for each entry of the list that has become needless."""
    listed: Any = yaml.load((Path(__file__).parent / "dead_code.yaml").read_text(), yaml.CSafeLoader)
    callers = {name: caller for caller, names in listed["names"].items() for name in names}
    search = Vulture(ignore_decorators=listed["decorators"])
    search.scavenge([str(ROOT / folder) for folder in ("generator", "generated", "tests", "examples")])
    idle = [item for item in search.get_unused_code() if (ROOT / "generator") in Path(item.filename).parents]
    lines = [
        f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno}: unused {item.typ} {item.name}; remove it, or "
        "say in tests/architecture/dead_code.yaml who calls it"
        for item in idle
        if item.name not in callers
    ]
    needless = callers.keys() - {item.name for item in idle}
    lines += [
        f"tests/architecture/dead_code.yaml: {name} is used; drop the entry" for name in sorted(needless)
    ]
    return lines


if __name__ == "__main__":
    found = unused()
    print("\n".join(found) or "no dead code")
    sys.exit(bool(found))
