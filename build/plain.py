"""Makes the modules that are called plainly from their awaited twins: the verbs of the client, controllers, queues.

One text says what both do. The verbs of cluster-scoped resources follow from those of namespaced ones in the same way.
``make plain`` writes what is made, ``--check`` says what is not as it would be made.
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
NAMESPACED, CLUSTER = CLIENT / "async_resource.py", CLIENT / "async_cluster_resource.py"
VERBS = (
    "async_transport.py",
    NAMESPACED.name,
    CLUSTER.name,
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


CLUSTER_RULES = (
    (r"AsyncNamespaced", "AsyncCluster"),
    (r"of a namespaced resource", "of a cluster-scoped resource"),
    (r" Without ``namespace`` [^\n]+|, of one namespace or of all| in one namespace", ""),
    (r"(, \*)?, namespace: str \| None = None(?=\))", ""),
    (r"\bnamespace: str \| None = None,\s*", ""),
    (r"\ball_namespaces: bool = False,\s*", ""),
    (r"_target\((\"\" if all_namespaces else namespace|namespace( or namespace_of\(\w+\))?)\)", "_target()"),
)
"""Pattern → what takes its place in the verbs of cluster-scoped resources; in order."""
IMPORT_RULES = (
    (r"    from apimachinery\.client\.async_cluster_resource import (\([^)]*\)|.*)\n", ""),
    (r"(?m)(\w+) as \1$", r"\1"),
    (r"\nB = TypeVar.*", ""),
    (
        r"(?=from apimachinery\.client\.calls )",
        "from apimachinery.client.async_resource import AsyncResourceApi\n",
    ),
)
_ONLY_NAMESPACED = "AsyncNamespacedExecutable"
_HEAD = '''"""The verbs of cluster-scoped resources, awaited: mixed into classes by generated code."""

'''


def cluster(text: str) -> str:
    """Makes the verbs of cluster-scoped resources from the text of those of namespaced ones."""
    imports = text[text.index("from __future__") : text.index("\n\n\nclass ")]
    for pattern, instead in IMPORT_RULES:
        imports = re.sub(pattern, instead, imports)
    classes = re.findall(r"^class AsyncNamespaced.*?(?=\n\n\n)", text, re.MULTILINE | re.DOTALL)
    kept = [each for each in classes if not each.startswith(f"class {_ONLY_NAMESPACED}")]
    made = "\n\n\n".join(kept)
    for pattern, instead in CLUSTER_RULES:
        made = re.sub(pattern, instead, made)
    text = _ruff(
        f"{_HEAD}{imports}\n\n{made}\n", "check", "--quiet", "--select=I,F401", "--unsafe-fixes", "--fix"
    )
    return _made_from(NAMESPACED) + _ruff(text, "format", "--quiet")


def _made_from(path: Path) -> str:
    return f"# Made from {path.name} by build/plain.py: edit that one.\n"


def made_of(awaited: Path) -> Path:
    """Returns the path of the plain twin."""
    return awaited.with_name(awaited.name.removeprefix("async_"))


def plain(text: str, name: str) -> str:
    """Makes the plain twin of a module's text, formatted. Raises ``CalledProcessError`` if it is not Python."""
    text = text.removeprefix(_made_from(NAMESPACED))
    for pattern, instead in RULES:
        text = re.sub(pattern, instead, text)
    text = _ruff(text, "check", "--quiet", "--select=I,UP028", "--unsafe-fixes", "--fix")
    return _made_from(Path(name)) + _ruff(text, "format", "--quiet")


def _ruff(text: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, f"--stdin-filename={CLIENT / 'resource.py'}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


MADE = [(CLUSTER, NAMESPACED), *((made_of(path), path) for path in AWAITED)]
"""Each file that is made, and what it is made of."""


def text_of(path: Path, source: Path) -> str:
    """Makes the text of a file that ``MADE`` names."""
    return cluster(source.read_text()) if path == CLUSTER else plain(source.read_text(), source.name)


def main() -> int:
    """Writes what is made, or with ``--check`` prints what differs and returns 1."""
    differing = 0
    for path, source in MADE:
        text = text_of(path, source)
        if path.exists() and path.read_text() == text:
            continue
        differing += 1
        if "--check" in sys.argv[1:]:
            print(
                f"{path.relative_to(ROOT)} is not what {source.name} makes: run `make plain`", file=sys.stderr
            )
        else:
            path.write_text(text)
    return int(bool(differing) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
