"""Secondaries: states that do not change, beside a writer here and in another process."""

import gc
import subprocess
import sys
import threading
import time

import pytest

import windrow
from test_lifetime import in_child


def entries(state):
    """The entries of the keyspace `main` of a state."""
    if "main" not in state.keyspace_names():
        return {}
    return dict(state.keyspace("main", create=False))


def test_states_do_not_change(db, tmp_path):
    path = tmp_path / "db"
    with windrow.Secondary(path, cache_bytes=1 << 20) as secondary:
        assert secondary.path == path and "Secondary" in repr(secondary)
        empty = secondary.database()
        keyspace = db.keyspace("main")
        keyspace[b"a"] = b"1"
        keyspace[b"b"] = b"2"
        two = secondary.catch_up()
        del keyspace[b"a"]
        db.flush()
        keyspace[b"c"] = b"3"
        after = secondary.catch_up()
        for _ in range(2):
            assert (entries(empty), entries(two)) == ({}, {b"a": b"1", b"b": b"2"})
            assert entries(after) == {b"b": b"2", b"c": b"3"}
        with pytest.raises(windrow.ReadOnlyError):
            two.keyspace("main")[b"a"] = b"2"
        with pytest.raises(windrow.NotFoundError):
            two.keyspace("new")
        # The close of a state leaves it to others.
        with secondary.database() as again:
            assert entries(again) == entries(after)
        with pytest.raises(windrow.ClosedError):
            again.keyspace_names()
        assert entries(after) == {b"b": b"2", b"c": b"3"}
    for call in (secondary.database, secondary.catch_up, lambda: secondary.follow(1)):
        with pytest.raises(windrow.ClosedError):
            call()
    secondary.close()
    assert entries(two) == {b"a": b"1", b"b": b"2"}
    with pytest.raises(windrow.NotFoundError):
        windrow.Secondary(tmp_path / "nowhere")
    with pytest.raises(windrow.InvalidArgumentError):
        windrow.Secondary(path, colour="red")


def test_a_secondary_follows_by_itself(db, tmp_path):
    keyspace = db.keyspace("main")
    secondary = windrow.Secondary(tmp_path / "db")
    secondary.follow(0.001)
    keyspace[b"a"] = b"1"
    while entries(secondary.database()) != {b"a": b"1"}:
        time.sleep(0.001)
    with pytest.raises(ValueError):
        secondary.follow(-1)
    # It is freed with its thread.
    del secondary
    gc.collect()


def test_a_state_has_whole_batches_in_their_order(db, tmp_path):
    keyspace = db.keyspace("main")
    keyspace.update({b"x": b"0", b"y": b"0"})

    def write():
        for number in range(500):
            keyspace.update({b"x": b"%d" % number, b"y": b"%d" % number})

    writer = threading.Thread(target=write)
    with windrow.Secondary(tmp_path / "db") as secondary:
        writer.start()
        before = 0
        while before < 499:
            with secondary.catch_up() as state:
                seen = entries(state)
            assert seen[b"x"] == seen[b"y"]
            assert int(seen[b"x"]) >= before
            before = int(seen[b"x"])
        writer.join()


def test_a_writer_in_another_process_goes_on(tmp_path):
    program = """
import sys, windrow
with windrow.open(sys.argv[1]) as db:
    keyspace = db.keyspace("main")
    print("open", flush=True)
    for line in sys.stdin:
        keyspace[line.strip().encode()] = b"1"
        print("written", flush=True)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "open\n"
        with windrow.Secondary(tmp_path / "db") as secondary:
            with pytest.raises(windrow.LockedError):
                windrow.open(tmp_path / "db")
            for count in range(1, 5):
                writer.stdin.write(f"{count}\n")
                writer.stdin.flush()
                assert writer.stdout.readline() == "written\n"
                assert len(entries(secondary.catch_up())) == count
        writer.stdin.close()
        assert writer.wait() == 0


def test_a_child_of_a_fork_has_no_secondary(db, tmp_path):
    secondary = windrow.Secondary(tmp_path / "db")
    state = secondary.database()

    def in_the_child():
        for call in (secondary.database, secondary.catch_up, lambda: secondary.follow(1), state.keyspace_names):
            with pytest.raises(windrow.ForkError):
                call()
        secondary.close()

    assert in_child(in_the_child)
    db.keyspace("main")[b"a"] = b"1"
    assert entries(secondary.catch_up()) == {b"a": b"1"}
