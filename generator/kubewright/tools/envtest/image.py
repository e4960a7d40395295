"""The code of a start in one file: every module that a server reads, and the methods of their dataclasses.

Looking for modules in folders and compiling methods from text takes half of the time until a server is ready, and
several times that where Python keeps no bytecode (``PYTHONDONTWRITEBYTECODE``, folders that cannot be written to).
A module whose source changed since, and any that the image does not have, is read as ever.

The programs of envtest name an image, which was written with them. ``kubewright serve`` and ``testserver`` keep one
next to Python's bytecode (``KeptImage``).
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
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import cache_from_source, spec_from_file_location
from types import CodeType, ModuleType
from typing import Any

FLAG = "kubewright-image"
"""The ``-X`` option that names the image."""
KIND = f"kubewright image {sys.implementation.cache_tag} {sys.hexversion:x} {sys.flags.optimize}".encode()
"""What an image of this Python begins with."""
SIZE_BYTES = 8
_State = tuple[Any, ...]
"""Where modules were looked for when an image was written."""


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
        self.is_old = False
        """Whether the source of a module that was asked for has changed since."""

    def names(self) -> set[str]:
        """Modules and packages that are in no other."""
        return {name for name in self._entries if "." not in name}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is; None where it is not in the image as its source is now."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        was_old, self.is_old = self.is_old, True
        source, is_package, changed, size, place, length = entry
        try:
            now = os.stat(source)  # noqa: PTH116 - pathlib is one of the modules
        except OSError:
            return None
        if (now.st_mtime_ns, now.st_size) != (changed, size):
            return None
        self.is_old = was_old
        folders = [source.rpartition("/")[0]] if is_package else None
        loader = _Loader(name, source, self._code[place : place + length])  # type: ignore[arg-type]
        return spec_from_file_location(name, source, loader=loader, submodule_search_locations=folders)


def use() -> None:
    """Takes modules from the image that the interpreter was started with, if that is of this Python."""
    path = sys._xoptions.get(FLAG)
    if isinstance(path, str) and (found := _read(path)) is not None:
        _state, finder, texts = found
        sys.meta_path.insert(0, finder)
        _take_methods(texts)


def _read(path: str) -> tuple[_State, _Finder, dict[str, CodeType]] | None:
    """An image; None where there is none of this Python."""
    with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
        with open(path, "rb") as file:  # noqa: PTH123
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if data[: len(KIND)] == KIND:
            start = len(KIND) + SIZE_BYTES
            end = start + int.from_bytes(data[len(KIND) : start], "little")
            state, entries, texts = marshal.loads(data[start:end])
            return state, _Finder(entries, memoryview(data)[end:]), texts
    return None


def _take_methods(texts: dict[str, CodeType]) -> None:
    """Gives dataclasses their methods from compiled code; ``dataclasses`` writes each as text and executes that.

    Keeps the code of texts that are not among them.
    """
    import dataclasses

    def execute(text: str, *spaces: Any) -> None:
        if text not in texts:
            texts[text] = compile(text, "<string>", "exec", dont_inherit=True)
        builtins.exec(texts[text], *spaces)  # noqa: S102

    vars(dataclasses)["exec"] = execute


class _UntilReady(io.StringIO):
    """Asks this process to end when it says that it serves: it has read by then what every server reads."""

    def write(self, text: str) -> int:
        if "serving on" in text:
            os.kill(os.getpid(), signal.SIGTERM)
        return len(text)


def write(path: str) -> int:
    """Writes the image of what a start reads; for a process of its own. Returns the exit code."""
    texts: dict[str, CodeType] = {}
    _take_methods(texts)
    from kubewright.tools.envtest.kube_apiserver import serve
    from kubewright.tools.envtest.warm import preload

    preload()
    with contextlib.redirect_stdout(_UntilReady()):
        if code := serve(["--bind-address=127.0.0.1", "--secure-port=0", "--controllers=all"]):
            return code
    _write(path, (), texts, lambda source: True)
    return 0


def _write(path: str, state: _State, texts: dict[str, CodeType], is_wanted: Callable[[str], bool]) -> None:
    """Writes the code of the modules that are loaded, as their sources are now. Raises OSError, SyntaxError."""
    entries: dict[str, tuple[str, bool, int, int, int, int]] = {}
    parts: list[bytes] = []
    place = 0
    for name, module in sorted(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.name != name:
            continue
        source = spec.loader.path
        if not is_wanted(source):
            continue
        # Not of the loader that read it: the source may have changed since.
        before, code, now = os.stat(source), SourceFileLoader(name, source).get_code(name), os.stat(source)  # noqa: PTH116
        if (before.st_mtime_ns, before.st_size) != (now.st_mtime_ns, now.st_size):
            continue
        part = marshal.dumps(code)
        is_package = spec.submodule_search_locations is not None
        entries[name] = (source, is_package, now.st_mtime_ns, now.st_size, place, len(part))
        parts.append(part)
        place += len(part)
    head = marshal.dumps((state, entries, texts))
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"".join([KIND, len(head).to_bytes(SIZE_BYTES, "little"), head, *parts]))


class KeptImage:
    """The image of one installation, in the folder where Python keeps the bytecode of this module.

    It is for one list of folders that modules are looked for in, and one state of them. The folder that a program runs
    in is not one of them: its modules are in no image, and where they would hide others, none is used.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        first = sys.path[0] if sys.path else ""
        self._here = os.getcwd() if not first or first == os.getcwd() else ""  # noqa: PTH109
        self._folders = [
            folder for folder in (sys.path[1:] if self._here else sys.path) if folder != self._here
        ]
        self._state = (sys.prefix, *((folder, _changed(folder)) for folder in self._folders))
        self._texts: dict[str, CodeType] = {}
        self._finder: _Finder | None = None
        self._is_ours = True

    def use(self) -> None:
        """Takes modules from the image, if modules are looked for where they were when it was written."""
        found = _read(self.path)
        if found is not None and found[0] == self._state:
            self._is_ours = not (self._here and _hidden(found[1].names()))
            if self._is_ours:
                _, self._finder, self._texts = found
                sys.meta_path.insert(0, self._finder)
        _take_methods(self._texts)

    def renew(self) -> None:
        """Writes the image if there is none of what is installed now, where Python may write bytecode.

        It is for the end of a process that has started a server: it takes some tenths of a second.
        """
        if sys.dont_write_bytecode or not self._is_ours or not (self._finder is None or self._finder.is_old):
            return
        part = f"{self.path}.{os.getpid()}"
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            try:
                _write(part, self._state, self._texts, self._is_installed)
                os.replace(part, self.path)  # noqa: PTH105
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(part)  # noqa: PTH108

    def _is_installed(self, source: str) -> bool:
        """Whether a module is not one of the folder that this program runs in, where the next one may not run."""
        return not (self._here and source.startswith(self._here + os.sep)) and source.startswith(
            tuple(folder + os.sep for folder in self._folders)
        )


_kept: KeptImage | None = None


def use_kept(command: str) -> None:
    """Takes modules from the image of an earlier start here by the same command: another reads others."""
    global _kept
    _kept = KeptImage(f"{cache_from_source(__file__).rpartition('.')[0]}-{command}-kept")
    _kept.use()


def renew_kept() -> None:
    """Writes that image where it was looked for and is not as it should be."""
    if _kept is not None:
        _kept.renew()


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def _hidden(names: set[str]) -> bool:
    """Whether the folder that a program runs in, which comes first, has modules of these names."""
    try:
        return any(name.partition(".")[0] in names for name in os.listdir())  # noqa: PTH208
    except OSError:
        return True
