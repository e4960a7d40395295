"""Typed clients of ordinary HTTP APIs: what their generated operations are made of.

``Client`` and ``AsyncClient`` send operations, ``HttpError`` is what they raise for answers that are no success.
"""

from apimachinery.openapi.errors import HttpError, UnreadableAnswerError

__all__ = ["HttpError", "UnreadableAnswerError"]
