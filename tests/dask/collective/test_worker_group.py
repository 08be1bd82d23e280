"""Workers that compute together: what is asked, reduced, refused, lost, and left behind."""

from __future__ import annotations

import itertools
import queue
import socket
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from tests.interrupts import PATIENCE, run_with_signals, wait_until

from margrove.dask.cluster.workers import available_workers, workers_of
from margrove.dask.collective import channels
from margrove.dask.collective.channels import (
    Channel,
    ChannelLost,
    accept_handshake,
    connect_to,
    listen_at,
)
from margrove.dask.collective.reductions import reduced
from margrove.dask.collective.worker_group import WorkerGroup, WorkerLost, refuse_encrypted
from margrove.dask.partitions.shards import plan_shards
from margrove.dask.partitions.table import partitions_of
from margrove.exceptions import ClusterError

PROGRAM = "tests.dask.collective.programs:Sums"
X = np.arange(200).reshape(100, 2)


@pytest.fixture
def partitions(cluster4):
    lazy = da.from_array(X, chunks=(17, 2))
    return partitions_of(lazy, lazy[:, 0] % 3, lazy[:, 1] * 0.5)


def new_group(client, partitions, n=4, program=PROGRAM, *arguments, **settings):
    shards = plan_shards(partitions.lengths, workers_of(client)[:n], partitions.holders())
    return WorkerGroup(client, shards, partitions, program, *arguments, **settings)


def unfinished(client):
    """Tasks of worker groups that some worker still runs."""
    held = client.run(lambda dask_worker: [str(key) for key in dask_worker.state.tasks])
    return [key for keys in held.values() for key in keys if "margrove-group" in key]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_sums_are_those_of_the_whole_table(cluster4, partitions, n):
    with new_group(cluster4, partitions, n) as group:
        assert group.n_workers == n
        np.testing.assert_array_equal(group.call("whole_sum"), X.sum(axis=0))
        found = group.call("all_kinds")
        assert found == {"n": 100, "pair": (X.sum(), [1.5 * n]), "nothing": None}
        assert group.call("largest", reduce="max") == 199
        assert group.call("largest", reduce="min") == group.call("largest", reduce="list")[0]


def test_lists_are_in_the_order_of_shards_and_workers_hold_their_rows(cluster4, partitions):
    with new_group(cluster4, partitions) as group:
        held = group.call("rows_held", reduce="list")
        assert held[0][0] == 0
        assert held[-1][1] == 100
        assert all(a[1] == b[0] for a, b in itertools.pairwise(held))
        assert group.call("rows_held", reduce="first") == held[0]
        assert group.call("rows_held", reduce="none") is None
        contents = group.call("contents", reduce="list")
    np.testing.assert_array_equal(np.concatenate([content[0] for content in contents]), X)
    np.testing.assert_array_equal(np.concatenate([content[1] for content in contents]), X[:, 0] % 3)
    np.testing.assert_array_equal(
        np.concatenate([content[2] for content in contents]), X[:, 1] * 0.5
    )


def test_each_can_get_other_arguments(cluster4, partitions):
    with new_group(cluster4, partitions) as group:
        arguments = [(np.full(3, k),) for k in range(4)]
        found = group.call_each("echo", arguments, reduce="list")
        assert [array.tolist() for array in found] == [[k] * 3 for k in range(4)]
        assert group.call_each("echo", arguments).tolist() == [6, 6, 6]
        with pytest.raises(ValueError, match=r"one tuple for each of 4 workers\. Got 1"):
            group.call_each("echo", arguments[:1])


def test_arrays_of_any_size_travel_unchanged_and_writable(cluster4, partitions):
    with new_group(cluster4, partitions, 2, PROGRAM, 3) as group:
        for size in (0, 1, 100_000, 1_000_000):
            sent = {"a": np.arange(size), "b": (np.ones((2, 3), np.float32, order="F"), "text")}
            back = group.call("echo", sent, reduce="first")
            np.testing.assert_array_equal(back["a"], sent["a"])
            assert back["a"].flags.writeable
            assert back["b"][1] == "text"
        assert group.call("is_writable", np.ones(3)) == 2
        np.testing.assert_array_equal(group.call("whole_sum"), 3 * X.sum(axis=0))
        assert group.call("threads", reduce="first") == (1, 1)


def test_an_error_of_a_worker_is_raised_here_and_the_group_goes_on(cluster4, partitions):
    with new_group(cluster4, partitions) as group:
        start = group.call("rows_held", reduce="list")[2][0]
        with pytest.raises(ValueError, match=f"row {start} is bad") as caught:
            group.call("fail_at", start)
        assert any("on worker tcp://" in note for note in caught.value.__notes__)
        with pytest.raises(RuntimeError, match="Unpicklable: odd"):
            group.call("fail_oddly")
        with pytest.raises(AttributeError, match="no_such_method"):
            group.call("no_such_method")
        with pytest.raises(ValueError, match="shapes"):
            group.call_each("echo", [(np.ones(k),) for k in range(4)])
        assert group.call("fail_at", -1) == 4
        with pytest.raises(ValueError, match="reduce must be one of"):
            group.call("largest", reduce="median")


def test_a_program_that_cannot_be_made_says_why(cluster4, partitions):
    with (
        pytest.raises(ValueError, match="no program of these rows"),
        new_group(cluster4, partitions, 2, "tests.dask.collective.programs:Broken"),
    ):
        pass
    with (
        pytest.raises(ModuleNotFoundError, match="no_such_module"),
        new_group(cluster4, partitions, 2, "no_such_module:Program"),
    ):
        pass


def test_leaving_ends_the_tasks_at_once(cluster4, partitions):
    with new_group(cluster4, partitions) as group:
        assert len(unfinished(cluster4)) == 4
    wait_until(lambda: not unfinished(cluster4))
    with pytest.raises(WorkerLost, match="has ended"):
        group.call("largest")
    wait_until(lambda: not any(cluster4.run(endpoints).values()))


def endpoints():
    """Where workers listen for each other; they look every second whether they are wanted."""
    return sum(thread.name == "margrove-endpoint" for thread in threading.enumerate())


INTERRUPTED = """
import sys
import dask.array as da
import distributed
import numpy as np
from margrove.dask.partitions.table import partitions_of
from tests.dask.collective.test_worker_group import new_group

with distributed.Client(sys.argv[1]) as client:
    partitions = partitions_of(da.from_array(np.arange(200).reshape(100, 2), chunks=(17, 2)))
    try:
        with new_group(client, partitions, 2) as group:
            request = group.start_call("wait_until_cancelled", 600.0)
            print("now", flush=True)
            group.finish_call(request)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_an_interrupt_ends_the_group_and_its_long_computations(cluster4):
    done = run_with_signals(INTERRUPTED, cluster4.scheduler.address)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    wait_until(lambda: not unfinished(cluster4))


def test_other_work_and_other_groups_run_meanwhile(cluster4, partitions):
    with new_group(cluster4, partitions) as one, new_group(cluster4, partitions) as other:
        assert da.ones(10, chunks=2).sum().compute() == 10
        assert one.call("largest", reduce="max") == other.call("largest", reduce="max")


def test_a_long_computation_is_not_silence(cluster4, partitions):
    with new_group(cluster4, partitions, 2, heartbeat_timeout=2.0) as group:
        assert group.call("sleep", 2.5) == 2


def test_connections_without_the_key_are_refused(cluster4, partitions):
    with new_group(cluster4, partitions, 2) as group:
        address = group._channels[0]._connection.getpeername()
        with pytest.raises((OSError, EOFError)):
            connect_to(address, b"not the key", -1)
        with socket.create_connection(address) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
            assert group.call("fail_at", -1) == 2


# -- channels --


@pytest.fixture
def pair():
    listener = listen_at("127.0.0.1")
    inboxes = queue.SimpleQueue(), queue.SimpleQueue()
    accepted = []

    def accept():
        connection, _ = listener.accept()
        assert accept_handshake(connection, b"key") == 7
        accepted.append(connection)

    thread = threading.Thread(target=accept)
    thread.start()
    called = connect_to(listener.getsockname(), b"key", 7)
    thread.join()
    ends = [
        Channel(connection, 0, inbox, 0.5)
        for connection, inbox in zip((called, accepted[0]), inboxes, strict=True)
    ]
    yield ends, inboxes
    for end in ends:
        end.close()
    listener.close()


def test_a_channel_that_is_silent_is_lost(pair):
    ends, inboxes = pair
    ends[1].start()
    who, message = inboxes[1].get(timeout=PATIENCE)
    assert (who, message.reason) == (0, "nothing was received from it for 0 seconds")


def test_heartbeats_keep_a_channel(pair):
    ends, inboxes = pair
    ends[1].start()
    for _ in range(10):
        ends[0].send_heartbeat()
        time.sleep(0.1)
    ends[0].send("still here")
    assert inboxes[1].get(timeout=PATIENCE) == (0, "still here")


def test_a_closed_channel_is_lost_at_once(pair):
    ends, inboxes = pair
    ends[1].start()
    ends[0].close()
    lost = inboxes[1].get(timeout=PATIENCE)[1]
    assert isinstance(lost, ChannelLost)
    assert "nothing was heard" not in lost.reason
    with pytest.raises(OSError, match="Bad file descriptor"):
        ends[0].send(1)
    ends[0].send_heartbeat()  # says nothing


def test_what_cannot_be_read_loses_the_channel(pair):
    ends, inboxes = pair
    ends[1].start()
    count = channels._COUNT.pack
    ends[0]._connection.sendall(count(1) + count(3) + b"abc")
    assert "cannot be read" in inboxes[1].get(timeout=PATIENCE)[1].reason


def test_an_absurd_number_of_buffers_loses_the_channel(pair):
    ends, inboxes = pair
    ends[1].start()
    ends[0]._connection.sendall(channels._COUNT.pack(2**60))
    assert "unknown format" in inboxes[1].get(timeout=PATIENCE)[1].reason


def test_a_host_that_is_not_ours_is_listened_for_everywhere():
    listener = listen_at("192.0.2.1")  # an address for documentation
    assert listener.getsockname()[0] == "0.0.0.0"
    listener.close()


def test_encrypted_clusters_are_refused_unless_that_is_allowed():
    refuse_encrypted(["tcp://10.0.0.1:1"])
    with pytest.raises(ClusterError, match=r"margrove\.plain-sockets"):
        refuse_encrypted(["tls://10.0.0.1:1"])
    with dask.config.set({"margrove.plain-sockets": True}):
        refuse_encrypted(["tls://10.0.0.1:1"])


def test_combinations_of_replies():
    assert reduced("sum", [1, 2, 3]) == 6
    assert reduced("sum", [2**62, 2**62, 2**62]) == 3 * 2**62
    assert reduced("max", [1.5, 2.5]) == 2.5
    assert reduced("min", [(np.array([3, 1]), 2), (np.array([2, 2]), 1)])[0].tolist() == [2, 1]
    assert reduced("list", [{0: "a"}, {2: "c"}]) == {0: "a", 2: "c"}
    assert isinstance(reduced("max", [1, 2]), int)


def test_the_cluster_is_as_it_was(cluster4):
    assert len(available_workers(cluster4)) == 4
