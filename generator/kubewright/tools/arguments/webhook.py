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
        help="generated package whose rules to serve; may be repeated",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="TLS certificate (PEM)")
    add("--tls-key", type=Path, metavar="FILE", help="key of the TLS certificate (PEM)")
    add("--host", default="0.0.0.0", help="address to bind (default %(default)s)")
    add("--port", type=int, default=9443, help="port to bind (default %(default)s)")
    add("--manifest", action="store_true", help="print the manifests to register the webhook, and exit")
    add(
        "--install",
        action="store_true",
        help="register the webhook in the cluster, with conversion in its CRDs, and exit",
    )
    add("--uninstall", action="store_true", help="undo --install; CRDs and objects stay")
    add("--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the cluster (default: kubectl's)")
    add("--context", default="", metavar="NAME", help="context of the kubeconfig")
    add("--service", metavar="NS/NAME[:PORT]", help="Service in front of the webhook")
    add("--url", metavar="URL", help="URL of the webhook, if not behind a Service")
    add("--ca", type=Path, metavar="FILE", help="CA of its certificate (PEM)")
    add(
        "--cert-manager",
        metavar="NS/NAME",
        help="cert-manager Certificate of the webhook; cert-manager injects its CA",
    )
    add(
        "--failure-policy",
        choices=("Fail", "Ignore"),
        default="Fail",
        help="whether writes fail while the webhook is unreachable (default %(default)s)",
    )
