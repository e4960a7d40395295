"""Lines of the same operator written with each library, each tried with the story that the example's test tells.

    python -m tests.bench.operators.count

Lines that hold code are counted: blank lines, comments, docstrings and imports are not.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

from kubewright.testing import ApiServer

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
EXAMPLE = ROOT / "examples/operator"
OPERATORS = {
    "ours": EXAMPLE / "website_operator.py",
    "kopf": HERE / "with_kopf.py",
    "lightkube": HERE / "with_lightkube.py",
}


def lines(source: str) -> int:
    """Lines that hold code."""
    left_out = {at for at, text in enumerate(source.splitlines(), 1) if text.strip().startswith(("#", '"""'))}
    left_out |= {at for at, text in enumerate(source.splitlines(), 1) if not text.strip()}
    for node in ast.walk(ast.parse(source)):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or docstring:
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(source.splitlines()) - len(left_out)


def try_out(program: Path, server: ApiServer) -> str:
    """Whether an operator brings a website through its life."""
    from test_website_operator import World, life_of_a_website

    with server.namespace() as namespace:
        environment = os.environ | {"KUBECONFIG": str(server.kubeconfig)}
        operator = subprocess.Popen(
            [sys.executable, str(program), namespace], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            life_of_a_website(World(server, namespace))
        except AssertionError as error:
            return f"fails: {error}"
        finally:
            operator.terminate()
            operator.wait(20)
    return "passes"


def main() -> None:
    """Prints the table."""
    sys.path.insert(0, str(EXAMPLE))
    print("| library | lines | the example's story |\n|---|---|---|")
    for library, program in OPERATORS.items():
        with ApiServer(crds=[EXAMPLE / "crds"]) as server:
            print(f"| {library} | {lines(program.read_text())} | {try_out(program, server)} |", flush=True)


if __name__ == "__main__":
    main()
