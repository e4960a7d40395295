"""Makes the modules that are called plainly from their awaited twins: the verbs of the client, controllers, queues.

One text says what both do. ``make plain`` writes the plain ones, ``--check`` says which are not what their twin makes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLIENT, CONTROLLER, QUEUE = (
    ROOT / "generator" / "apimachinery" / name for name in ("client", "controller", "queue")
)
BY_HAND = {"async_running.py"}
"""What concurrency is made of differs; everything above it does not."""
VERBS = (
    "async_transport.py",
    "async_resource.py",
    "async_reading.py",
    "async_processes.py",
    "async_objects.py",
    "async_verbs.py",
)
AWAITED = [
    *(CLIENT / name for name in VERBS),
    *(
        path
        for path in sorted([*CONTROLLER.glob("async_*.py"), *QUEUE.glob("async_*.py")])
        if path.name not in BY_HAND
    ),
]

RULES = (
    ("a resource, awaited", "a resource, called plainly"),
    (r"(?<=[a-z]), awaited(?=[:.;])", ", for threads"),
    (r"\bAwaitable\[None\]", "None"),
    (r"\bAwaitable\[(float \| None|[A-Z])\]", r"\1"),
    (r", Awaitable\b|\bAwaitable, ", lambda found: ""),
    ("``close`` or leaving", "``close`` (from any thread) or leaving"),
    (r"\bawait ", ""),
    (r"\basync (?=def|for|with)", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=[a-z])", ""),
    (r"__a(?=(?:iter|enter|exit)__)", "__"),
    (r"\s*``\w+``, its plain twin, is\s+made of this file by ``build/plain\.py``\.", ""),
)
"""Pattern → what takes its place in the plain twin; in order."""


def made_of(awaited: Path) -> Path:
    """Returns the path of the plain twin."""
    return awaited.with_name(awaited.name.removeprefix("async_"))


def plain(text: str, name: str) -> str:
    """Makes the plain twin of a module's text, formatted. Raises ``CalledProcessError`` if it is not Python."""
    for pattern, instead in RULES:
        text = re.sub(pattern, instead, text)
    text = _ruff(text, "check", "--quiet", "--select=I,UP028", "--unsafe-fixes", "--fix")
    return f"# Made from {name} by build/plain.py: edit that one.\n" + _ruff(text, "format", "--quiet")


def _ruff(text: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, f"--stdin-filename={CLIENT / 'resource.py'}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Writes the twins, or with ``--check`` prints those that differ and returns 1."""
    differing = [path for path in AWAITED if made_of(path).read_text() != plain(path.read_text(), path.name)]
    for path in differing:
        if "--check" in sys.argv[1:]:
            print(
                f"{made_of(path).relative_to(ROOT)} is not what {path.name} makes: run `make plain`",
                file=sys.stderr,
            )
        else:
            made_of(path).write_text(plain(path.read_text(), path.name))
    return int(bool(differing) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
