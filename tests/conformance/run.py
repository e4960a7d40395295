"""Runs conformance specs of Kubernetes, a few at a time, each few against a server of their own; then writes
``specs.yaml`` and docs/conformance.md. Needs the folder ../shared/reference, which has the end-to-end program.

    python -m tests.conformance.run OUT [--only REGEX] [--state STATE] [--workers N] [--first-port PORT]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

import yaml

from tests.conformance.page import PAGE, rendered
from tests.conformance.specs import SERVE, STATES, load, save, updated, with_names

REFERENCE = Path(__file__).resolve().parents[3] / "shared/reference"
NODES = 3
READY_SECONDS = 60
ADDRESS = "192.0.2.10"
"""Of no machine (RFC 5737): the Service ``kubernetes`` needs one that is not loopback."""


def listed() -> list[str]:
    """The names of all conformance specs."""
    program = subprocess.run(
        [REFERENCE / "reference.sh", "path", "e2e.test"], capture_output=True, text=True, check=True
    )
    told = subprocess.run(
        [program.stdout.strip(), "--list-conformance-tests"], capture_output=True, text=True, check=True
    )
    return sorted(each["codename"] for each in yaml.safe_load(told.stdout))


@contextmanager
def serving(folder: Path, port: int) -> Iterator[Path]:
    """Runs a server; its kubeconfig. Raises TimeoutError."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "kubewright", "serve", *SERVE.split(), "--nodes", str(NODES)]
    command += ["--storage", "memory://", "--advertise-address", ADDRESS]
    command += ["--port", str(port), "--cert-dir", str(folder / "certs"), "--kubeconfig", str(kubeconfig)]
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
    ):
        try:
            until = time.monotonic() + READY_SECONDS
            ready = ["kubectl", "--kubeconfig", str(kubeconfig), "get", "--raw", "/readyz"]
            while not kubeconfig.exists() or subprocess.run(ready, capture_output=True).returncode:
                if time.monotonic() > until:
                    raise TimeoutError(f"{folder}: the server is not ready")
                time.sleep(0.5)
            yield kubeconfig
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(20)
            server.kill()


def run(names: tuple[str, ...], folder: Path, ports: SimpleQueue[int], minutes: int) -> dict[str, str]:
    """The first line of why each spec failed that was run, empty for those that passed."""
    folder.mkdir(parents=True, exist_ok=True)
    focus = folder / "focus"
    focus.write_text("|".join(re.escape(name) for name in names))
    port = ports.get()
    try:
        with serving(folder, port) as kubeconfig:
            command = [sys.executable, str(REFERENCE / "e2e.py"), str(kubeconfig), str(folder), str(focus)]
            command += ["-p", "1", "--timeout", f"{minutes}m"]
            subprocess.run(command, capture_output=True, timeout=60 * minutes + 120, check=False)
    finally:
        ports.put(port)
    found: dict[str, str] = {}
    for suite in json.loads((folder / "0.json").read_text()):
        for spec in suite["SpecReports"]:
            name = " ".join([*(spec.get("ContainerHierarchyTexts") or []), spec["LeafNodeText"]])
            message = (spec.get("Failure") or {}).get("Message", "").strip()
            if spec["State"] == "passed":
                found[name] = ""
            elif spec["State"] != "pending" and message:
                found[name] = message.splitlines()[0][:200]
    return {name: message for name, message in found.items() if name in names}


def main() -> None:
    """Runs what is asked for."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("out", type=Path, help="a folder for logs and reports")
    options.add_argument("--only", default="", help="regular expression of names")
    options.add_argument(
        "--state", choices=STATES, action="append", help="only specs that have this state now"
    )
    options.add_argument("--workers", type=int, default=4, help="servers at a time")
    options.add_argument("--first-port", type=int, default=16443)
    options.add_argument("--batch", type=int, default=5, help="specs for each server")
    options.add_argument("--minutes", type=int, default=25, help="for each server")
    chosen = options.parse_args()
    found = with_names(load(), listed())
    wanted = [
        spec.name
        for spec in found.specs
        if re.search(chosen.only, spec.name) and (not chosen.state or spec.state in chosen.state)
    ]
    ports: SimpleQueue[int] = SimpleQueue()
    for number in range(chosen.workers):
        ports.put(chosen.first_port + number)
    with ThreadPoolExecutor(chosen.workers) as pool:
        runs = [
            pool.submit(
                run, tuple(wanted[at : at + chosen.batch]), chosen.out / str(at), ports, chosen.minutes
            )
            for at in range(0, len(wanted), chosen.batch)
        ]
        for done in as_completed(runs):
            try:
                results = done.result()
            except (OSError, ValueError, subprocess.SubprocessError) as fault:
                print(f"not run: {fault}", file=sys.stderr)
                continue
            found = updated(found, results)
            save(found)
            for name, message in results.items():
                print(f"FAILED {name}\n    {message}" if message else f"ok {name}", flush=True)
    save(found)
    PAGE.write_text(rendered(found))


if __name__ == "__main__":
    main()
