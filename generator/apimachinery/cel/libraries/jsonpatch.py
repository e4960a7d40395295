"""jsonpatch.escapeKey, for the paths of a MutatingAdmissionPolicy's JSON patch."""

from __future__ import annotations

from apimachinery.cel.libraries.declarations import Library


def jsonpatch() -> Library:
    """The library."""
    lib = Library("jsonpatch")
    lib.overload(
        "jsonpatch.escapeKey",
        "string_jsonpatch_escapeKey_string",
        "(string) string",
        lambda key: key.replace("~", "~0").replace("/", "~1"),
    )
    return lib
