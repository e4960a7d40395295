"""Why a protobuf message cannot be read, as the generated decoders of Kubernetes' Go types say it (gogo/protobuf).

Read only after the library refused a message: field by field, down into the messages that fields hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from apimachinery.wire.json import DecodeFault

EOF: Final = "unexpected EOF"
VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
Expected = tuple[int, str, str]
"""Of a known field: its wire type, its name in Go, and the message that it holds (empty for none)."""
Describe = Callable[[str], tuple[str, Mapping[int, Expected]]]
"""The Go name of a message, and its fields by number."""


class ProtobufFault(DecodeFault):
    """Bytes that are not an object, or an object that has no protobuf form."""


class _Fault(Exception):
    pass


def message_fault(data: bytes, message: str, describe: Describe) -> str:
    """The first fault of a message; that it ends too soon where none is found."""
    try:
        _Reader(data, describe).message(message, len(data))
    except _Fault as fault:
        return str(fault)
    return EOF


class _Reader:
    def __init__(self, data: bytes, describe: Describe) -> None:
        self._data = data
        self._place = 0
        self._describe = describe

    def message(self, name: str, end: int) -> None:
        go_name, fields = self._describe(name)
        while self._place < end:
            key = self._varint(end)
            number, kind = key >> 3, key & 7
            # Groups are obsolete; gogo's decoders refuse them.
            if kind == END_GROUP:
                raise _Fault(f"proto: {go_name}: wiretype end group for non-group")
            if not 0 < number < 1 << 29:
                # Go prints the number as a signed integer of 32 bits.
                shown = number if number < 1 << 31 else number - (1 << 32)
                raise _Fault(f"proto: {go_name}: illegal tag {shown} (wire type {kind})")
            expected = fields.get(number)
            if expected is None:
                self._skip(kind, end)
                continue
            wanted, field, inner = expected
            if kind != wanted:
                raise _Fault(f"proto: wrong wireType = {kind} for field {field}")
            if kind != LENGTH:
                self._skip(kind, end)
                continue
            stop = self._length(end)
            if inner:
                # The decoder of an inner message stops at its own end.
                self.message(inner, stop)
            self._place = stop

    def _varint(self, end: int) -> int:
        value = shift = 0
        while True:
            # A varint of more than ten bytes.
            if shift >= 64:
                raise _Fault("proto: integer overflow")
            if self._place >= end:
                raise _Fault(EOF)
            byte = self._data[self._place]
            self._place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _length(self, end: int) -> int:
        size = self._varint(end)
        if size >= 1 << 63:
            raise _Fault("proto: negative length found during unmarshaling")
        if self._place + size > end:
            raise _Fault(EOF)
        return self._place + size

    def _skip(self, kind: int, end: int) -> None:
        """Passes over a field that nobody knows, groups and what is in them included."""
        # Groups may be nested.
        depth = 0
        while True:
            if kind == VARINT:
                self._varint(end)
            elif kind in (FIXED64, FIXED32):
                self._place += 8 if kind == FIXED64 else 4
                if self._place > end:
                    raise _Fault(EOF)
            elif kind == LENGTH:
                self._place = self._length(end)
            elif kind == GROUP:
                depth += 1
            elif kind == END_GROUP:
                if not depth:
                    raise _Fault("proto: unexpected end of group")
                depth -= 1
            else:
                raise _Fault(f"proto: illegal wireType {kind}")
            if not depth:
                return
            kind = self._varint(end) & 7
