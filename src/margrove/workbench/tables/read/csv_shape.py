"""The shape of a CSV file: all rows must have the same number of cells, and quotes must close.

Parsers accept too much: they fill short rows, and read the rest of the file as one cell after a
quote that is never closed. So the bytes are checked first, block by block.

A quote opens only at the beginning of a cell and closes at its end; two quotes within quotes stand
for one. So byte k is inside quotes if the number of quotes before it is odd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove.exceptions import InvalidDataError

__all__ = ["CsvShape", "checked_shape"]

_BLOCK = 1 << 22
_QUOTE, _LINE, _RETURN = ord('"'), ord("\n"), ord("\r")


@dataclass(frozen=True)
class CsvShape:
    """The number of rows (without the names) and columns, and whether each row is one line."""

    n_rows: int
    n_columns: int
    one_line_per_row: bool

    def place_of(self, row: int) -> str:
        """The name of a row (from 0) in errors."""
        return f"line {row + 2}" if self.one_line_per_row else f"row {row + 1}"


def checked_shape(data: bytes, delimiter: str, name: str) -> CsvShape:
    """Check all rows of data that end with a line feed; errors name the line."""
    scan = _Scan(data, ord(delimiter), name)
    cells = np.frombuffer(data, dtype=np.uint8)
    has_quotes = b'"' in data
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK]
        outside = scan.outside_quotes(block, start) if has_quotes else None
        scan.count(block, start, outside)
    if scan.is_quoted:
        raise InvalidDataError(
            f"{name}: the quote that opens in line {scan.line_of(scan.last_opening)} is never "
            "closed. Close it, or remove it; a quote within quotes is written twice."
        )
    return CsvShape(scan.n_rows - 1, scan.n_delimiters + 1, not scan.has_breaks_in_quotes)


class _Scan:
    """The state of a pass over the bytes."""

    def __init__(self, data: bytes, delimiter: int, name: str) -> None:
        self.data, self.delimiter, self.name = data, delimiter, name
        self.is_quoted = False
        self.last_opening = 0
        self.has_breaks_in_quotes = False
        self.n_rows = 0
        self.n_delimiters = -1  # in a row; -1 until the first has ended
        self._in_this_row = 0
        self._row_start = 0

    def line_of(self, place: int) -> int:
        return self.data.count(b"\n", 0, place) + 1

    def outside_quotes(self, block: np.ndarray, start: int) -> np.ndarray:
        """bool (len(block),): whether each byte is outside quotes; undefined for quotes."""
        is_quote = block == _QUOTE
        n_before = np.cumsum(is_quote, dtype=np.uint8)  # modulo 256, which keeps parity
        inside = (n_before & 1).astype(bool) ^ self.is_quoted
        places = np.flatnonzero(is_quote)
        opens = inside[places]
        self._check_quotes(places + start, opens)
        if len(places):
            self.is_quoted = bool(opens[-1])
            if opens.any():
                self.last_opening = int(places[opens][-1]) + start
        return np.asarray(~inside)

    def _check_quotes(self, places: np.ndarray, opens: np.ndarray) -> None:
        cells = np.frombuffer(self.data, dtype=np.uint8)
        neighbours = np.where(opens, places - 1, np.minimum(places + 1, len(cells) - 1))
        beside = cells[np.maximum(neighbours, 0)]
        fine = (beside == self.delimiter) | (beside == _LINE) | (beside == _QUOTE)
        fine |= ~opens & (beside == _RETURN)
        fine |= (places == 0) | (places == len(cells) - 1)
        if not fine.all():
            place = int(places[np.argmin(fine)])
            raise InvalidDataError(
                f"{self.name}: line {self.line_of(place)} has a quote in the middle of a cell. Put "
                "the cell in quotes and write the quote inside it twice, or remove it."
            )

    def count(self, block: np.ndarray, start: int, outside: np.ndarray | None) -> None:
        """Count the delimiters of each row in a block, and check that all rows have as many."""
        delimiters, breaks = block == self.delimiter, block == _LINE
        if outside is not None:
            self.has_breaks_in_quotes |= bool(np.any(breaks & ~outside))
            delimiters &= outside
            breaks &= outside
        ends = np.flatnonzero(breaks)
        before = np.searchsorted(np.flatnonzero(delimiters), ends)
        total = int(np.count_nonzero(delimiters))
        if len(ends):
            in_rows = np.diff(before, prepend=0)
            in_rows[0] += self._in_this_row
            self._check_rows(in_rows, ends + start)
            self.n_rows += len(ends)
            self._row_start = int(ends[-1]) + start + 1
            total -= int(before[-1])
            self._in_this_row = 0
        self._in_this_row += total

    def _check_rows(self, in_rows: np.ndarray, ends: np.ndarray) -> None:
        if self.n_delimiters < 0:
            self.n_delimiters = int(in_rows[0])
        starts = np.concatenate([[self._row_start], ends[:-1] + 1])
        cells = np.frombuffer(self.data, dtype=np.uint8)
        is_blank = (ends == starts) | ((ends == starts + 1) & (cells[starts] == _RETURN))
        wrong = is_blank | (in_rows != self.n_delimiters)
        if not wrong.any():
            return
        row = int(np.argmax(wrong))
        line = self.line_of(int(starts[row]))
        if is_blank[row]:
            raise InvalidDataError(
                f"{self.name}: line {line} is empty. Delete it, or give it "
                f"{self.n_delimiters + 1} cells."
            )
        raise InvalidDataError(
            f"{self.name}: line {line} has {in_rows[row] + 1} cells, and the line of names has "
            f"{self.n_delimiters + 1}. Cells with the delimiter in them need quotes around them."
        )
