"""The code of a start in one file: every module that a server reads, and the methods of their dataclasses.

Looking for modules in folders and compiling methods from text takes half of the time until a server is ready, and
several times that where Python keeps no bytecode (``PYTHONDONTWRITEBYTECODE``, folders that cannot be written to).
A module whose source changed since, and any that the image does not have, is read as ever.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import marshal
import mmap
import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import Any

FLAG = "kubewright-image"
"""The ``-X`` option that names the image."""
KIND = f"kubewright image {sys.implementation.cache_tag} {sys.hexversion:x} {sys.flags.optimize}".encode()
"""What an image of this Python begins with."""
SIZE_BYTES = 8


class _Loader(SourceFileLoader):
    """Loads a module whose code has been read already."""

    def __init__(self, name: str, path: str, code: bytes) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:
        found: CodeType = marshal.loads(self._code)
        return found


class _Finder:
    """Finds the modules of an image."""

    def __init__(self, entries: dict[str, tuple[str, bool, int, int, int, int]], code: memoryview) -> None:
        self._entries = entries
        self._code = code

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is; None where it is not in the image as its source is now."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        source, is_package, changed, size, place, length = entry
        try:
            now = os.stat(source)  # noqa: PTH116 - pathlib is one of the modules
        except OSError:
            return None
        if (now.st_mtime_ns, now.st_size) != (changed, size):
            return None
        folders = [source.rpartition("/")[0]] if is_package else None
        loader = _Loader(name, source, self._code[place : place + length])  # type: ignore[arg-type]
        return spec_from_file_location(name, source, loader=loader, submodule_search_locations=folders)


def use() -> None:
    """Takes modules from the image that the interpreter was started with, if that is of this Python."""
    path = sys._xoptions.get(FLAG)
    if not isinstance(path, str):
        return
    with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
        with open(path, "rb") as file:  # noqa: PTH123
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if data[: len(KIND)] != KIND:
            return
        start = len(KIND) + SIZE_BYTES
        end = start + int.from_bytes(data[len(KIND) : start], "little")
        entries, texts = marshal.loads(data[start:end])
        sys.meta_path.insert(0, _Finder(entries, memoryview(data)[end:]))
        _take_methods(texts)


def _take_methods(texts: dict[str, CodeType]) -> None:
    """Gives dataclasses their methods from compiled code; ``dataclasses`` writes each as text and executes that."""
    import dataclasses

    def execute(text: str, *spaces: Any) -> None:
        builtins.exec(texts.get(text, text), *spaces)  # noqa: S102

    vars(dataclasses)["exec"] = execute


class _UntilReady(io.StringIO):
    """Asks this process to end when it says that it serves: it has read by then what every server reads."""

    def write(self, text: str) -> int:
        if "serving on" in text:
            os.kill(os.getpid(), signal.SIGTERM)
        return len(text)


def write(path: str) -> int:
    """Writes the image of what a start reads; for a process of its own. Returns the exit code."""
    import dataclasses

    texts: dict[str, CodeType] = {}

    def execute(text: str, *spaces: Any) -> None:
        if text not in texts:
            texts[text] = compile(text, "<string>", "exec", dont_inherit=True)
        builtins.exec(texts[text], *spaces)  # noqa: S102

    vars(dataclasses)["exec"] = execute
    from kubewright.tools.envtest.kube_apiserver import serve
    from kubewright.tools.envtest.warm import preload

    preload()
    with contextlib.redirect_stdout(_UntilReady()):
        if code := serve(["--bind-address=127.0.0.1", "--secure-port=0", "--controllers=all"]):
            return code
    entries: dict[str, tuple[str, bool, int, int, int, int]] = {}
    parts: list[bytes] = []
    place = 0
    for name, module in sorted(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.name != name:
            continue
        source = spec.loader.path
        now = os.stat(source)  # noqa: PTH116
        part = marshal.dumps(spec.loader.get_code(name))
        is_package = spec.submodule_search_locations is not None
        entries[name] = (source, is_package, now.st_mtime_ns, now.st_size, place, len(part))
        parts.append(part)
        place += len(part)
    head = marshal.dumps((entries, texts))
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"".join([KIND, len(head).to_bytes(SIZE_BYTES, "little"), head, *parts]))
    return 0
