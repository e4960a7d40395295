"""The pictures of pages and terminals in this folder: ``make pictures``. Needs chromium and the extra ``docs``.

Pages are photographed in chromium, in a frame of the size of the screen: headless chromium draws what a window of its own
is scrolled to in the wrong place, or not at all. Terminals are what a command prints on one, as SVG.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCREENS = {"desktop": (1280, 800), "phone": (390, 844)}
PAGES = {
    "page": ("docs", "specs/backup/crds", "#backup.kubewright.dev.v1.BackupSchedule"),
}
"""Picture → the command that writes the page, its input, and the place that is shown."""
TERMINALS = {
    "validate": ("validate", "--strict", "deploy.yaml"),
    "lint": ("lint", "caches.yaml"),
    "explain": ("explain", "deploy.spec.strategy"),
}
"""Picture → what is typed after ``kubewright``."""
FILES = {
    "deploy.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  repliacs: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: web
        image: nginx
        ports: [{containerPort: 80800}]
""",
    "caches.yaml": """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Cache, plural: caches, singular: cache, listKind: CacheList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: Cache is memory that services share.
        type: object
        properties:
          spec:
            description: spec is the desired state of the Cache.
            type: object
            properties:
              podIp: {type: string, description: podIp is where it is., maxLength: 40}
              timeout: {type: integer, format: int64, description: timeout is how long to wait.}
""",
}


def main() -> int:
    """Makes all pictures; says which."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in FILES.items():
            (folder / file).write_text(text)
        for picture, words in TERMINALS.items():
            (HERE / f"terminal-{picture}.svg").write_text(terminal(words, folder))
            print(f"terminal-{picture}.svg")
        if chromium is None:
            print("no chromium: no pictures of pages", file=sys.stderr)
            return 1
        for picture, (command, source, place) in PAGES.items():
            run(folder, command, str(ROOT / source), "--output", str(folder / picture))
            for screen, size in SCREENS.items():
                photograph(
                    chromium,
                    (folder / picture / "index.html").as_uri() + place,
                    size,
                    HERE / f"{picture}-{screen}.png",
                )
                print(f"{picture}-{screen}.png")
        for picture in explorer_pictures(chromium):
            print(picture)
        site = ROOT / "build/site/index.html"
        for screen, size in SCREENS.items() if site.exists() else ():  # to be looked at, after `make docs`
            photograph(chromium, site.as_uri(), size, ROOT / f"build/site-{screen}.png")
            print(f"build/site-{screen}.png")
    return 0


def explorer_pictures(chromium: str) -> list[str]:
    """Those of the explorer; its server runs in this process."""
    sys.path[:0] = [str(HERE), *(str(ROOT / each) for each in ("generator", "generated"))]
    try:
        import explorer

        from kubewright.tools.explore import page

        if page.is_built():
            return explorer.photograph(chromium, HERE)
        print(page.HOW, file=sys.stderr)
    except ImportError as missing:
        print(f"no pictures of the explorer: {missing}", file=sys.stderr)
    return []


def run(folder: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "kubewright", *words], cwd=folder, env=environment(), check=True, capture_output=True
    )


def environment() -> dict[str, str]:
    path = os.pathsep.join(str(ROOT / each) for each in ("generator", "generated"))
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "100", "TERM": "xterm-256color"}


def terminal(words: tuple[str, ...], folder: Path) -> str:
    """What a command prints on a terminal, as SVG. Fonts are those of who looks."""
    from rich.console import Console
    from rich.text import Text

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kubewright", *words],
        cwd=folder, env=environment(), stdin=child, stdout=child, stderr=child,
    )  # fmt: skip
    os.close(child)
    said = b""
    while chunk := read(parent):
        said += chunk
    process.wait()
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ kubewright {' '.join(words)}\n" + said.decode().replace("\r\n", "\n").rstrip()))
    svg = console.export_svg(title="", unique_id=words[0])
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so where the other end is closed
        return b""


def photograph(chromium: str, address: str, size: tuple[int, int], target: Path) -> None:
    """Writes a PNG of a page as a screen of that size shows it."""
    width, height = size
    with tempfile.TemporaryDirectory() as name:
        frame = Path(name) / "frame.html"
        frame.write_text(
            f'<style>body {{margin: 0}} iframe {{border: 0; width: {width}px; height: {height}px}}</style>'
            f'<iframe src="{escape(address)}"></iframe>'
        )
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]
        flags += [f"--user-data-dir={name}/profile", f"--window-size={width},{height}"]
        command = [chromium, *flags, f"--screenshot={target}", frame.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
