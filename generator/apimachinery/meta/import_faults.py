"""What is wrong with a module that people write (``hooks.py``) and that cannot be imported."""

from __future__ import annotations

import importlib.util
import traceback


def describe_import_fault(module: str, fault: BaseException) -> str:
    """``FILE:LINE: SyntaxError: …``: the line of the module that the fault came by, and the fault."""
    spec = importlib.util.find_spec(module)
    file = (spec.origin if spec is not None else None) or module
    line: int | None = None
    if isinstance(fault, SyntaxError) and fault.filename == file:
        line = fault.lineno
    else:
        frames = [frame for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == file]
        line = frames[-1].lineno if frames else None
    said = fault.msg if isinstance(fault, SyntaxError) else str(fault)
    return f"{file}{f':{line}' if line else ''}: {type(fault).__name__}: {said}"
