"""One pool of threads for the whole library.

Its threads are started once a process and wait in compiled code: they spin for a moment, and then
sleep in the operating system. A *region* is work that is cut into tiles. The calling thread opens
the region, takes tiles itself, and waits until every helper has left. Threads take the next tile
from an atomic counter. There are two entries:

share_tiles   tiles of compiled code, without Python; see `regions`
run_tiles     tiles that are Python functions, on the same threads

If the pool is busy, or has no threads, the caller does all tiles itself, at once. So regions may be
nested, and many threads may call them at the same time.

A thread takes a tile by adding one to a counter that begins at minus the number of tiles. What it
gets is a tile only if it is below 0, and the caller waits until all tiles are reported as done. So
a helper that comes late never takes a tile of a region that is over: it gets nothing, or a tile of
the next region, whose function and arguments it then reads.

Results must not depend on which thread computes a tile.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from margrove._runtime.instructions import (
    atomic_add,
    atomic_exchange_if,
    atomic_read,
    atomic_swap,
    atomic_write,
    call_tile,
    relax,
    yield_core,
)
from margrove._runtime.jit import IS_COMPILED, compile_for, kernel
from margrove._runtime.threads import blas_limit_of_helper, single_threaded_blas
from margrove._runtime.waiting import (
    NONE,
    WORDS_OF_LOCKS,
    best_way_to_wait,
    prepare_words,
    sleep_while,
    wake,
)

__all__ = ["pool_words", "run_region", "run_tiles"]

# The words of the pool. Those of a line are changed by the same threads at the same time; a line is
# two cache lines, as processors fetch them in pairs.
_LINE = 16  # int64 words
_SIZE = 7 * _LINE + WORDS_OF_LOCKS
# Changed by the caller only, and polled by helpers:
_REGION = 0  # the number of the last region; helpers wait for it to change
_BODY, _ARGUMENTS, _TILES = 1, 2, 3  # what to do; of Python tiles: 0, 0, the number of helpers
_PLACES = _LINE  # below 0 while helpers may take part: minus the number of those that still may
_NEXT = 2 * _LINE  # the next tile, minus the number of tiles: no tile is left from 0 on
_DONE = 2 * _LINE + 1  # how many tiles are done
_OWNER = 3 * _LINE  # who has the pool: 0 nobody
_ASLEEP = 4 * _LINE  # how many helpers sleep
# Changed rarely:
_WAITING = 5 * _LINE  # 1 while the caller sleeps until all tiles are done
_FAILED = 5 * _LINE + 1  # how many tiles could not allocate memory
_HELPERS = 5 * _LINE + 2  # how many helpers there are
_WAY, _SPINS, _YIELDS = 6 * _LINE, 6 * _LINE + 1, 6 * _LINE + 2  # set before helpers start

_ENDED = -(1 << 62)  # in place of the number of a region: helpers end
_NO_LIMIT = -(1 << 40)  # in place of the number of places: nobody counts
_COMPILED = 1  # owner of a region that was opened by compiled code; Python's owners are above
_END, _SLEEP = -1, -2  # what `serve` returns when the helper ends, or must sleep in Python
_MOST_HELPERS = 255

# How long threads wait before they sleep: pauses of the processor, which take 50 microseconds or
# so, and then calls that let other threads use the core, which take some milliseconds. Waking a
# thread takes ten microseconds, and a hundred on some virtual machines.
_PAUSES = 1_000
_YIELDS_BEFORE_SLEEP, _YIELDS_BEFORE_PYTHON_SLEEP = 10_000, 50_000
_WOKEN_AT_ONCE = 2  # threads that one thread wakes; those wake others
_LONGEST_SLEEP = 3600.0  # seconds
_SECONDS_TO_END = 1.0

_C_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None


# -- the protocol, in compiled code --


@kernel(inner=True)
def run_region(words, n_tiles, n_threads, body, arguments):
    """Call body(arguments, tile) for all tiles; return how many tiles failed.

    `body` and `arguments` are addresses; see `regions.share_tiles`.
    """
    n_helpers = min(n_threads - 1, n_tiles - 1, atomic_read(words, _HELPERS))
    if n_helpers < 1 or atomic_exchange_if(words, _OWNER, 0, _COMPILED) != 0:
        failed = 0
        for tile in range(n_tiles):
            failed += call_tile(body, arguments, tile)
        return failed
    words[_BODY], words[_ARGUMENTS], words[_TILES] = body, arguments, n_tiles
    _open(words, n_tiles, n_helpers)
    _do_tiles(words, atomic_add(words, _NEXT, 1))
    _wait_until_done(words, n_tiles)
    failed = words[_FAILED]
    atomic_write(words, _OWNER, 0)
    return failed


@kernel(inner=True)
def _open(words, n_tiles, n_helpers):
    """Offer the tiles, and wake helpers."""
    if words[_FAILED]:
        words[_FAILED] = 0
    words[_DONE] = 0
    atomic_write(words, _NEXT, -n_tiles)
    everybody = n_helpers >= atomic_read(words, _HELPERS)
    atomic_write(words, _PLACES, _NO_LIMIT if everybody else -n_helpers)
    atomic_add(words, _REGION, 1)
    _wake_some(words)


@kernel(inner=True)
def _wake_some(words):
    """Wake a few of those that sleep, while there is something to do for them."""
    asleep = atomic_read(words, _ASLEEP)
    if asleep > 0 and atomic_read(words, _PLACES) < 0 and atomic_read(words, _NEXT) < 0:
        wake(words[_WAY], words, _REGION, min(asleep, _WOKEN_AT_ONCE))


@kernel(inner=True)
def _do_tiles(words, taken):
    """Do the tile that was taken, and others until none is left."""
    if taken >= 0:
        return
    body, arguments, n_tiles = words[_BODY], words[_ARGUMENTS], words[_TILES]
    done, failed = 0, 0
    while taken < 0:
        failed += call_tile(body, arguments, taken + n_tiles)
        done += 1
        taken = atomic_add(words, _NEXT, 1)
    if failed:
        atomic_add(words, _FAILED, failed)
    _report(words, done)


@kernel(inner=True)
def _report(words, done):
    way = words[_WAY]
    atomic_add(words, _DONE, done)
    if atomic_read(words, _WAITING) > 0:
        wake(way, words, _DONE, 1)


@kernel(inner=True)
def _wait_until_done(words, n_tiles):
    spins, done = 0, atomic_read(words, _DONE)
    while done < n_tiles:
        spins += 1
        if spins <= words[_SPINS]:
            relax()
        elif spins <= words[_SPINS] + words[_YIELDS] or words[_WAY] == NONE:
            yield_core()
        else:
            atomic_add(words, _WAITING, 1)
            done = atomic_read(words, _DONE)
            if done < n_tiles:
                sleep_while(words[_WAY], words, _DONE, done)
            atomic_write(words, _WAITING, 0)
        done = atomic_read(words, _DONE)


@kernel(inner=True)
def _wait_for_region(words, last):
    """The number of a region after `last`; `last` if the helper must sleep in Python."""
    spins = 0
    while True:
        region = atomic_read(words, _REGION)
        if region != last:
            return region
        spins += 1
        if spins <= words[_SPINS]:
            relax()
        elif spins <= words[_SPINS] + words[_YIELDS]:
            yield_core()
        elif words[_WAY] == NONE:
            return last
        else:
            atomic_add(words, _ASLEEP, 1)
            sleep_while(words[_WAY], words, _REGION, last)
            atomic_add(words, _ASLEEP, -1)
            _wake_some(words)


@kernel(inner=True)
def _finds_a_place(words):
    """Whether this helper may take part: there may be more helpers than the caller wants."""
    places = atomic_read(words, _PLACES)
    return places <= _NO_LIMIT or (places < 0 and atomic_add(words, _PLACES, 1) < 0)


@kernel(bare=True)
def serve(words, last):
    """The work of a helper, until there is something that only Python can do.

    Returns the number of a region of Python tiles, of which the helper has taken one; or _END; or
    _SLEEP.
    """
    while True:
        region = _wait_for_region(words, last)
        if region == last:
            return np.int64(_SLEEP)
        if region < 0:
            return np.int64(_END)
        last = region
        if _finds_a_place(words):
            taken = atomic_add(words, _NEXT, 1)
            if taken < 0 and words[_BODY] == 0:
                return region
            _do_tiles(words, taken)


@kernel(bare=True)
def leave(words):
    """A helper has done its part of a region of Python tiles."""
    _report(words, 1)


@kernel(bare=True)
def take_pool(words, owner):
    """Whether the pool is now this owner's."""
    if atomic_exchange_if(words, _OWNER, 0, owner) != 0:
        return False
    words[_TILES] = 0
    return True


@kernel(bare=True)
def open_for_python(words, n_helpers):
    """Open a region of Python tiles for some helpers; the caller has taken the pool."""
    n_helpers = min(n_helpers, atomic_read(words, _HELPERS))
    words[_BODY], words[_TILES] = 0, n_helpers
    _open(words, n_helpers, n_helpers)


@kernel(bare=True)
def close_for_python(words, owner):
    """Let no more helpers come, and wait for those of this owner; again, it does nothing."""
    if atomic_read(words, _OWNER) == owner and words[_TILES] > 0:
        came = min(atomic_swap(words, _NEXT, 0) + words[_TILES], words[_TILES])
        _wait_until_done(words, came)
        words[_TILES] = 0


@kernel(bare=True)
def give_pool_back(words, owner):
    atomic_exchange_if(words, _OWNER, owner, 0)


@kernel(bare=True)
def count_helper(words, change):
    atomic_add(words, _HELPERS, change)


@kernel(bare=True)
def end_helpers(words):
    """Make all helpers end."""
    atomic_write(words, _REGION, _ENDED)
    wake(words[_WAY], words, _REGION, _MOST_HELPERS + 1)


# -- the threads --


class _Pool:
    """The words and the threads of this process. Helpers have no reference to this object."""

    def __init__(self) -> None:
        self.words = np.zeros(_SIZE, np.int64)
        way = best_way_to_wait()
        self.words[_REGION] = 1
        self.words[_WAY], self.words[_SPINS] = way, _PAUSES
        # Helpers that sleep in Python cannot be woken by compiled code: they wait longer.
        self.words[_YIELDS] = _YIELDS_BEFORE_PYTHON_SLEEP if way == NONE else _YIELDS_BEFORE_SLEEP
        prepare_words(self.words)
        self.job: list[Callable[[], object]] = []  # what helpers call in a region of Python tiles
        self.threads: dict[int, int] = {}  # number of a helper: its thread's identity
        self.sleepers: list[_thread.LockType] = []  # the locks of helpers that sleep in Python
        self._n_started = 0
        self._n_threads = 1  # of the last region
        self._affinity: set[int] | None = None  # of the helpers
        self._lock = threading.Lock()

    def ready(self, n_threads: int) -> np.ndarray:
        """The words of the pool, after starting the helpers that are missing."""
        if n_threads != self._n_threads and n_threads > 1:
            self._n_threads = n_threads
            self._start(min(n_threads - 1, _MOST_HELPERS))
            self._follow_affinity()
        while self.sleepers:
            self._wake_a_sleeper()
        return self.words

    def _start(self, n_helpers: int) -> None:
        if not IS_COMPILED or not self._lock.acquire(blocking=False):
            return
        try:
            if self._n_started < n_helpers:
                _compile_protocol(self.words)
            while self._n_started < n_helpers:
                place = (_current_core(), self._n_started)
                _thread.start_new_thread(
                    _help, (self.words, self.job, self.threads, self.sleepers, place)
                )
                self._n_started += 1
        except RuntimeError:  # the system has no more threads
            self._n_threads = 0  # try again the next time
        finally:
            self._lock.release()

    def _follow_affinity(self) -> None:
        """Allow the helpers the cores that the calling thread may use."""
        if not hasattr(os, "sched_setaffinity"):
            return
        allowed = os.sched_getaffinity(0)
        if self._affinity is not None and allowed != self._affinity:
            for thread in list(self.threads.values()):
                with suppress(OSError):  # it has ended
                    os.sched_setaffinity(thread, allowed)
        self._affinity = allowed

    def _wake_a_sleeper(self) -> None:
        with suppress(IndexError, RuntimeError):  # another caller was faster
            self.sleepers.pop().release()

    def close(self) -> None:
        """End all helpers, and wait a moment until they have left compiled code."""
        if not self._n_started:
            return
        end_helpers(self.words)
        self._n_started = _MOST_HELPERS  # start no more
        end = time.monotonic() + _SECONDS_TO_END
        while self.threads and time.monotonic() < end:
            self._wake_a_sleeper()
            time.sleep(0.0005)


def _help(
    words: np.ndarray,
    job: list[Callable[[], object]],
    threads: dict[int, int],
    sleepers: list[_thread.LockType],
    place: tuple[int, int],
) -> None:
    """The loop of a helper."""
    number = place[1]
    try:
        _move_from_core(*place)
        threads[number] = threading.get_native_id()
        count_helper(words, 1)
        region = int(words[_REGION])
        while (found := int(serve(words, region))) != _END:
            if found == _SLEEP:
                _sleep_in_python(sleepers)
                continue
            region = found
            try:
                for work in job[:]:
                    work()
            finally:
                leave(words)
        count_helper(words, -1)
    except Exception:  # the interpreter ends; others do the work
        return
    finally:
        threads.pop(number, None)


def _sleep_in_python(sleepers: list[_thread.LockType]) -> None:
    """Sleep in Python until somebody calls the helpers."""
    lock = _thread.allocate_lock()
    lock.acquire()
    sleepers.append(lock)
    lock.acquire(timeout=_LONGEST_SLEEP)


def _compile_protocol(words: np.ndarray) -> None:
    """Compile or load what helpers call, so that they do not wait for each other's compiler."""
    compile_for(serve, words, 0)
    compile_for(leave, words)
    compile_for(count_helper, words, 0)


def _current_core() -> int:
    """The core on which this thread runs; -1 if it is not known."""
    find = getattr(_C_LIBRARY, "sched_getcpu", None)
    return -1 if find is None else int(find())


def _move_from_core(core_of_caller: int, number: int) -> None:
    """Move this thread to another core than the caller's, without binding it to that core.

    Some schedulers keep a new thread on the core where it was started for many milliseconds, even
    if other cores are idle: it would wait for the caller, and the caller for it.
    """
    if core_of_caller < 0 or not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    others = sorted(allowed - {core_of_caller})
    if others:
        os.sched_setaffinity(0, {others[number % len(others)]})
        os.sched_setaffinity(0, allowed)


_POOL = _Pool()
_OWNERS = itertools.count(_COMPILED + 1)


def _forget_pool() -> None:
    """In a child after a fork: it has none of the threads, and needs words of its own."""
    global _POOL  # noqa: PLW0603
    _POOL = _Pool()


def _close_pool() -> None:
    _POOL.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
atexit.register(_close_pool)


def pool_words(n_threads: int) -> np.ndarray:
    """What kernels need to share tiles: see `regions.share_tiles`."""
    return _POOL.ready(n_threads)


# -- tiles in Python --


def run_tiles(task: Callable[[int], None], n_tiles: int, n_threads: int = 1) -> None:
    """Call `task(0) ... task(n_tiles - 1)`, each exactly once, on up to `n_threads` threads.

    The calling thread works too, so Ctrl-C reaches it between its tiles; the other threads then
    finish their current tile and stop. The first error of any tile is raised here. A tile takes
    Python's lock, so this is for tiles that must be Python; the others are regions.
    """
    n_threads = min(n_threads, n_tiles)
    if n_threads <= 1:
        for tile in range(n_tiles):
            task(tile)
        return
    queue = _TileQueue(n_tiles)

    def work() -> None:
        try:
            while (tile := queue.take()) is not None:
                task(tile)
        except BaseException as error:
            queue.abandon(error)

    def help_out() -> None:
        with blas_limit_of_helper():
            work()

    pool, owner = _POOL, next(_OWNERS)
    words = pool.ready(n_threads)
    with single_threaded_blas():
        try:
            try:
                if IS_COMPILED and take_pool(words, owner):
                    pool.job[:] = [help_out]
                    open_for_python(words, n_threads - 1)
                work()
            except BaseException as error:  # an interrupt between two lines here
                queue.abandon(error)
            finally:
                _close_region(pool, owner, queue)
        finally:  # again, if an interrupt came just before the call above
            _close_region(pool, owner, queue)
    if queue.error is not None:
        raise queue.error


def _close_region(pool: _Pool, owner: int, queue: _TileQueue) -> None:
    """Wait for all helpers in any case: they write to arrays that the caller will read."""
    while IS_COMPILED:
        try:
            close_for_python(pool.words, owner)
            if pool.words[_OWNER] == owner:
                pool.job.clear()
            give_pool_back(pool.words, owner)
            return
        except BaseException as error:  # an interrupt while waiting
            queue.abandon(error)


class _TileQueue:
    """Returns tile numbers one by one; after `abandon`, None.

    It has no lock, because an interrupt between two lines could leave a lock held. `next` of a
    counter is one step of the interpreter.
    """

    def __init__(self, n_tiles: int) -> None:
        self._numbers = itertools.count()
        self._end = n_tiles
        self.error: BaseException | None = None

    def take(self) -> int | None:
        number = next(self._numbers)
        return number if number < self._end else None

    def abandon(self, error: BaseException) -> None:
        self._end = 0
        if self.error is None or isinstance(error, KeyboardInterrupt):
            self.error = error
