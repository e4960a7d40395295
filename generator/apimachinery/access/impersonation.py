"""Acting as somebody else: the ``Impersonate-*`` headers and the rights they need (KEP-5284 and the older rule).

A requester who asks to act as a user needs, in this order of trial, one of:

- *constrained*: the verb ``impersonate-on:MODE:VERB`` for the request itself, and ``impersonate:MODE`` for each part of
  the identity. The mode follows from whom he wants to be: ``associated-node`` (a pod's service account as the node it
  runs on), ``arbitrary-node``, ``serviceaccount``, or ``user-info`` for all others.
- *legacy*: the verb ``impersonate`` on users, groups, serviceaccounts, uids and userextras.

The refusal that is answered is that of the first mode that applied.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import unquote

from apimachinery.access.authorization import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    Attributes,
    Verdict,
    refusal,
    service_account_groups,
    service_account_name,
)
from apimachinery.http.messages import Request, User
from apimachinery.meta.errors import ApiError, bad_request
from apimachinery.meta.names import dns1123_subdomain_faults
from apimachinery.meta.printing import go_quote

PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_NODE = "system:node:"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_MANY = 4  # so many groups or extras at once are first asked for as "*"
Ask = Callable[[Attributes], Awaitable[Verdict]]


def wanted_user(request: Request) -> User | None:
    """Whom the headers ask for, None where they ask for nobody. Raises ApiError 400 where they lack the user."""
    name = _first(request, "impersonate-user")
    uid = _first(request, "impersonate-uid")
    groups = tuple(map(header_text, request.values("impersonate-group")))
    extra: dict[str, list[str]] = {}
    for header in request.headers:
        # Keys of extra are percent-encoded, since header names allow few characters.
        if header.startswith(_EXTRA):
            key = unquote(header.removeprefix(_EXTRA))
            extra.setdefault(key, []).extend(map(header_text, request.values(header)))
    user = User(name, uid, groups, tuple((key, tuple(values)) for key, values in extra.items()))
    if name:
        return user
    if uid or groups or extra:
        raise bad_request(f"requested {_go_user(user)} without impersonating a user name")
    return None


def _first(request: Request, header: str) -> str:
    values = request.values(header)
    return header_text(values[0]) if values else ""


def header_text(value: str) -> str:
    """The text of a header's value: names of users are sent as UTF-8, headers are read as Latin-1."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _go_user(user: User) -> str:
    """As Go prints the struct (``%#v``)."""
    groups = "[]string(nil)"
    if user.groups:
        groups = f"[]string{{{', '.join(map(go_quote, user.groups))}}}"
    extra = "map[string][]string(nil)"
    if user.extra:
        pairs = sorted((key, ", ".join(map(go_quote, values))) for key, values in user.extra)
        texts = [f"{go_quote(key)}:[]string{{{values}}}" for key, values in pairs]
        extra = f"map[string][]string{{{', '.join(texts)}}}"
    return f"&user.DefaultInfo{{Name:{go_quote(user.name)}, UID:{go_quote(user.uid)}, Groups:{groups}, Extra:{extra}}}"


async def impersonate(wanted: User, attributes: Attributes, ask: Ask) -> tuple[User, str]:
    """The user that ``attributes.user`` may act as, and by which constrained right (empty for the older one). Raises
    ApiError 403."""
    first: ApiError | None = None
    for mode in (_associated_node, _arbitrary_node, _service_account, _user_info):
        name = mode(wanted, attributes.user)
        if not name:
            continue
        try:
            return await _constrained(name, wanted, attributes, ask), f"impersonate:{name}"
        except ApiError as error:
            first = first or error
    try:
        return await _as(wanted, attributes.user, "impersonate", ask, constrained=False), ""
    except ApiError as error:
        raise first or error from None


def _node_name(username: str) -> str:
    name = username.removeprefix(_NODE)
    return name if name != username and not dns1123_subdomain_faults(name) else ""


def _bare(user: User) -> bool:
    return not (user.uid or user.groups or user.extra)


def _associated_node(wanted: User, requester: User) -> str:
    node = _node_name(wanted.name)
    # A token that is bound to a pod names the node of that pod.
    if not node or not _bare(wanted) or service_account_name(requester.name) is None:
        return ""
    return "associated-node" if dict(requester.extra).get(_NODE_NAME) == (node,) else ""


def _arbitrary_node(wanted: User, requester: User) -> str:
    del requester
    return "arbitrary-node" if _bare(wanted) and _node_name(wanted.name) else ""


def _service_account(wanted: User, requester: User) -> str:
    del requester
    return "serviceaccount" if _bare(wanted) and service_account_name(wanted.name) else ""


def _user_info(wanted: User, requester: User) -> str:
    del requester
    return "" if _node_name(wanted.name) or service_account_name(wanted.name) else "user-info"


async def _constrained(mode: str, wanted: User, attributes: Attributes, ask: Ask) -> User:
    requester = attributes.user
    if mode == "associated-node":
        # The right holds for whichever node the pod runs on, so what tells pods apart is not shown to authorizers.
        keys = tuple(sorted(key for key, _ in requester.extra))
        requester = replace(requester, extra=(("authentication.kubernetes.io/associated-node-keys", keys),))
    on = replace(attributes, user=requester, verb=f"impersonate-on:{mode}:{attributes.verb}")
    await _check(on, ask)
    return await _as(wanted, requester, f"impersonate:{mode}", ask, constrained=True)


async def _check(attributes: Attributes, ask: Ask) -> None:
    verdict = await ask(attributes)
    if not verdict.allowed:
        text = f"{verdict.error}: {verdict.reason}" if verdict.error and verdict.reason else ""
        raise refusal(attributes, text or verdict.error or verdict.reason)


async def _as(wanted: User, requester: User, verb: str, ask: Ask, *, constrained: bool) -> User:
    group, version = ("authentication.k8s.io", "v1") if constrained else ("", "v1")

    def part(resource: str, name: str, of_group: str = group) -> Attributes:
        return Attributes(requester, verb, "", of_group, version, resource, "", name)

    groups = wanted.groups
    username = part("users", wanted.name)
    node = _node_name(wanted.name)
    account = service_account_name(wanted.name)
    if constrained and node:
        # An associated node is not named: the right holds for whichever node the pod runs on.
        username = part("nodes", "*" if verb.endswith(":associated-node") else node)
        groups = ("system:nodes",)
    elif account is not None:
        username = part("serviceaccounts", account[1])
        username.namespace = account[0]
        # A service account always has its groups, unless others were asked for.
        groups = groups or service_account_groups(account[0])
    await _check(username, ask)
    if wanted.uid:
        await _check(part("uids", wanted.uid, "authentication.k8s.io"), ask)
    if wanted.groups:
        await _check_groups(wanted.groups, part, ask, constrained)
    if wanted.extra:
        await _check_extra(wanted.extra, part, ask, constrained)
    if wanted.name == ANONYMOUS:
        groups = groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    elif UNAUTHENTICATED not in groups and AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return replace(wanted, groups=groups)


Part = Callable[..., Attributes]


async def _allowed(attributes: Attributes, ask: Ask) -> bool:
    return (await ask(attributes)).allowed


async def _check_groups(groups: tuple[str, ...], part: Part, ask: Ask, constrained: bool) -> None:
    if constrained:
        # The older rule allows both, for those who were granted it long ago.
        if "" in groups:
            raise refusal(part("groups", ""), "impersonating the empty string group is not allowed")
        if MASTERS in groups:
            raise refusal(part("groups", MASTERS), "impersonating the system:masters group is not allowed")
        # One question instead of many, where a wildcard was granted.
        if len(groups) >= _MANY and await _allowed(part("groups", "*"), ask):
            return
    for group in groups:
        await _check(part("groups", group), ask)


async def _check_extra(
    extra: tuple[tuple[str, tuple[str, ...]], ...], part: Part, ask: Ask, constrained: bool
) -> None:
    def of(key: str, value: str) -> Attributes:
        attributes = part("userextras", value, "authentication.k8s.io")
        attributes.subresource = key
        return attributes

    if constrained:
        for key, values in extra:
            if fault := _extra_fault(key, values):
                raise refusal(of("", ""), fault)
        many = len(extra) >= _MANY or sum(len(values) for _, values in extra) >= _MANY
        if many and await _allowed(of("*", "*"), ask):
            return
    for key, values in extra:
        for value in values:
            await _check(of(key, value), ask)


def _extra_fault(key: str, values: tuple[str, ...]) -> str:
    if not key:
        return "impersonating the empty string key in extra is not allowed"
    domain, slash, path = key.partition("/")
    if not slash or not path or dns1123_subdomain_faults(domain):
        texts = [
            f'extra[key]: Invalid value: {go_quote(key)}: must be a domain-prefixed path (such as "acme.io/foo")'
        ]
        return f"impersonating an invalid key in extra is not allowed: {texts[0]}"
    if not values:
        return "impersonating empty values in extra is not allowed"
    if "" in values:
        return "impersonating the empty string value in extra is not allowed"
    return ""
