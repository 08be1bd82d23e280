"""One program on several workers at once, each with some of the rows of a table.

The program is an ordinary function, `program(member, *arguments)`. It runs as one task on each
worker, which holds its rows. Members exchange sums (`exchanges`), so all of them decide the same.
The first one also reports to the client, which may stop the program at any time.

If a worker is lost, all members end, and the client gets `WorkerLost`. It can then start the
program again on the workers that are left.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import distributed
import numpy as np

from margrove.dask.cluster import (
    WorkerLost,
    gathered,
    is_wanted,
    run_on_workers,
    threads_of_worker,
)
from margrove.dask.exchanges import WorkerCollective
from margrove.dask.mailboxes import Stopped, mailbox_of, open_mailboxes
from margrove.dask.partitions import (
    Partitions,
    Shard,
    is_on_disk,
    plan_shards,
    release_memory,
    rows_of_partition,
    shards_in_place,
)

__all__ = ["Member", "Members", "RowBlock"]

_SECONDS_OF_A_POLL = 1.0
_SECONDS_TO_ANSWER = 5.0  # after which it is looked whether the worker is still there
_SECONDS_OF_SILENCE = 60.0  # after which it counts as lost


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows of a table: those of a partition, or some of them.

    start     the number of the first row in the table
    n_rows    the number of rows
    """

    start: int
    n_rows: int
    y: np.ndarray | None
    weight: np.ndarray | None
    partition: Any
    first: int

    @property
    def is_on_disk(self) -> bool:
        """Whether `X` reads a file."""
        return is_on_disk(self.partition)

    def X(self, first: int = 0, last: int | None = None) -> Any:  # noqa: N802
        """Rows first .. last - 1 of the block: an array, a CSR matrix or a frame."""
        last = self.n_rows if last is None else last
        if not self.is_on_disk and self.first == first == 0 and last == self.partition.shape[0]:
            return self.partition
        return rows_of_partition(self.partition, self.first + first, self.first + last)


class Member:
    """One of the workers that run a program.

    collective   sums over all members
    blocks       the rows of this worker, in the order of the table
    n_threads    the threads that the program may use here
    """

    def __init__(
        self, collective: WorkerCollective, blocks: list[RowBlock], mailbox: Any, n_threads: int
    ) -> None:
        self.collective, self.blocks, self.n_threads = collective, blocks, n_threads
        self._mailbox = mailbox

    def report(self, value: Any) -> None:
        """Send a value to the client, which gets only those of the first member."""
        if self.collective.rank == 0:
            self._mailbox.report(value)
        else:
            self._mailbox.check()


class Members:
    """The client's side of a program that runs on several workers; a context manager.

    Parameters
    ----------
    partitions : Partitions
        The table, whose rows the members get.
    workers : list of str
        Addresses. Workers that would get no rows are left out.
    program : callable
        A function of a module: `program(member, *arguments)`.
    arguments : sequence
        For all members; large ones are sent to each worker once.
    own_arguments : callable, optional
        Further arguments of each member: a function of its shard.
    """

    def __init__(
        self,
        partitions: Partitions,
        workers: Sequence[str],
        program: Callable[..., Any],
        arguments: Sequence[Any] = (),
        own_arguments: Callable[[Shard], tuple[Any, ...]] | None = None,
    ) -> None:
        self._partitions, self._client = partitions, partitions.client
        self._program, self._arguments = program, tuple(arguments)
        self._own_arguments = own_arguments
        self._run = f"margrove-{secrets.token_hex(8)}"
        self._shards = _shards(partitions, list(workers))
        self.addresses = [shard.worker for shard in self._shards]
        self._futures: list[Any] = []
        self._n_reports = 0
        self._n_of_all_reports = 0
        self._asking: Any = None  # the first worker, for reports
        self._asked_at = 0.0
        self._waiting: list[Any] = []
        self._results: list[Any] | None = None

    def __enter__(self) -> Members:
        opened = run_on_workers(self._client, self.addresses, _open_mailboxes)
        _require_answers(opened)
        try:
            self._futures = [self._start(rank) for rank in range(len(self._shards))]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """End the program on all workers."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            there = [address for address in self.addresses if address in self._known_workers()]
            run_on_workers(self._client, there, _end, self._run, seconds=_SECONDS_TO_ANSWER)
        for future in self._futures:
            with contextlib.suppress(Exception):
                future.cancel()
        self._futures = []
        if self._asking is not None and self._client.status == "running":
            with contextlib.suppress(Exception):
                self._client.sync(self._cancel, self._asking)

    def _start(self, rank: int) -> Any:
        shard, partitions = self._shards[rank], self._partitions
        numbers = [number for number, _, _ in shard.pieces]
        own = () if self._own_arguments is None else self._own_arguments(shard)
        try:
            sent = self._client.scatter(
                [_Arguments((*self._arguments, *own))], workers=[shard.worker], hash=False
            )
        except OSError as error:  # if the worker dies meanwhile
            raise WorkerLost(f"Worker {shard.worker} was lost: {error}", shard.worker) from error
        return self._client.submit(
            _run_program,
            self._run,
            self.addresses,
            rank,
            shard,
            [partitions.X[k] for k in numbers],
            None if partitions.y is None else [partitions.y[k] for k in numbers],
            None if partitions.weight is None else [partitions.weight[k] for k in numbers],
            self._program,
            sent[0],
            key=f"{getattr(self._program, '__name__', 'program')}-{self._run}-{rank}",
            workers=[shard.worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )

    def reports(self, seconds: float) -> list[Any]:
        """New reports, in order; none if there are none yet after some seconds.

        Raises the error of the program, or WorkerLost.
        """
        if not self._waiting and not self._has_ended():
            self._poll(seconds)
        found, self._waiting = self._waiting, []
        return found

    def next_report(self) -> Any:
        """The next report, in order; None if the program has ended.

        Raises the error of the program, or WorkerLost.
        """
        while not self._waiting:
            if self._has_ended():
                return None
            self._poll()
        return self._waiting.pop(0)

    def results(self) -> list[Any]:
        """What the program returned on each worker, when it has ended."""
        while not self._has_ended():
            self._poll()
            self._waiting.clear()
        assert self._results is not None
        return self._results

    def _poll(self, seconds: float = _SECONDS_OF_A_POLL) -> None:
        """Get new reports, if they come within some seconds, and look whether all members are
        still there."""
        if self._asking is None:
            self._asking, self._asked_at = self._client.sync(self._ask), time.monotonic()
        if not self._client.sync(self._has_answer, seconds):
            silent = time.monotonic() - self._asked_at - _SECONDS_OF_A_POLL
            if silent > _SECONDS_TO_ANSWER:
                self._raise_problem()
            if silent > _SECONDS_OF_SILENCE:
                first = self.addresses[0]
                raise WorkerLost(f"Worker {first} was lost: it does not answer.", first)
            return
        found = self._answer()
        if found:
            self._n_reports += len(found)
            self._waiting += found
        else:
            self._raise_problem()

    async def _ask(self) -> Any:
        """Ask the first worker for reports; it answers when there are some, or after a while."""
        asked = _reports, self._run, self._n_reports, _SECONDS_OF_A_POLL
        answer = self._client.run(*asked, workers=self.addresses[:1], on_error="return")
        return asyncio.ensure_future(answer)

    @staticmethod
    async def _cancel(asked: Any) -> None:
        asked.cancel()

    async def _has_answer(self, seconds: float) -> bool:
        done, _ = await asyncio.wait([self._asking], timeout=seconds)
        return bool(done)

    def _answer(self) -> list[Any]:
        first, asked, self._asking = self.addresses[0], self._asking, None
        try:
            found = asked.result().get(first, OSError("it is gone"))
        except (OSError, TimeoutError) as error:
            found = error
        if isinstance(found, OSError):
            self._raise_problem()
            raise WorkerLost(f"Worker {first} was lost: {found}", first)
        if isinstance(found, BaseException):
            raise found
        reports: list[Any] = found
        return reports

    def _has_ended(self) -> bool:
        """Whether all members have ended, and all reports are there; raises the error of one that
        failed."""
        if self._results is None:
            if any(future.status != "finished" for future in self._futures):
                if any(future.status in ("error", "cancelled", "lost") for future in self._futures):
                    self._raise_problem()
                return False
            ended = gathered(self._client, self._futures, workers=self.addresses)
            self._results = [found for found, _ in ended]
            self._n_of_all_reports = ended[0][1]
        return self._n_reports == self._n_of_all_reports and not self._waiting

    def _known_workers(self) -> Any:
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def _raise_problem(self) -> None:
        """Raise the error of a member, or WorkerLost if a worker is gone."""
        stopped = None
        for future in self._futures:
            if future.status == "error":
                error = future.exception()
                if not isinstance(error, Stopped):
                    raise error
                stopped = error
        known = self._known_workers()
        for address in self.addresses:
            if address not in known:
                raise WorkerLost(f"Worker {address} was lost.", address)
        if any(future.status in ("cancelled", "lost") for future in self._futures):
            raise WorkerLost("The cluster has cancelled the tasks of a fit.")
        if stopped is not None and all(
            future.status in ("error", "finished") for future in self._futures
        ):
            raise WorkerLost(f"A member of a fit has ended: {stopped}")


def _shards(partitions: Partitions, workers: list[str]) -> list[Shard]:
    """The rows of each worker; partitions on disk stay where they are."""
    holders = partitions.holders()
    if partitions.on_disk:
        return shards_in_place(partitions.lengths, workers, holders)
    return plan_shards(partitions.lengths, workers, holders)


def _require_answers(answers: dict[str, Any]) -> None:
    for address, answer in answers.items():
        if isinstance(answer, OSError):
            raise WorkerLost(f"Worker {address} was lost: {answer}", address)
        if isinstance(answer, BaseException):
            raise answer


# -- on the workers --


class _Arguments:
    """Arguments in one object, so that Dask sends them as they are."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values


def _open_mailboxes(dask_worker: Any = None) -> None:
    open_mailboxes(dask_worker)


def _end(run: str, dask_worker: Any = None) -> None:
    open_mailboxes(dask_worker).end(run)


async def _reports(run: str, first: int, seconds: float, dask_worker: Any = None) -> list[Any]:
    mailbox = open_mailboxes(dask_worker).of(run)
    return [] if mailbox is None else await mailbox.reports_from(first, seconds)


def _run_program(
    run: str,
    addresses: list[str],
    rank: int,
    shard: Shard,
    X: list[Any],
    y: list[Any] | None,
    weight: list[Any] | None,
    program: Callable[..., Any],
    arguments: _Arguments,
) -> Any:
    """The task of a member."""
    # Members wait for each other, so none of them may wait for a thread of its worker.
    distributed.secede()
    worker = distributed.get_worker()
    mailbox = mailbox_of(worker, run)
    collective = WorkerCollective(worker, run, addresses, rank, is_wanted)
    member = Member(collective, _blocks(shard, X, y, weight), mailbox, threads_of_worker())
    if any(is_on_disk(partition) for partition in X):
        release_memory()
    try:
        collective.find_hosts()
        found = program(member, *arguments.values)
        collective.gather(None)  # nobody needs this worker any more
        mailbox.finish()
        return found, len(mailbox.reports)
    except BaseException:
        open_mailboxes(worker).end(run)
        raise
    finally:
        collective.close()
        if any(is_on_disk(partition) for partition in X):
            release_memory()


def _blocks(
    shard: Shard, X: list[Any], y: list[Any] | None, weight: list[Any] | None
) -> list[RowBlock]:
    def cut(values: list[Any] | None, place: int, first: int, last: int) -> Any:
        return None if values is None else values[place][first:last]

    return [
        RowBlock(
            start,
            last - first,
            cut(y, place, first, last),
            cut(weight, place, first, last),
            X[place],
            first,
        )
        for place, ((_, first, last), start) in enumerate(
            zip(shard.pieces, shard.first_rows(), strict=True)
        )
    ]
