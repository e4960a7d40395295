"""Who may ask the explorer's server: the page that it gave out itself, and nobody else.

The server has the rights of a kubeconfig and listens on loopback, where every program and every page of a browser
can send requests. So each request must

- name the server by a loopback name in ``Host``: a name that an attacker lets point to 127.0.0.1 is refused;
- come from the page itself where the browser says where it comes from (``Origin``, ``Sec-Fetch-Site``);
- but for the files of the page, carry the key of this run in a header. The page has it from the fragment of its
  address, which no browser sends to anybody. A form or a link of another page cannot set headers, so there is no
  cookie to misuse.
"""

from __future__ import annotations

import secrets
from hmac import compare_digest

from apimachinery.http.messages import Request

KEY_HEADER = "kubewright-explorer"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """Knows the key of this run, and at which port it is asked."""

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(24)
        self.hosts: frozenset[str] = frozenset()

    def listens_at(self, port: int) -> None:
        """Says the port. Nothing is let in before."""
        self.hosts = frozenset(f"{name}:{port}" for name in LOOPBACK)

    def refusal(self, request: Request, *, keyed: bool) -> str:
        """Why a request is not answered; empty where it is. ``keyed``: it needs the key."""
        host = request.headers.get("host", "").lower()
        if host not in self.hosts:
            return "this server is asked for by a loopback address alone"
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return "requests of other pages are not answered"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "requests of other pages are not answered"
        if keyed and not compare_digest(request.headers.get(KEY_HEADER, "").encode(), self.key.encode()):
            return "the key of this run is missing or wrong: open the address that the explorer printed"
        return ""
