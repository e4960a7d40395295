"""The options of ``kubewright webhook``."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = r"""
kubewright webhook --package messaging_api --tls-cert tls.crt --tls-key tls.key --host 0.0.0.0 --port 9443
kubewright webhook --package messaging_api --install --service messaging/webhook --ca ca.crt
kubewright webhook --package messaging_api --uninstall
kubewright webhook --package messaging_api --manifest --url https://192.0.2.7:9443 --ca ca.crt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add(
        "--package",
        action="append",
        required=True,
        metavar="NAME",
        help="a generated package whose rules to serve; may be repeated",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="the certificate to serve with (PEM)")
    add("--tls-key", type=Path, metavar="FILE", help="its key (PEM)")
    add("--host", default="0.0.0.0", help="address to bind (default %(default)s)")
    add("--port", type=int, default=9443, help="port to bind (default %(default)s)")
    add(
        "--manifest", action="store_true", help="print what the cluster needs to know of the webhook, and end"
    )
    add(
        "--install",
        action="store_true",
        help="write that into the cluster of the kubeconfig, together with conversion in its definitions, and end",
    )
    add("--uninstall", action="store_true", help="take it back: definitions and objects stay")
    add("--kubeconfig", type=Path, metavar="FILE", help="of that cluster (default: as kubectl finds it)")
    add("--context", default="", metavar="NAME", help="context of the kubeconfig")
    add("--service", metavar="NS/NAME[:PORT]", help="the Service that leads to the webhook")
    add("--url", metavar="URL", help="where the webhook is, if not behind a Service")
    add("--ca", type=Path, metavar="FILE", help="the authority of its certificate (PEM)")
    add(
        "--cert-manager",
        metavar="NS/NAME",
        help="the cert-manager Certificate of it, whose authority cert-manager then writes in",
    )
    add(
        "--failure-policy",
        choices=("Fail", "Ignore"),
        default="Fail",
        help="what becomes of writes while the webhook cannot be asked (default %(default)s)",
    )
