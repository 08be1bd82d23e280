"""Dates as numbers: the parts that calendars and clocks show, and days since 1970."""

from __future__ import annotations

import numpy as np

__all__ = ["DATE_PARTS", "date_part"]

DATE_PARTS = ("days", "year", "month", "day", "weekday", "hour", "minute")
_A_DAY = 86_400_000_000


def date_part(dates: np.ndarray, part: str) -> np.ndarray:
    """float64 (n,), NaN for NaT. Weekdays are 0 for Monday to 6 for Sunday.

    dates    datetime64[us] (n,)
    part     one of DATE_PARTS
    """
    missing = np.isnat(dates)
    known = np.where(missing, np.datetime64(0, "us"), dates)
    values = _part_of(known, part).astype(np.float64)
    return np.asarray(np.where(missing, np.nan, values))


def _part_of(dates: np.ndarray, part: str) -> np.ndarray:
    day = dates.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    within = (dates - day).astype(np.int64)  # microseconds since midnight
    if part == "days":
        return np.asarray(dates.astype(np.int64) / _A_DAY)
    if part == "year":
        return dates.astype("datetime64[Y]").astype(np.int64) + 1970
    if part == "month":
        return month.astype(np.int64) % 12 + 1
    if part == "day":
        return (day - month).astype(np.int64) + 1
    if part == "weekday":
        return (day.astype(np.int64) + 3) % 7
    if part == "hour":
        return within // 3_600_000_000
    if part == "minute":
        return within // 60_000_000 % 60
    raise ValueError(f"There is no part {part!r} of a date.")
