"""``make differential REFERENCE=kubeconfig SEED=… REQUESTS=…``: random conversations with two servers, compared."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from kubewright.testing.ports import free_ports
from tests.differential import conversation as scenarios
from tests.differential import leftovers
from tests.differential.answers import signature
from tests.differential.connection import Server
from tests.differential.conversation import Conversation
from tests.differential.draw.areas import AREAS, conversations
from tests.differential.kubectl import binaries
from tests.differential.play import Side, Verdict, judge, speaks_cbor
from tests.differential.reduce import reduced
from tests.differential.report import Class, Report

DAY = 24 * 3600


@contextmanager
def judged(options: argparse.Namespace) -> Iterator[Server]:
    """The server to judge: another one, or the project's own in a process, on memory, gone afterwards."""
    if options.against:
        yield Server.of_kubeconfig(options.against)
        return
    port = options.port or free_ports(1)[0]
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text('admin-token,admin,admin-uid,"system:masters"\n')
        command = [sys.executable, "-m", "kubewright", "serve", "--storage", "memory://", "--port", str(port)]
        command += ["--token-file", str(tokens), "--controllers", options.controllers, "--log-level", "error"]
        scheme = "http"
        if options.kubectl:  # which sends no token without TLS
            scheme = "https"
            command += ["--cert-dir", f"{folder}/certificates", "--kubeconfig", f"{folder}/kubeconfig"]
        else:
            command += ["--tls", "off", "--cert-dir", f"{folder}/certificates"]
        process = subprocess.Popen(command)
        try:
            _wait(process, port)
            yield Server(f"{scheme}://127.0.0.1:{port}", {"admin": "admin-token"})
        finally:
            process.terminate()
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("the server did not start")


def _judge_twice(reference: Side, ours: Side, each: Conversation, number: int) -> tuple[Verdict, bool]:
    """A conversation that differs is played once more: what was only a matter of timing agrees then."""
    verdict = judge(reference, ours, each, f"c{number:05d}")
    if not verdict.failing() and not verdict.error:
        return verdict, False
    second = judge(reference, ours, each, f"r{number:05d}")
    if len(second.rows) < len(verdict.rows):
        return verdict, False
    before = len(verdict.failing())
    levels = [None, "code", "body", "text"]
    for place, row in enumerate(verdict.rows):
        if levels.index(second.rows[place][1]) > levels.index(row[1]):
            verdict.rows[place] = second.rows[place]
    verdict.error = second.error
    return verdict, len(verdict.failing()) < before


def _run(options: argparse.Namespace, reference: Side, ours: Side, report: Report) -> None:
    """Adds to a report, which tells of what there is also where the run is ended before its time."""
    drawn = conversations(
        options.seed,
        options.only,
        options.corpus,
        commands=bool(options.kubectl),
        manifests=options.manifests,
    )
    start, number, last = time.monotonic(), 0, 0.0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running: set[concurrent.futures.Future[tuple[Verdict, bool]]] = set()
        while True:
            while len(running) < options.jobs and report.requests() < options.requests:
                number += 1
                running.add(pool.submit(_judge_twice, reference, ours, next(drawn), number))
            if not running:
                break
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                verdict, alike = future.result()
                report.add(verdict)
                report.conversations += 1
                report.seconds = time.monotonic() - start
                report.alike_when_repeated += alike
            now = time.monotonic() - start
            if now - last > 10:
                last, rate = now, report.requests() / now * 60
                line = f"  {report.requests()} answers, {rate:.0f} a minute, {len(report.classes)} classes"
                print(line, file=sys.stderr, flush=True)


def _smallest(reference: Side, ours: Side, found: Class, tag: int) -> Conversation:
    """The example of a class with everything left out that it does not need."""
    tries = [0]

    def shows(conversation: Conversation) -> bool:
        tries[0] += 1
        verdict = judge(reference, ours, conversation, f"m{tag:02d}{tries[0]:03d}")
        return any(
            signature(level, one, other) == found.signature for _, level, one, other in verdict.failing()
        )

    example = found.example
    steps = example.steps[: found.at + 1]
    start = scenarios.with_steps(example, steps)
    start.about = found.signature
    return reduced(start, shows) if shows(start) else start


def _print_smallest(reference: Side, ours: Side, found: Class, tag: int) -> None:
    print(f"\n# {found.count} times: {found.signature}")
    smallest = _smallest(reference, ours, found, tag)
    print(scenarios.write(smallest))
    for title, side in (("wanted", reference), ("got", ours)):
        answers = list(side.play(smallest, f"z{tag}"))
        print(f"# {title}:\n{yaml.safe_dump(answers[-1][1] if answers else None, width=200)}", flush=True)


def _record(reference: Side, path: Path) -> None:
    """Writes what the reference answers into a scenario file."""
    found = scenarios.read(path, path.parent)
    steps = [{key: value for key, value in step.items() if key != "expect"} for step in found.steps]
    found.steps = steps
    for number, answer in reference.play(found):
        steps[number]["expect"] = answer
    path.write_text(scenarios.write(found))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    add = parser.add_argument
    add("--reference", type=Path, required=True, help="kubeconfig of the server that is right")
    add(
        "--against",
        type=Path,
        help="kubeconfig of the server to judge (default: this project's, started here)",
    )
    add("--seed", default="1")
    add("--requests", type=int, default=2000)
    add(
        "--only",
        action="append",
        default=[],
        help=f"areas: {', '.join(AREAS)}, changed, kubectl, manifests, commands",
    )
    add("--corpus", type=Path, action="append", default=[], help="a folder of scenarios to change")
    add(
        "--kubectl",
        action="append",
        default=[],
        help="a kubectl; several are drawn by lot; gives the area kubectl",
    )
    add("--manifests", type=Path, help="a folder of real manifests; gives the areas manifests and commands")
    add("--controllers", default="none", help="of the server that is started: what the reference runs too")
    add("--jobs", type=int, default=8, help="conversations at once")
    add("--classes", type=int, default=25, help="how many classes of differences to print")
    add("--reduce", type=int, default=0, help="how many classes to reduce and print as scenarios")
    add("--match", default="", help="reduce only classes with this in them")
    add(
        "--record",
        type=Path,
        action="append",
        default=[],
        help="no run: write the reference's answers into it",
    )
    add("--json", type=Path, help="write the whole report there")
    add("--clear", action="store_true", help="no run: delete what killed runs left in the reference")
    add("--port", type=int, default=0, help="of the server that is started (default: a free one)")
    return parser.parse_args()


def main() -> int:
    """The command."""
    options = _arguments()
    run = f"{leftovers.MARK}{os.getpid() % 100000:05d}"
    kubectl = binaries(options.kubectl)
    reference = Side(Server.of_kubeconfig(options.reference), run, kubectl)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is below ``finally`` runs then too
    if options.clear:
        print(f"{leftovers.clear(reference)} objects of earlier runs deleted")
        return 0
    leftovers.clear(reference, older_than=DAY)
    if options.record:
        for path in options.record:
            _record(reference, path)
        reference.clear()
        return 0
    with judged(options) as server:
        ours = Side(server, run, kubectl)
        reference.speaks_cbor = ours.speaks_cbor = speaks_cbor(reference.server)
        report = Report()
        try:
            try:
                _run(options, reference, ours, report)
            finally:
                print(report.text(options.seed, options.classes), flush=True)
                if options.json:
                    options.json.write_text(json.dumps(report.as_json(), indent=1, default=str))
            chosen = [each for each in report.ordered() if options.match in each.signature]
            for tag, each in enumerate(chosen[: options.reduce]):
                _print_smallest(reference, ours, each, tag)
        finally:
            reference.clear()
            ours.clear()
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
