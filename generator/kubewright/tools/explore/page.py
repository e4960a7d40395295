"""The files of the page, as ``make explorer`` builds them, and the headers that hold them in.

The policy lets nothing in but the page's own files: no inline script, no other origin, no frame around it, and no
text that becomes markup (Trusted Types). The editor adds a style sheet, which carries the nonce of the answer.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from apimachinery.http.messages import Response

BUILT = Path(__file__).with_name("page")
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".txt": "text/plain"}
HOW = "the page is not built: in a checkout run `make explorer` (it needs node and npm), or install the wheel"
_NONCE = b"NONCE"
_FIXED = (
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
)


def is_built() -> bool:
    """Whether there is a page."""
    return (BUILT / "index.html").is_file()


def file_response(path: str) -> Response | None:
    """A file of the page; None where there is none of this path."""
    name = "index.html" if path == "/" else path.removeprefix("/page/")
    if "/" in name or name.startswith(".") or not (BUILT / name).is_file():
        return None
    content = (BUILT / name).read_bytes()
    headers = [*_FIXED, ("Cache-Control", "no-store" if path == "/" else "no-cache")]
    if path == "/":
        nonce = secrets.token_urlsafe(16)
        content = content.replace(_NONCE, nonce.encode())
        headers.append(("Content-Security-Policy", policy(nonce)))
    kind = TYPES.get(Path(name).suffix, "application/octet-stream")
    return Response(200, content, f"{kind}; charset=utf-8", tuple(headers))


def policy(nonce: str) -> str:
    """What the page may do."""
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        f"style-src 'self' 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
