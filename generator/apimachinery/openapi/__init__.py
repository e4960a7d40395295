"""Typed clients of ordinary HTTP APIs: what their generated operations are made of.

``Client`` and ``AsyncClient`` send operations, ``HttpError`` is what they raise for answers that are no success;
``RetryPolicy`` says which failed calls are sent again, ``ServerSentEvent`` is a part of an answer that goes on;
``decode`` reads JSON as a generated model, ``encode`` writes one.
"""

from apimachinery.client.retry import RetryPolicy
from apimachinery.openapi.encoding import encode
from apimachinery.openapi.errors import HttpError, UnreadableAnswerError
from apimachinery.openapi.streams import ServerSentEvent
from apimachinery.typed.unions import decode

__all__ = ["HttpError", "RetryPolicy", "ServerSentEvent", "UnreadableAnswerError", "decode", "encode"]
