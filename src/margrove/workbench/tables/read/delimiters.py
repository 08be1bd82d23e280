"""Which character separates the cells of a line."""

from __future__ import annotations

from collections import Counter

__all__ = ["DELIMITER_NAMES", "likely_delimiter"]

DELIMITER_NAMES = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_SAMPLE = 1 << 18
_LINES = 200


def likely_delimiter(data: bytes) -> str:
    """The delimiter that splits most of the first lines into the same, largest number of cells.

    Without any, the table has a single column, and it is a comma.
    """
    lines = _lines_outside_quotes(data)
    if not lines:
        return ","
    found = {}
    for delimiter in DELIMITER_NAMES:
        counts = [line.count(delimiter.encode()) for line in lines]
        header = counts[0]
        agreeing = Counter(counts)[header] / len(counts)
        if header:
            found[delimiter] = (agreeing >= 0.9, agreeing == 1.0, header)
    return max(found, key=lambda delimiter: found[delimiter]) if found else ","


def _lines_outside_quotes(data: bytes) -> list[bytes]:
    """The first lines, without what is between quotes."""
    sample = data[:_SAMPLE]
    outside = b"".join(sample.split(b'"')[::2])
    lines = [line for line in outside.split(b"\n")[: _LINES + 1] if line.strip(b"\r ")]
    if len(lines) > 1 and (len(data) > _SAMPLE or len(lines) > _LINES):
        lines.pop()  # perhaps not whole
    return lines
