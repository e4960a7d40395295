"""Calls that the server itself makes, to webhooks and to issuers for their keys: the one file here with an HTTP client.

Answers are bounded in size and time; redirects are not followed, so an answer comes from whom the options name.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ANSWER_BYTES = 1 << 20


class CallFailed(Exception):
    """No usable answer; the text says which address, and why."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to call: ``headers`` are sent with every call (credentials), ``tls`` says whom to trust."""

    url: str
    tls: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 10.0


async def call_json(endpoint: Endpoint, body: Any = None) -> Any:
    """The JSON that an endpoint answers, to a POST where there is a body. Raises CallFailed."""
    import aiohttp

    method = "GET" if body is None else "POST"
    headers = {"Accept": "application/json", **endpoint.headers}
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    timeout = aiohttp.ClientTimeout(total=endpoint.seconds)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.request(
                method,
                endpoint.url,
                data=data,
                headers=headers,
                ssl=endpoint.tls if endpoint.tls is not None else True,
                allow_redirects=False,
            ) as answer,
        ):
            content = await answer.content.read(ANSWER_BYTES + 1)
            while not answer.content.at_eof() and len(content) <= ANSWER_BYTES:
                content += await answer.content.read(ANSWER_BYTES + 1 - len(content))
            status = answer.status
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as fault:
        raise CallFailed(f"{endpoint.url}: {fault or type(fault).__name__}") from None
    if not 200 <= status < 300:
        raise CallFailed(f"{endpoint.url}: answered {status}")
    if len(content) > ANSWER_BYTES:
        raise CallFailed(f"{endpoint.url}: answered more than {ANSWER_BYTES} bytes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise CallFailed(f"{endpoint.url}: did not answer JSON") from None
