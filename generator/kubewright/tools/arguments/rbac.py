"""The options of ``kubewright rbac``."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = """
kubewright rbac who-can delete pods -n shop -f deploy/
kubewright rbac what-can sa:shop/operator -n shop
kubewright rbac why sa:shop/operator update deployments/scale -n shop
kubewright rbac record audit.log --user system:serviceaccount:shop:operator --name operator
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the sub-commands."""
    commands = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    who = commands.add_parser("who-can", help="list who can VERB RESOURCE")
    what = commands.add_parser("what-can", help="list what SUBJECT can do")
    why = commands.add_parser(
        "why",
        help="show the binding, role and rule by which SUBJECT can VERB RESOURCE; exit with 1 if it cannot",
    )
    record = commands.add_parser(
        "record", help="write least-privilege roles for the requests in an audit log"
    )
    for command in (what, why):
        command.add_argument("subject", metavar="SUBJECT", help="user:NAME, group:NAME or sa:NAMESPACE/NAME")
        command.add_argument(
            "--group", action="append", default=[], metavar="NAME", help="group of the user; may be repeated"
        )
    for command in (who, why):
        command.add_argument("verb", metavar="VERB", help="a verb such as get, list or create")
        command.add_argument("resource", metavar="RESOURCE", help="PLURAL[.GROUP][/SUBRESOURCE], or a path")
        command.add_argument("name", nargs="?", default="", metavar="NAME", help="name of a single object")
    for command in (who, what, why):
        command.add_argument("-n", "--namespace", default="", help="namespace (default: the whole cluster)")
        command.add_argument("-f", "--filename", type=Path, action="append", default=[], metavar="PATH",
            help="manifests to read instead of a live cluster; - for stdin")  # fmt: skip
        command.add_argument("--no-bootstrap", action="store_true",
            help="with -f: leave out the default roles of a cluster")  # fmt: skip
        command.add_argument(
            "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the cluster (default: kubectl's)"
        )
        command.add_argument("--context", default="", metavar="NAME", help="context of the kubeconfig")
        command.add_argument("--format", choices=("text", "json"), default="text", help="output format")
    who.add_argument("-A", "--all-namespaces", action="store_true", help="in any namespace")
    record.add_argument("audit", metavar="FILE", help="audit log (JSON lines); - for stdin")
    record.add_argument("--user", required=True, metavar="NAME", help="user whose requests to read")
    record.add_argument(
        "--name", default="recorded", metavar="NAME", help="name of the roles (default %(default)s)"
    )
    record.add_argument("--resource-names", action="store_true",
        help="limit access to single objects to the names that were used")  # fmt: skip
