"""Checks that text is UTF-8; errors name the first byte that is not."""

from __future__ import annotations

import codecs

from margrove.exceptions import InvalidDataError

__all__ = ["checked_text"]

_BOM = codecs.BOM_UTF8
_OTHER_MARKS = {  # UTF-32 first: one of its marks begins with that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_PIECE = 1 << 20


def checked_text(data: bytes, name: str) -> tuple[bytes, tuple[str, ...]]:
    """The bytes, checked to be UTF-8, without a byte order mark; and notes."""
    for mark, encoding in _OTHER_MARKS.items():
        if data.startswith(mark):
            raise InvalidDataError(
                f"{name} is in {encoding} (byte 0 begins its mark), and only UTF-8 is read. "
                f"Convert it: iconv -f {encoding} -t UTF-8."
            )
    nul = data.find(b"\0")
    if nul >= 0:
        raise InvalidDataError(
            f"{name} has a NUL at byte {nul}: it is not text, or it is UTF-16 without a mark. "
            "Save it as UTF-8; iconv -f UTF-16LE -t UTF-8 converts it."
        )
    if not data.isascii():
        _require_utf8(data, name)
    if data.startswith(_BOM):
        return data[len(_BOM) :], ("a byte order mark was removed",)
    return data, ()


def _require_utf8(data: bytes, name: str) -> None:
    """Decode piece by piece: the decoded text would take up to four times the memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), _PIECE):
        piece = view[start : start + _PIECE]
        n_pending = len(decoder.getstate()[0])  # bytes of a character that began in the last piece
        try:
            decoder.decode(piece, final=start + _PIECE >= len(data))
        except UnicodeDecodeError as error:
            place = start - n_pending + error.start
            line = data.count(b"\n", 0, place) + 1
            raise InvalidDataError(
                f"{name} is not UTF-8: byte {place}, in line {line}, is 0x{data[place]:02X} "
                f"({error.reason}). If it is Latin-1 or Windows text, convert it: "
                "iconv -f WINDOWS-1252 -t UTF-8."
            ) from None
