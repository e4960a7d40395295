"""``kubewright convert``: objects at another version of their kind, without a cluster.

Exit codes: 0 everything is converted, 1 an object has no such version or was valid and is not any more, 2 the command
line or input cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from apimachinery.conversion.versions import ConversionError, Converter
from apimachinery.wire import json as wire_json
from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault
from kubewright.diagnostics import Diagnostics, printable
from kubewright.tools.migrate.aftermath import Arrivals
from kubewright.tools.migrate.conversions import HooksError, converted, converter_of, tables_of_crds
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.validate.inputs import Chunk, read_chunks

DONE, REFUSED, MISUSED = 0, 1, 2


def run(options: argparse.Namespace) -> int:
    """Prints all documents named at the version wanted, comments and order kept where the value allows."""
    if options.rules is not None and not options.crds:
        print("kubewright convert: --rules speaks of --crds; give them too", file=sys.stderr)
        return MISUSED
    diagnostics = Diagnostics()
    converter = _converter(options, diagnostics)
    if converter is None:
        return MISUSED
    chunks = read_chunks(options.filename, diagnostics)
    if diagnostics.has_errors or not chunks:
        for item in diagnostics:
            print(item, file=sys.stderr)
        if not chunks:
            print("kubewright convert: the input has no documents", file=sys.stderr)
        return MISUSED
    return _convert(chunks, converter, options)


def _converter(options: argparse.Namespace, diagnostics: Diagnostics) -> Converter | None:
    """Makes the converter of a package and of CRDs, or prints why there is none."""
    custom = tables_of_crds(options.crds, options.rules, diagnostics, options.modules) if options.crds else []
    if diagnostics.has_errors:
        for item in diagnostics:
            print(item, file=sys.stderr)
        return None
    try:
        converter = converter_of(options.package, custom) or (Converter(custom) if custom else None)
    except HooksError as fault:
        print(f"kubewright convert: {fault}", file=sys.stderr)
        return None
    if converter is None:
        print(
            f"kubewright convert: the package {options.package!r} is not importable\n"
            "  hint: put the folder that `kubewright generate` writes on PYTHONPATH, or give the kind's CRD by --crds",
            file=sys.stderr,
        )
    return converter


def _convert(chunks: Sequence[Chunk], converter: Converter, options: argparse.Namespace) -> int:
    """Converts and prints every document that can be; the rest is reported."""
    written: list[str] = []
    arrivals: Arrivals | None = None
    code = DONE
    for chunk in chunks:
        where = printable(f"{chunk.file}:{chunk.line + 1}")
        try:
            is_json = chunk.content.lstrip()[:1] == b"{"
            value = wire_json.decode(chunk.content) if is_json else wire_yaml.decode(chunk.content)
        except (DecodeFault, ValueError, RecursionError) as fault:
            print(printable(f"{where}: error: {fault}"), file=sys.stderr)
            return MISUSED
        try:
            if not isinstance(value, dict):
                raise ConversionError("an object is wanted, with apiVersion and kind")
            new = converted(converter, value, options.output_version)
        except (ConversionError, AttributeError, TypeError, KeyError) as problem:
            print(printable(f"{where}: error: {problem}"), file=sys.stderr)
            code = REFUSED
            continue
        text = chunk.content.decode("utf-8-sig")
        if new != value:
            rewritten = rewrite(text, value, new)
            if not rewritten.kept and "#" in text:
                print(f"{where}: note: rewritten, without its comments", file=sys.stderr)
            if rewritten.written_out:
                print(f"{where}: note: its aliases are expanded", file=sys.stderr)
            text = rewritten.text
            arrivals = arrivals or Arrivals.at(options.crds, options.package)
            for refusal in arrivals.faults(chunk, Chunk(chunk.file, chunk.line, text.encode())):
                print(
                    printable(f"{where}: error: {options.output_version} refuses what arrives: {refusal}"),
                    file=sys.stderr,
                )
                code = REFUSED
        written.append(text if text.endswith("\n") else text + "\n")
    sys.stdout.write("---\n".join(written))
    return code
