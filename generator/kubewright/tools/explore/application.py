"""The explorer's server: the page, what it asks to be computed, and the way to the cluster.

    GET  /, /page/FILE          the page; needs no key, for it holds nothing
    GET  /explorer/about        what the page has to know: the cluster's address, whether it has to log in
    POST /explorer/QUESTION     computed here of what is sent; see ``QUESTIONS``
    POST /explorer/access       roles and bindings are read from the cluster, with the rights of whoever asks
    POST /explorer/policy       parameters, namespaces and what the authorizer says likewise
    POST /explorer/follow       what happens from now on to objects of several kinds (``following``)
    ANY  /cluster/PATH          goes on to the cluster at PATH

Everything but the page needs the key of the run (``guard``). Nothing is kept from one request to the next, and
nothing has rights of its own: what is read of the cluster is read as the kubeconfig's user, or with the token that
the page sends.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from apimachinery.client.config import ConfigError
from apimachinery.http.messages import Request, Response, StreamResponse, UpgradeResponse
from apimachinery.http.outgoing import CallFailed
from apimachinery.merge.managed_fields import APPLY, EntryError
from apimachinery.merge.owners import Ownership
from apimachinery.meta.selectors import parse_label_selector
from apimachinery.wire.json import DecodeFault, decode
from kubewright.tools.explore import access, page, places
from kubewright.tools.explore.descriptions import descriptions
from kubewright.tools.explore.difference import beside, difference
from kubewright.tools.explore.expressions import evaluate
from kubewright.tools.explore.following import follow
from kubewright.tools.explore.guard import Guard
from kubewright.tools.explore.lines import lines_of, owned_value
from kubewright.tools.explore.trials import try_policy
from kubewright.tools.explore.upstream import ClusterOfRequest, Upstream, failed
from kubewright.tools.owners import as_json
from kubewright.tools.rbac.graph import SubjectError

log = logging.getLogger("kubewright.explorer")
Json = dict[str, Any]
BODY_BYTES = 64 << 20
"""A policy is tried against a thousand objects."""
THREADS = 2


def _lines(asked: Json) -> Json:
    obj = _object(asked.get("object"))
    try:
        ownership = Ownership.of(obj)
    except EntryError:  # of a version to come: the object is shown all the same
        ownership = Ownership({})
    return as_json(ownership, lines_of(obj, ownership))


def _owned(asked: Json) -> Json:
    """What a manager has applied, as the text that an apply begins with; of a new manager the object's names alone."""
    obj = _object(asked.get("object"))
    ownership = Ownership.of(obj)
    applied = [
        number
        for number, each in enumerate(ownership.managers)
        if each.owner.manager == asked.get("manager") and each.owner.operation == APPLY
    ]
    value = owned_value(obj, ownership, applied[0] if applied else -1)
    return {"text": "\n".join(line.text for line in lines_of(value, Ownership({}))) + "\n"}


def _difference(asked: Json) -> Json:
    before, after, sent = (asked.get(name) for name in ("before", "after", "sent"))
    for each in (before, after, sent):
        if each is not None:
            _object(each)
    return {"lines": difference(before, after, sent, str(asked.get("manager") or ""))}


def _beside(asked: Json) -> Json:
    objects = asked.get("objects")
    if not isinstance(objects, list):
        raise ValueError("a list of objects is wanted")
    return {"lines": beside([*map(_object, objects)])}


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise ValueError("an object is wanted")
    return value


def _selected(asked: Json) -> Json:
    selector = parse_label_selector(str(asked.get("selector") or ""))
    labels = asked.get("labels")
    if not isinstance(labels, list):
        raise ValueError("labels: a list of maps is wanted")
    return {"selected": [selector.matches(_object(each)) for each in labels]}


QUESTIONS: dict[str, Callable[[Json], Json]] = {
    "lines": _lines,
    "owned": _owned,
    "read": lambda asked: places.read(str(asked.get("text") or "")),
    "difference": _difference,
    "selected": _selected,
    "beside": _beside,
    "descriptions": descriptions,
    "cel": evaluate,
}
"""Question → what computes the answer, on a thread."""


class ExplorerApplication:
    """Answers; see ``Application`` of ``http.protocol``."""

    def __init__(self, upstream: Upstream, guard: Guard) -> None:
        self.guard = guard
        self._upstream = upstream
        self._threads = ThreadPoolExecutor(THREADS, "explorer")

    async def answer(self, request: Request, oversized: bool) -> Response | StreamResponse | UpgradeResponse:
        is_page = request.path == "/" or request.path.startswith("/page/")
        refusal = self.guard.refusal(request, keyed=not is_page)
        if refusal:
            return plain(403, refusal)
        if oversized:
            return plain(413, f"bodies may have {BODY_BYTES} bytes")
        try:
            if is_page:
                return self._page(request)
            if request.path.startswith("/cluster/"):
                return await self._cluster(request)
            return await self._question(request)
        except (CallFailed, ConfigError) as fault:
            return failed(fault)
        except (DecodeFault, ValueError, SubjectError) as fault:
            return plain(400, str(fault))
        except Exception:
            log.exception("a request failed", extra={"path": request.path})
            return plain(500, "this is a bug of kubewright; see its standard error")

    def _page(self, request: Request) -> Response:
        if request.method != "GET":
            return plain(405, "pages are read with GET")
        found = page.file_response(request.path)
        if found is not None:
            return found
        return plain(404, page.HOW if not page.is_built() else "there is no such file")

    async def _cluster(self, request: Request) -> Response | StreamResponse | UpgradeResponse:
        if request.headers.get("upgrade"):
            return plain(400, "the explorer opens no other protocols")
        answer = await self._upstream.relay(request, request.path.removeprefix("/cluster"))
        # Whatever a server behind the cluster answers, no browser is to take it for a page of this origin.
        answer.headers = (*answer.headers, ("Content-Security-Policy", "default-src 'none'; sandbox"))
        return answer

    async def _question(self, request: Request) -> Response | StreamResponse:
        name = request.path.removeprefix("/explorer/")
        if name == "about" and request.method == "GET":
            config = self._upstream.config
            about = {"server": config.server, "namespace": config.namespace, "login": self._upstream.login}
            return Response(200, json.dumps(about).encode())
        if name not in QUESTIONS and name not in ("access", "policy", "follow"):
            return plain(404, "404 page not found")
        if request.method != "POST":
            return plain(405, "questions are posted")
        if name == "follow":
            return follow(self._upstream, request, _object(decode(request.body)))
        loop = asyncio.get_running_loop()
        if name == "access":
            asked = _object(decode(request.body))
            objects = [
                each
                for path in access.PATHS.values()
                for each in access.typed(await self._upstream.ask(request, path))
            ]
            return await loop.run_in_executor(self._threads, _json, lambda: access.answer(asked, objects))
        # Large objects are read on the thread too.
        body = request.body
        if name == "policy":
            cluster = ClusterOfRequest(self._upstream, request)
            return await loop.run_in_executor(
                self._threads, _json, lambda: try_policy(_object(decode(body)), cluster)
            )
        return await loop.run_in_executor(
            self._threads, _json, lambda: QUESTIONS[name](_object(decode(body)))
        )

    def timed_out(self, request: Request) -> Response:
        return plain(504, "the request took too long")

    def knows(self, request: Request) -> bool:
        return not self.guard.refusal(request, keyed=True)

    def takes_upgrade(self, request: Request) -> bool:
        return False

    async def close(self) -> None:
        """Lets go of the cluster."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._upstream.close()


def _json(compute: Callable[[], Json]) -> Response:
    return Response(200, json.dumps(compute()).encode())


def plain(status: int, text: str) -> Response:
    """A short answer as text."""
    return Response(status, text.encode() + b"\n", "text/plain; charset=utf-8")
