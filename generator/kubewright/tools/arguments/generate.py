"""The options of ``kubewright generate``."""

from __future__ import annotations

import argparse
import os

FLAVOURS = ("msgspec", "pydantic", "dataclass", "typeddict")
ENUMS = ("literal", "enum")
LANGUAGES = ("python", "jsonschema", "typescript", "go")
"""Those of ``kubewright.config``."""

EXAMPLES = r"""
kubewright generate crds/ --package shop_api --output src
kubewright generate crds/ --package shop_api --output src --check   # in CI: exit 1 on drift
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument(
        "specs",
        nargs="*",
        metavar="SPEC",
        help="OpenAPI document, CRD manifest or folder of them, or kubernetes:1.37; "
        "default: what the configuration lists",
    )
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        help="language to generate (default: python)",
    )
    parser.add_argument("--module", metavar="PATH", help="Go only: import path of the output folder")
    parser.add_argument(
        "--config", metavar="FILE", help="configuration (default: kubewright.yaml or specs/kubewright.yaml)"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="folder to write the packages to (default: generated)"
    )
    parser.add_argument("--package", metavar="NAME", help="name of the package to generate")
    parser.add_argument(
        "--only", metavar="EMITTER[,…]", help="run only these emitters; leave other files alone"
    )
    parser.add_argument("--models", choices=FLAVOURS, help="kind of classes to generate")
    parser.add_argument(
        "--enums", choices=ENUMS, help="generate enums as Literal types (default) or as classes"
    )
    parser.add_argument(
        "--documentation",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="keep descriptions as docstrings (default: for all but the built-in groups)",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        default=None,
        help="warn about errors in a document and use what can be read",
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        default=None,
        help="do not import types from kubernetes_api, not even ObjectMeta",
    )
    parser.add_argument("--kubernetes", metavar="RELEASE", help="Kubernetes release of the built-in types")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; print a diff and exit with 1 if files would change",
    )
    parser.add_argument("--force", action="store_true", help="generate even if no input has changed")
    parser.add_argument("--dump-ir", action="store_true", help="write nothing; print the linked API as YAML")
    parser.add_argument(
        "-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="number of processes"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only diagnostics")
