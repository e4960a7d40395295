"""The program ``kube-apiserver`` of the assets.

It is started by its path and without the site-packages: envtest asks for ``--help`` before each start. A server starts
from the warm process that ``KUBEWRIGHT_WARM`` names where there is one, and in this process otherwise.
"""

from __future__ import annotations

import os
import sys

WARM = "KUBEWRIGHT_WARM"
"""The variable with the socket of the warm process."""
REFUSED = 1


def main(words: list[str]) -> int:
    """Serves as the flags say. Returns the exit code: 1 for what kube-apiserver refuses."""
    if any(word in ("-h", "--help") for word in words):
        from kubewright.tools.envtest.flags import make_parser, usage

        print(usage(make_parser()))
        return 0
    if any(word == "--version" or word.startswith("--version=") for word in words):
        from kubewright.tools.arguments.several import RELEASE

        print(f"Kubernetes v{RELEASE}.0")
        return 0
    if path := os.environ.get(WARM):
        from kubewright.tools.envtest.handing import hand_over

        code = hand_over(path, words)
        if code is not None:
            return code
    import gc
    import site

    from kubewright.tools.envtest.image import use

    # What is read at a start stays; the server turns the collector on when it is ready.
    gc.disable()
    site.main()
    use()
    try:
        return serve(words)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in ("kubewright", "apimachinery"):
            raise
        hint = "pip install 'kubewright[server]'"
        print(f"Error: the module {missing.name!r} is not installed; {hint}", file=sys.stderr)
        return REFUSED


def serve(words: list[str]) -> int:
    """Serves in this process. Returns the exit code."""
    from kubewright.tools.envtest.etcd import VERSION
    from kubewright.tools.envtest.flags import FlagError, is_ours, read

    try:
        options = read(words)
    except FlagError as fault:
        print(f"Error: {fault}", file=sys.stderr)
        return REFUSED
    if options.etcd_servers and is_ours(options.etcd_servers, VERSION):
        options.storage, options.etcd_servers = "memory://", ""
    from kubewright.tools.serve.command import run

    if options.cert_dir is not None or options.storage != "memory://":
        return REFUSED if run(options) else 0
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="kubewright-") as folder:
        options.cert_dir = Path(folder)
        return REFUSED if run(options) else 0


if __name__ == "__main__":
    # The folder of this file would hide modules of the standard library behind those that are next to it.
    sys.path[:1] = []
    sys.exit(main(sys.argv[1:]))
