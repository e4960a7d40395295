"""The options of list and watch requests: read from the query, then refused in senseless combinations.

Rules (meta/v1 ListOptions, KEP-1904, KEP-3157). Reading fails with 400 in Go's words for numbers; a boolean is
true unless it says ``false`` or ``0``. The combinations are then judged together, with 422 and every fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apimachinery.meta.errors import ApiError, Cause

MAX_UINT64 = (1 << 64) - 1
MAX_INT64 = (1 << 63) - 1
EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """ListOptions except for the selectors. ``None`` means that the query does not say."""

    watch: bool = False
    allow_bookmarks: bool = False
    resource_version: str = ""
    match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


PLAIN = ListQuery()


def read_list_options(query: Mapping[str, Sequence[str]], *, watch: bool = False) -> ListQuery:
    """The options of a query. ``watch`` is set where the path (``/watch/…``) asks for one.

    Raises ApiError 400 for what cannot be read; combinations are ``check_list_options``' matter.
    """
    # Nearly all gets and many lists have no query at all.
    if not query:
        return ListQuery(watch=True) if watch else PLAIN

    def text(name: str) -> str:
        values = query.get(name)
        return values[0] if values else ""

    def boolean(name: str) -> bool:
        # Go's conversion takes any other text, the empty one too, for true.
        return name in query and text(name).lower() not in ("false", "0")

    def number(name: str) -> int | None:
        return parse_int64(text(name)) if name in query else None

    watches = watch or boolean("watch")
    timeout = number("timeoutSeconds")
    limit = number("limit") or 0
    return ListQuery(
        watch=watches,
        allow_bookmarks=boolean("allowWatchBookmarks"),
        resource_version=text("resourceVersion"),
        match=text("resourceVersionMatch"),
        timeout_seconds=timeout,
        # A negative limit counts as none, as in kube-apiserver.
        limit=max(limit, 0),
        continue_token=text("continue"),
        send_initial_events=boolean("sendInitialEvents") if "sendInitialEvents" in query else None,
    )


def check_list_options(options: ListQuery) -> None:
    """Raises ApiError 422 for combinations that are forbidden."""
    # By identity: a query without options costs nothing here.
    if options is PLAIN:
        return
    if causes := _watch_causes(options) if options.watch else _list_causes(options):
        raise _invalid(causes)


def parse_int64(text: str) -> int:
    """A decimal of 64 bits with sign. Raises ApiError 400 in the words of Go's ``strconv.ParseInt``."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ApiError(
            400, "BadRequest", f"strconv.ParseInt: parsing {_quote(text)}: invalid syntax", has_details=False
        )
    # Python would convert any number of digits, slowly.
    number = int(text) if len(digits) < 40 else MAX_INT64 + 1
    if not -MAX_INT64 - 1 <= number <= MAX_INT64:
        raise ApiError(
            400,
            "BadRequest",
            f"strconv.ParseInt: parsing {_quote(text)}: value out of range",
            has_details=False,
        )
    return number


class BadRevision(ValueError):
    """A resourceVersion that is not a number; its text is kube-apiserver's."""


def parse_revision(text: str) -> int:
    """A resourceVersion as a number, 0 where it is empty. Raises BadRevision."""
    if not text:
        return 0
    fault = ""
    number = 0
    if not (text.isascii() and text.isdigit()):
        fault = "invalid syntax"
    elif len(text) > 40 or (number := int(text)) > MAX_UINT64:
        fault = "value out of range"
    if fault:
        raise BadRevision(
            f"resourceVersion: Invalid value: {_quote(text)}: "
            f"strconv.ParseUint: parsing {_quote(text)}: {fault}"
        )
    return number


_MATCH = "resourceVersionMatch"


def _forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def _unsupported(value: str, *supported: str) -> Cause:
    values = ", ".join(_quote(name) for name in supported)
    return Cause(
        "FieldValueNotSupported", f"Unsupported value: {_quote(value)}: supported values: {values}", _MATCH
    )


def _list_causes(options: ListQuery) -> list[Cause]:
    causes: list[Cause] = []
    if options.match:
        if not options.resource_version:
            causes.append(
                _forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if options.continue_token:
            causes.append(_forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in (EXACT, NOT_OLDER_THAN):
            causes.append(_unsupported(options.match, EXACT, NOT_OLDER_THAN, ""))
        if options.match == EXACT and options.resource_version == "0":
            causes.append(
                _forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if options.send_initial_events is not None:
        causes.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _watch_causes(options: ListQuery) -> list[Cause]:
    causes: list[Cause] = []
    if options.send_initial_events is not None and options.match != NOT_OLDER_THAN:
        causes.append(
            _forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
    if options.match:
        if options.send_initial_events is None:
            causes.append(
                _forbidden(
                    _MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                )
            )
        if options.match != NOT_OLDER_THAN:
            causes.append(_unsupported(options.match, NOT_OLDER_THAN))
    # A watch from the present state is given a resourceVersionMatch where it has none (KEP-3157).
    from_now = options.send_initial_events is None and options.resource_version in ("", "0")
    if options.continue_token and (options.match or from_now):
        causes.append(_forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided"))
    return causes


def _invalid(causes: list[Cause]) -> ApiError:
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return ApiError(
        422,
        "Invalid",
        f'ListOptions.meta.k8s.io "" is invalid: {text}',
        group="meta.k8s.io",
        kind="ListOptions",
        causes=tuple(causes),
    )


def _quote(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
