"""English of names: what one item of a list is called, and several objects of a kind."""

from __future__ import annotations

import re
from functools import cache

_LAST_WORD = re.compile(r"(.*?)([A-Z]?[a-z]+|[A-Z]{2,}s?|[0-9]+)$")
_SAME = frozenset(
    {"status", "series", "species", "news", "metrics", "alias", "bus", "canvas", "dns", "tls", "https"}
)
_SINGULAR = {
    "indices": "index",
    "matrices": "matrix",
    "vertices": "vertex",
    "criteria": "criterion",
    "children": "child",
    "people": "person",
    "data": "data",
    "aliases": "alias",
    "statuses": "status",
    "caches": "cache",
    "leases": "lease",
    "releases": "release",
    "databases": "database",
    "uses": "use",
    "causes": "cause",
    "houses": "house",
    "responses": "response",
    "movies": "movie",
    "cookies": "cookie",
    "metrics": "metric",
}


@cache
def singular(name: str) -> str:
    """``tags`` as ``tag``, ``ipAddresses`` as ``ipAddress``, ``podIPs`` as ``podIP``; what is not a plural stays."""
    match = _LAST_WORD.match(name)
    if match is None:
        return name
    head, word = match.groups()
    lower = word.lower()
    if lower in _SINGULAR:
        found = _SINGULAR[lower]
        return head + (found[0].upper() + found[1:] if word[0].isupper() else found)
    if lower in _SAME or (len(word) < 4 and not word[:-1].isupper()):
        return name
    if word[-1:] == "s" and word[:-1].isupper():  # an acronym: podIPs
        return head + word[:-1]
    if lower.endswith("ies") and len(word) > 4:
        return head + word[:-3] + "y"
    if lower.endswith(("sses", "shes", "ches", "xes", "zes")):
        return head + word[:-2]
    if lower.endswith(("ss", "us", "is", "ous")) or not lower.endswith("s"):
        return name
    return head + word[:-1]


def plural_of(kind: str) -> str:
    """The plural of a kind that nobody says, in lower case, by the rules that English mostly keeps to."""
    word = kind.lower()
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}s"
