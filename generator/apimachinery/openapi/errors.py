"""What clients raise for answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHOWN = 300


class HttpError(Exception):
    """An answer that is no success. ``problem`` is its body, of the type that the API declares for it (plain JSON or
    text where it declares none); ``content`` the same as bytes. Header names are in lower case."""

    def __init__(
        self, request: str, status: int, headers: Mapping[str, str], content: bytes, problem: Any
    ) -> None:
        text = " ".join(content[: 2 * _SHOWN].decode("utf-8", "replace").split())
        super().__init__(f"{request}: {status}" + (f": {text[:_SHOWN]}" if text else ""))
        self.request = request
        self.status = status
        self.headers = headers
        self.content = content
        self.problem = problem


class UnreadableAnswerError(HttpError):
    """A success whose body is not what the API declares; ``reason`` says why."""

    def __init__(
        self, request: str, status: int, headers: Mapping[str, str], content: bytes, reason: str
    ) -> None:
        super().__init__(request, status, headers, content, None)
        self.reason = reason
        self.args = (f"{request}: {status}, whose body cannot be read: {reason}",)
