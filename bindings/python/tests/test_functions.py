"""Functions of the program that a database calls: merge operators and listeners."""

import queue
import subprocess
import sys
import threading

import pytest

import windrow


class List:
    """Makes lists with commas. The operand `bad` is an exception."""

    name = "test.list"

    def __init__(self):
        self.calls = set()

    def merge(self, key, base, operands):
        self.calls.add(threading.get_ident())
        if b"bad" in operands:
            raise ValueError("this operand is bad")
        return b",".join(operands if base is None else [base, *operands])

    def partial_merge(self, key, operands):
        return None if key == b"whole" or b"bad" in operands else bytearray(b",".join(operands))


def test_a_merge_operator_in_python_folds(tmp_path):
    operator = List()
    with windrow.open(tmp_path, merge_operators={"main": operator}) as db:
        main = db.keyspace("main")
        main[b"based"] = b"0"
        for key in (b"based", b"none", b"whole"):
            for operand in (b"1", b"", b"x" * 1000):
                main.merge(key, operand)
        tail = b"1,," + b"x" * 1000
        expected = {b"based": b"0," + tail, b"none": tail, b"whole": tail}
        for _ in range(3):
            assert main == expected and main[b"none"] == tail
            assert main.at(db.snapshot()).get(b"whole") == tail
            with db.transaction() as transaction:
                transaction.merge(main, b"none", b"2")
                assert transaction.get(main, b"none") == tail + b",2"
                transaction.roll_back()
            main.compact()
        with db.batch() as batch:
            batch.merge(main, b"none", b"3")
        assert main[b"none"] == tail + b",3"
        assert threading.get_ident() in operator.calls
    with windrow.open(tmp_path) as db, pytest.raises(windrow.MergeError, match="test.list"):
        db.keyspace("main")[b"none"]


def test_an_exception_of_an_operator_is_an_error_of_its_key(tmp_path):
    with windrow.open(tmp_path, merge_operators={"main": List()}) as db:
        main = db.keyspace("main")
        for key, operand in ((b"a", b"1"), (b"a", b"bad"), (b"b", b"1")):
            main.merge(key, operand)
        for _ in range(2):
            with pytest.raises(windrow.MergeError, match="this operand is bad"):
                main[b"a"]
            assert main[b"b"] == b"1"
            main.compact()
    for wrong in (5, object(), type("Nameless", (), {"merge": len})()):
        with pytest.raises(AttributeError):
            windrow.open(tmp_path, merge_operators={"main": wrong})


def test_a_result_that_is_not_bytes_is_an_error(tmp_path):
    class Wrong:
        name = "test.wrong"
        merge = staticmethod(lambda key, base, operands: "text")

    with windrow.open(tmp_path, merge_operators={"main": Wrong()}) as db:
        db.keyspace("main").merge(b"a", b"1")
        with pytest.raises(windrow.MergeError, match="not str"):
            db.keyspace("main")[b"a"]


def test_threads_merge_and_compact_at_once(tmp_path):
    with windrow.open(tmp_path, merge_operators={"main": List()}, keyspace={"memtable_bytes": 1 << 16}) as db:
        main = db.keyspace("main")
        failed = []

        def work(key):
            for number in range(200):
                main.merge(key, b"%03d" % number)
                if main[key] != b",".join(b"%03d" % before for before in range(number + 1)):
                    failed.append((key, number))
            main.compact()

        threads = [threading.Thread(target=work, args=(b"%d" % number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


def test_a_listener_gets_the_events(tmp_path):
    events = queue.Queue()
    with windrow.open(tmp_path, listener=events.put) as db:
        db.keyspace("main")[b"a"] = b"1"
        db.flush()
        while True:
            event = events.get()
            if event["event"] == "flush_ended":
                assert event["keyspace"] == "main"
                break


def test_a_listener_may_make_all_calls(tmp_path):
    opened, closed = queue.Queue(), threading.Event()

    def listener(event):
        db = opened.get()
        db.keyspace("events")[b"last"] = event["event"].encode()
        db.close()
        closed.set()
        raise RuntimeError("this goes to the hook")

    hooked = queue.Queue()
    before, sys.unraisablehook = sys.unraisablehook, lambda unraisable: hooked.put(unraisable.exc_value)
    try:
        db = windrow.open(tmp_path, listener=listener)
        db.keyspace("main")[b"a"] = b"1"
        opened.put(db)
        try:
            db.flush()
        except windrow.ClosedError:
            pass
        closed.wait()
        assert str(hooked.get()) == "this goes to the hook"
    finally:
        sys.unraisablehook = before
    with windrow.open(tmp_path) as db:
        assert db.keyspace("events")[b"last"]


@pytest.mark.parametrize("options", ['merge_operators={"main": Last()}', "listener=lambda event: None", ""])
def test_a_database_with_functions_is_closed_at_the_exit(tmp_path, options):
    program = f"""
import atexit
# It runs after what windrow registers.
atexit.register(lambda: print(db.closed))
import windrow
class Last:
    name = "test.last"
    def merge(self, key, base, operands):
        return operands[-1]
db = windrow.open({str(tmp_path)!r}, {options})
main = db.keyspace("main", memtable_bytes=1 << 16)
for number in range(5000):
    if "Last" in {options!r}:
        main.merge(b"%d" % (number % 10), b"x" * 100)
    else:
        main[b"%d" % number] = b"x" * 100
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert run.stdout.split() == [b"True" if options else b"False"] and not run.stderr
