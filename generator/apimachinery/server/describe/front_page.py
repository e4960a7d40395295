"""The page that a browser gets at ``/``: what this is, and where to look."""

from __future__ import annotations

from apimachinery.http.messages import Request, Response
from apimachinery.meta.errors import ApiError
from apimachinery.meta.version import VERSION

_LINKS = ("/api", "/apis", "/openapi/v3", "/openapi/v2", "/version", "/readyz?verbose", "/metrics")


def wants_page(request: Request) -> bool:
    """Whether a person looks at it: clients of the API do not ask for HTML."""
    return request.headers.get("accept", "").lstrip().startswith("text/html")


def front_page(release: str) -> Response:
    """The page. It holds nothing but links, so it needs no script and no style of others."""
    links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in _LINKS)
    return _page(
        200,
        f"""<p>This is an API server that answers as Kubernetes {release}. Programs talk to it: use
<code>kubectl</code> with the kubeconfig that the server named when it started.</p>
<ul>{links}</ul>""",
    )


def closed_page(error: ApiError) -> Response:
    """The page for a browser that may not see the links: it sends no credentials, and cannot be given any."""
    from html import escape  # not above: it reads a table of all entities, and few browsers come

    return _page(
        error.code,
        f"""<p>This is an API server. Browsers have no credentials for it: use <code>kubectl</code> with the kubeconfig
that the server named when it started, or <code>kubewright explore</code> to look at its objects in a browser.</p>
<p>{escape(error.message)}</p>""",
    )


def _page(status: int, content: str) -> Response:
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kubewright</title>
<meta name="viewport" content="width=device-width">
<style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}</style>
</head><body><h1>Kubewright {VERSION}</h1>
{content}</body></html>
"""
    headers = (("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),)
    return Response(status, text.encode(), "text/html; charset=utf-8", headers)
