"""The options of ``pods/NAME/log``: which container's log is asked for, and which lines of it.

They are read before the pod, as kube-apiserver does; its words and the order of its faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import bad_request
from apimachinery.meta.field_errors import FieldError, forbidden, invalid, invalid_value
from apimachinery.meta.times import SECONDS_LAYOUT, parse_fault
from apimachinery.server.request.list_options import parse_int64


def check_log_options(query: Mapping[str, Sequence[str]], pod: str) -> None:
    """Raises ApiError 400 for an option that cannot be read, 422 for one that is out of range."""
    seconds, since = _number(query, "sinceSeconds"), next(iter(query.get("sinceTime", ())), "")
    if since and (fault := parse_fault(since, SECONDS_LAYOUT)):
        raise bad_request(fault)
    tail, limit = _number(query, "tailLines"), _number(query, "limitBytes")
    if faults := list(_faults(seconds, since, tail, limit, "stream" in query)):
        raise invalid("PodLogOptions", "", pod, faults)


def _faults(
    seconds: int | None, since: str, tail: int | None, limit: int | None, has_stream: bool
) -> Iterator[FieldError]:
    if tail is not None and tail < 0:
        yield invalid_value("tailLines", tail, "must be greater than or equal to 0")
    if limit is not None and limit < 1:
        yield invalid_value("limitBytes", limit, "must be greater than 0")
    if seconds is not None and since:
        yield forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif seconds is not None and seconds < 1:
        yield invalid_value("sinceSeconds", seconds, "must be greater than 0")
    if has_stream:  # needs the feature gate PodLogsQuerySplitStreams
        yield forbidden("stream", "may not be specified")


def _number(query: Mapping[str, Sequence[str]], name: str) -> int | None:
    return parse_int64(query[name][0]) if query.get(name) else None


def container_of(pod: Json, asked: str) -> str:
    """The container that is meant. Raises ApiError 400 where there is no such one, or several and none is named."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    names, first, temporary = (
        [entry["name"] for entry in spec.get(key) or []]
        for key in ("containers", "initContainers", "ephemeralContainers")
    )
    if asked:
        if asked not in names + first + temporary:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(names) > 1:
        several = " ".join(first + names + temporary)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{several}]")
    return str(names[0])
