"""ReadLimits: how much of a file is read."""

from __future__ import annotations

from dataclasses import dataclass, fields

from margrove._runtime import available_memory

__all__ = ["ReadLimits"]

_SHARE_OF_MEMORY = 4  # parsing takes at least as much memory again
_DEFAULT_BYTES = 4_000_000_000  # if the available memory is unknown


@dataclass(frozen=True)
class ReadLimits:
    """How much `read_table` reads; a larger table is an error that names the limit.

    Parameters
    ----------
    max_file_bytes : int, default=20_000_000_000
        Size of the file on disk.
    max_bytes : int or None, default=None
        Size of its contents after decompression. None is a quarter of the memory that is available
        when the file is read.
    max_rows : int, default=100_000_000
    max_columns : int, default=20_000
    max_name_length : int, default=1_000
        Characters in the name of a column.
    max_cell_length : int, default=1_000_000
        Bytes in a cell.

    Examples
    --------
    >>> from margrove.tables import ReadLimits
    >>> ReadLimits(max_rows=1_000).max_rows
    1000
    """

    max_file_bytes: int = 20_000_000_000
    max_bytes: int | None = None
    max_rows: int = 100_000_000
    max_columns: int = 20_000
    max_name_length: int = 1_000
    max_cell_length: int = 1_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if not is_whole and not (value is None and field.name == "max_bytes"):
                raise ValueError(f"{field.name} must be a whole number above 0. Got {value!r}.")

    @property
    def content_bytes(self) -> int:
        """`max_bytes`, or a quarter of the memory that is available now."""
        if self.max_bytes is not None:
            return self.max_bytes
        available = available_memory()
        return _DEFAULT_BYTES if available is None else max(1, available // _SHARE_OF_MEMORY)
