"""The version of this distribution, stated once: the build reads it here, and no program has to look for it.
Its addresses are placeholders until it is published; `tests/packaging/test_addresses.py` names all that repeat them."""

from typing import Final

VERSION: Final = "0.1.0"
REPOSITORY: Final = "https://github.com/example/kubewright"
SITE: Final = "https://example.github.io/kubewright"
