"""How fast a client may ask (``QPS`` and ``Burst`` of rest.Config), and how much it reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client allows itself. ``qps`` requests a second after a first ``burst``, 0 for no such limit;
    ``connections`` bounds how many calls of an ``AsyncClient`` are on their way at once (others queue; watches and
    logs are not counted), 0 for no bound. Of an answer ``answer_bytes`` are read, of a line of a watch or log
    ``line_bytes``, unpacked; what is larger raises ``AnswerTooLarge``."""

    qps: float = 0.0
    burst: int = 10
    connections: int = 32
    answer_bytes: int = 1 << 30
    line_bytes: int = 1 << 26
