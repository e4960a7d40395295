"""What ``--help`` reads: nothing heavy, and the facts in it are those of the rooms that they come from."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from apimachinery.access import control, delegation
from apimachinery.meta import release
from apimachinery.server.operate.audit.batches import Batching
from apimachinery.server.operate.audit.truncation import EVENT_BYTES
from kubewright import cli, config
from kubewright.emit import registry
from kubewright.source import kubernetes_validate
from kubewright.tools.arguments import generate, serve_access, serve_between, several
from kubewright.tools.outputs import reporting

LIGHT = {
    "kubewright",
    "kubewright.cli",
    "kubewright.tools",
    "apimachinery",
    "apimachinery.meta",
    "apimachinery.meta.version",
}
PROGRAM = """
import contextlib, io, json, sys
from kubewright import cli
with contextlib.redirect_stdout(io.StringIO()):
    for name in cli.COMMANDS:
        cli.parser_of(name).format_help()
json.dump(sorted(sys.modules), sys.stdout)
"""


def test_helps_import_nothing_that_a_command_runs_with() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    ours = {name for name in loaded if name.partition(".")[0] in ("kubewright", "apimachinery")}
    assert {name for name in ours - LIGHT if not name.startswith("kubewright.tools.arguments")} == set()
    assert (
        loaded & {"msgspec", "yaml", "jinja2", "jwt", "cryptography", "asyncio", "dataclasses", "ssl"}
        == set()
    )


@pytest.mark.parametrize(
    ("written", "fact"),
    [
        (several.NEWEST, kubernetes_validate.NEWEST),
        (several.RELEASE, release.RELEASE),
        (several.FORMATS, tuple(reporting.FORMATS)),
        (generate.FLAVOURS, config.FLAVOURS),
        (generate.LANGUAGES, tuple(config.LANGUAGES)),
        (generate.LANGUAGES, tuple(registry.LANGUAGES)),
        (generate.ENUMS, config.ENUMS),
        (serve_access.MODES, control.MODES),
        (serve_between.ALWAYS_ALLOWED, delegation.ALWAYS_ALLOWED),
    ],
)
def test_facts_are_those_of_their_source(written: object, fact: object) -> None:
    assert written == fact


def test_defaults_of_audit_are_those_of_the_backends() -> None:
    given = vars(cli.parser_of("serve").parse_args([]))
    usual = Batching()
    assert (
        given["audit_log_truncate_max_event_size"]
        == given["audit_webhook_truncate_max_event_size"]
        == EVENT_BYTES
    )
    assert given["audit_webhook_batch_buffer_size"] == given["audit_log_batch_buffer_size"] == usual.buffer
    assert given["audit_webhook_batch_max_size"] == usual.batch
    assert given["audit_webhook_batch_max_wait"] == f"{usual.wait_seconds:g}s"
    assert given["audit_webhook_batch_throttle_qps"] == usual.qps
    assert given["audit_webhook_batch_throttle_burst"] == usual.burst
