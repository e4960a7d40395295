"""The version of this distribution, stated once: the build reads it here, and no program has to look for it."""

from typing import Final

VERSION: Final = "0.1.0"
