"""The options of ``kubewright patch``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubewright.tools.arguments.several import (
    add_object_arguments,
)

EXAMPLES = r"""
kubewright patch -f live.yaml -p mine.yaml --type apply --field-manager me
kubewright patch -f live.yaml -p '{"spec":{"replicas":3}}' --type merge
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--filename", type=Path, metavar="LIVE", help="the live object (default: it does not exist yet)"
    )
    parser.add_argument(
        "-p",
        "--patch",
        required=True,
        metavar="PATCH",
        help="the patch or the applied configuration: a file, -, or inline JSON",
    )
    parser.add_argument(
        "--type",
        choices=("strategic", "merge", "json", "apply"),
        default="strategic",
        help="type of the patch (default strategic)",
    )
    parser.add_argument(
        "--field-manager", default="kubewright", metavar="NAME", help="field manager of the change"
    )
    parser.add_argument(
        "--force", action="store_true", help="with apply: take over fields that other managers own"
    )
    parser.add_argument(
        "--subresource", default="", metavar="NAME", help="subresource to write to, such as status"
    )
    parser.add_argument("--now", metavar="TIME", help="time to record (RFC 3339; default: now)")
    add_object_arguments(parser)
