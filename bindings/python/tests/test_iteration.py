"""Iterators go both ways, and stand between two entries."""

import contextlib
import gc
import random

import pytest

import windrow


def test_an_iterator_turns(planets):
    names = iter(planets)
    assert next(names) == b"earth" and names.prev() == b"earth" and next(names) == b"earth"
    assert next(names) == b"jupiter" and next(names) == b"mars" and next(names) == b"venus"
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(names)
    assert names.prev() == b"venus" and names.prev() == b"mars"
    names.seek(b"k")
    assert next(names) == b"mars"
    names.seek_to_last()
    assert names.prev() == b"venus"
    names.seek_to_first()
    with pytest.raises(StopIteration):
        names.prev()
    assert names.take(2) == [b"earth", b"jupiter"] and names.take(9) == [b"mars", b"venus"] and names.take(9) == []


def test_take_ends_after_some_bytes(keyspace):
    entries = [(b"%d" % number, b"x" * 99) for number in range(9)]
    keyspace.update(entries)
    items = iter(keyspace.items())
    assert items.take(9, max_bytes=250) == entries[:3] and items.take(9, max_bytes=100) == entries[3:4]
    assert items.take(2, max_bytes=1000) == entries[4:6] and items.take(9) == entries[6:]
    assert iter(keyspace).take(9, max_bytes=4) == [b"0", b"1", b"2", b"3"]


def test_an_iterator_reads_one_state(planets):
    items = iter(planets.items())
    assert next(items) == (b"earth", b"1")
    planets.clear()
    assert list(items) == [(b"jupiter", b"97"), (b"mars", b"2"), (b"venus", b"0")]


def test_a_closed_iterator_is_an_error(planets):
    with iter(planets) as names:
        next(names)
    for use in (names.__next__, names.prev, names.seek_to_first, lambda: names.take(1)):
        with pytest.raises(windrow.ClosedError):
            use()
    names.close()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_walks_are_those_over_a_list(db, keyspace, seed, reverse):
    chance = random.Random(seed)
    keys = sorted({b"%d" % chance.randrange(3000) for _ in range(700)})
    keyspace.update((key, key + b"=") for key in keys)
    if seed % 2:
        db.flush()
    low, high = sorted([b"%d" % chance.randrange(3000), b"%d" % chance.randrange(3000)])
    keys = [key for key in keys if low <= key < high]
    view = keyspace[low:high]
    items = (reversed if reverse else iter)(view.items())
    place = len(keys) if reverse else 0
    for _ in range(3000):
        action = chance.randrange(12)
        if action == 0:
            target = b"%d" % chance.randrange(3000)
            items.seek(target)
            place = sum(key < target for key in keys)
        elif action == 1 and chance.randrange(20) == 0:
            items.seek_to_last()
            place = len(keys)
        else:
            goes_on = action < 8
            forward = goes_on != reverse
            at = place if forward else place - 1
            step = items.__next__ if goes_on else items.prev
            if 0 <= at < len(keys):
                assert step() == (keys[at], keys[at] + b"=")
                place += 1 if forward else -1
            else:
                with pytest.raises(StopIteration):
                    step()


def test_the_collector_of_garbage_may_close_the_iterator_that_makes_an_object(db, planets):
    class Closing:
        def __init__(self, closed):
            self.closed = closed
            self.itself = self

        def __del__(self):
            self.closed.close()

    transaction = db.transaction()
    threshold = gc.get_threshold()
    gc.disable()
    try:
        for make in (
            lambda: iter(planets.items()),
            lambda: transaction.items(planets),
            lambda: db.merged_items(planets, planets),
        ):
            for step in (next, lambda it: it.take(2) if hasattr(it, "take") else next(it)):
                iterator = make()
                Closing(iterator)
                gc.enable()
                gc.set_threshold(1)
                # The collector may come before the step, within it or after it.
                with contextlib.suppress(windrow.ClosedError, StopIteration):
                    assert step(iterator)
                gc.set_threshold(*threshold)
                gc.disable()
                gc.collect()
                with contextlib.suppress(windrow.ClosedError, StopIteration):
                    next(iterator)
                    raise AssertionError("the iterator is open")
    finally:
        gc.set_threshold(*threshold)
        gc.enable()
