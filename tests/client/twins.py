"""Modules called plainly, as they follow from their twins, which are awaited: the verbs of the client, and controllers.

One text says what both do; ``make golden`` writes the plain one anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "generator/apimachinery/client"
AWAITED, PLAIN = CLIENT / "async_resource.py", CLIENT / "resource.py"
CONTROLLER = CLIENT.parent / "controller"
QUEUE = CLIENT.parent / "queue"
BY_HAND = {"async_running.py"}
"""What concurrency is made of differs; everything above it does not."""
PAIRS = [
    (AWAITED, PLAIN),
    (CLIENT / "async_reading.py", CLIENT / "reading.py"),
    (CLIENT / "async_processes.py", CLIENT / "processes.py"),
    (CLIENT / "async_objects.py", CLIENT / "objects.py"),
    (CLIENT / "async_verbs.py", CLIENT / "verbs.py"),
    *(
        (path, path.with_name(path.name.removeprefix("async_")))
        for path in sorted([*CONTROLLER.glob("async_*.py"), *QUEUE.glob("async_*.py")])
        if path.name not in BY_HAND
    ),
]

RULES = (
    ("a resource, awaited", "a resource, called plainly"),
    (r"(?<=[a-z]), awaited(?=[:.])", ", for threads"),
    (r"\bAwaitable\[None\]", "None"),
    (r"\bAwaitable\[(float \| None|[A-Z])\]", r"\1"),
    (r", Awaitable\b|\bAwaitable, ", lambda found: ""),
    ("``close`` or leaving", "``close`` (from any thread) or leaving"),
    (r"\bawait ", ""),
    (r"\basync (?=def|for|with)", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=[a-z])", ""),
    (r"__a(?=(?:iter|enter|exit)__)", "__"),
    (
        r"``(\w+)``, its plain twin, is\s+made of this file: ``make golden``",
        r"Made of ``async_\1`` by ``make golden``: edit that one",
    ),
)
"""Pattern → what stands there in the plain twin; in order."""


def plain(text: str) -> str:
    """The plain twin of a module, formatted. Raises ``CalledProcessError`` where it is no Python."""
    for pattern, instead in RULES:
        text = re.sub(pattern, instead, text)
    text = _ruff(text, "check", "--quiet", "--select=I,UP028", "--unsafe-fixes", "--fix")
    return _ruff(text, "format", "--quiet")


def _ruff(text: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, f"--stdin-filename={PLAIN}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
