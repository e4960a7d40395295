"""The CEL specification's conformance vectors: all hold but those listed with their reasons."""

from __future__ import annotations

import json

from tests.cel import conformance
from tests.cel.recordings import SHARED, needs_shared

pytestmark = needs_shared

# (file, section, name or "" for the whole section) → why it does not hold
KNOWN = {
    ("dynamic", "value_null", "literal"): "protobuf messages are not built",
    ("proto2", "literal_singular", ""): "protobuf messages are not built",
    ("type_deduction", "flexible_type_parameter_assignment", ""): "types of protobuf messages are not known",
    ("type_deduction", "wrappers", ""): "types of protobuf messages are not known",
    ("network_ext", "ipv4", "ipv4_equals_ipv6"): "Kubernetes refuses IPv4 addresses mapped into IPv6",
    ("network_ext", "ipv4", "ipv4_not_equals_ipv6"): "Kubernetes refuses IPv4 addresses mapped into IPv6",
    ("optionals", "optionals", "map_null_entry_no_such_key"): "kube-apiserver finds nothing in null",
    ("parse", "bytes_literals", "triple_single_quoted_unescaped_punctuation"): "the vector lost a backslash",
    ("parse", "bytes_literals", "triple_double_quoted_unescaped_punctuation"): "the vector lost a backslash",
    ("string_ext", "format", "map support (all key types)"): "1 and true are one key of a map literal",
    ("timestamps", "duration_converters", "get_milliseconds"): "kube-apiserver gives the whole duration",
}


def test_the_vectors_hold() -> None:
    vectors = json.loads((SHARED / "data/cel-spec/vectors.json").read_text())
    failed = {}
    for vector in vectors:
        result = conformance.run(vector)
        if result:
            failed[(vector["file"], vector["section"], vector["name"])] = result
    unexpected = {
        key: text for key, text in failed.items() if key not in KNOWN and (*key[:2], "") not in KNOWN
    }
    assert unexpected == {}
    assert len(vectors) - len(failed) >= 1735
    stale = [key for key in KNOWN if not any(f[: len(key)] == key or f[:2] == key[:2] for f in failed)]
    assert stale == []
