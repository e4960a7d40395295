"""Options that several commands have."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

NEWEST = "1.37"
"""``source.kubernetes_validate.NEWEST``."""
RELEASE = "1.36"
"""``meta.release.RELEASE``: what a server answers as, and what is checked for."""
FORMATS = ("text", "json", "sarif", "junit", "github")
"""The keys of ``reporting.FORMATS``."""
CRDS_HELP = "CRDs of custom kinds: a file, a folder or -; may be repeated"
EXCLUDE_HELP = "skip files whose path matches, such as 'charts/*' or '*-ci.yaml'; may be repeated"


def release(text: str) -> str:
    """A release by its minor version: ``v1.36`` and ``1.36.2`` mean 1.36. Other texts stay as they are."""
    known = re.fullmatch(r"v?(\d+\.\d+)(\.\d+([-+].*)?)?", text)
    return known[1] if known else text


def add_crds(parser: argparse.ArgumentParser, meaning: str = CRDS_HELP) -> None:
    """Adds ``--crds``."""
    parser.add_argument("--crds", action="append", type=Path, default=[], metavar="PATH", help=meaning)


def add_package(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Adds ``--package``: a generated package that is read."""
    parser.add_argument("--package", default="kubernetes_api", metavar="NAME", help=meaning)


def add_findings_format(parser: argparse.ArgumentParser) -> None:
    """Adds ``--format`` of a command that prints findings."""
    parser.add_argument("--format", choices=[*FORMATS], default="text", help="output format")


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Adds ``--quiet``."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print no summary")


def add_output_arguments(parser: argparse.ArgumentParser, *, otherwise: str) -> None:
    """Adds ``--output`` and what goes with it."""
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help=f"folder to write to; {otherwise}")
    parser.add_argument(
        "--replace", action="store_true", help="overwrite files that this command did not write"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; show what would change, and exit with 1 if anything would",
    )


def add_storage_arguments(parser: argparse._ActionsContainer) -> None:
    """Declares what reaching and reading a storage takes."""
    add = parser.add_argument
    add(
        "--encryption-provider-config",
        type=Path,
        metavar="FILE",
        help="encrypt stored objects, as configured by an EncryptionConfiguration",
    )
    add("--etcd-cafile", type=Path, metavar="FILE", help="etcd over TLS: CA of its certificates")
    add("--etcd-certfile", type=Path, metavar="FILE", help="etcd over TLS: client certificate")
    add("--etcd-keyfile", type=Path, metavar="FILE", help="etcd over TLS: key of --etcd-certfile")


def add_object_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options by which a kind is looked up and an answer written."""
    add_crds(parser)
    add_package(parser, "generated package with the built-in kinds")
    parser.add_argument("--format", choices=("yaml", "json"), default="yaml", help="output format")


def seconds(text: str) -> float:
    """Seconds, as a number or as a duration (``1m30s``)."""
    from apimachinery.server.catalog.options import OptionError
    from kubewright.tools.serve.remote import duration

    try:
        return float(text) if text.replace(".", "", 1).isdecimal() else duration(text)
    except OptionError as fault:
        raise argparse.ArgumentTypeError(str(fault)) from None


def port_number(text: str) -> int:
    """Read a port, 0 to 65535. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give 0 to 65535")
    return int(text)


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds which object of which cluster is meant."""
    parser.add_argument("-n", "--namespace", default="", help="namespace (default: the kubeconfig's)")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="as for kubectl")
    parser.add_argument("--context", default="", metavar="NAME", help="as for kubectl")


def add_conversions(parser: argparse.ArgumentParser) -> None:
    """Adds the CRDs and conversions of custom kinds."""
    add_crds(parser, "CRDs of custom kinds; may be repeated")
    parser.add_argument(
        "--rules", type=Path, metavar="DIR", help="folder with the CRDs' `conversions/` (docs/rules.md)"
    )
    parser.add_argument(
        "--modules",
        type=Path,
        metavar="DIR",
        help="folder of the Python modules that `call` rules name; their code is executed",
    )
