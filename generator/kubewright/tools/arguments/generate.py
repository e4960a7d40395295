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
        "without any, the configuration says what is made",
    )
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        help="default: python; of a configuration, what it makes in this language",
    )
    parser.add_argument("--module", metavar="PATH", help="of Go: the import path of the folder that is made")
    parser.add_argument("--config", metavar="FILE", help="default: kubewright.yaml or specs/kubewright.yaml")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="folder the packages go to (default: generated)"
    )
    parser.add_argument(
        "--package", metavar="NAME", help="package to make: of SPECs, or of the configuration"
    )
    parser.add_argument(
        "--only", metavar="EMITTER[,…]", help="run only these emitters, leave other files alone"
    )
    parser.add_argument("--models", choices=FLAVOURS, help="flavour of the typed models")
    parser.add_argument("--enums", choices=ENUMS, help="enums as Literal (the default) or as classes")
    parser.add_argument(
        "--documentation",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="keep the specs' prose (default: of all but the built-in groups)",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        default=None,
        help="warn of faults in a document and read on as far as it goes",
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        default=None,
        help="use no types of the installed kubernetes_api, not even its ObjectMeta",
    )
    parser.add_argument("--kubernetes", metavar="RELEASE", help="release of the built-in definitions")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; print a diff and exit 1 on drift"
    )
    parser.add_argument("--force", action="store_true", help="generate even if nothing seems to have changed")
    parser.add_argument("--dump-ir", action="store_true", help="print the linked API as YAML, write nothing")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("-q", "--quiet", action="store_true", help="print diagnostics only")
