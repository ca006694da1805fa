"""Bytes in and out."""

import array
import ctypes

import pytest

import windrow


def test_all_objects_with_a_buffer_are_keys_and_values(keyspace):
    for value in (
        b"value",
        bytearray(b"value"),
        memoryview(b"value"),
        memoryview(b"a value")[2:],
        memoryview(bytearray(b"value")),
        array.array("b", b"value"),
        memoryview(b"v?a?l?u?e?")[::2],
    ):
        keyspace.clear()
        keyspace[memoryview(b"the key")[4:]] = value
        assert keyspace[bytearray(b"key")] == b"value"
        assert keyspace.compare_and_swap(b"key", value, None)
    keyspace[b"numbers"] = array.array("i", [1, 2])
    assert keyspace[b"numbers"] == array.array("i", [1, 2]).tobytes()
    for wrong in ("text", 5, None, [1]):
        for use in (keyspace.get, keyspace.__getitem__, keyspace.__contains__, keyspace.prefix, keyspace.pop):
            with pytest.raises(TypeError):
                use(wrong)
        with pytest.raises(TypeError):
            keyspace[b"a"] = wrong


def test_a_pinned_value_is_a_buffer_of_its_own(db, keyspace):
    keyspace[b"large"] = bytes(range(256)) * 1000
    keyspace[b"empty"] = b""
    for _ in range(2):
        value = keyspace.get_pinned(b"large")
        view = memoryview(value)
        assert view.readonly and len(value) == 256000 and view[300] == 44
        assert bytes(value) == keyspace[b"large"]
        with pytest.raises(TypeError):
            (ctypes.c_char * len(value)).from_buffer(value)
        keyspace.delete(b"large")
        assert view[-1] == 255
        keyspace[b"large"] = value
        db.flush()
    assert bytes(keyspace.get_pinned(b"empty")) == b""
    assert keyspace.get_pinned(b"none") is None
    db.close()
    assert view[256] == 0


@pytest.mark.parametrize("length", [0, 1, 4096, 4097, 1 << 20])
def test_values_of_each_length_come_back(db, keyspace, length):
    value = bytes(number % 251 for number in range(length))
    keyspace[b"key"] = value
    for _ in range(2):
        assert keyspace[b"key"] == value == dict(keyspace)[b"key"] == keyspace.get_many([b"key"])[0]
        assert keyspace.first() == (b"key", value)
        db.flush()


def test_limits_are_errors(keyspace):
    keyspace[b"k" * 65536] = b""
    for key in (b"", b"k" * 65537):
        with pytest.raises(windrow.InvalidArgumentError):
            keyspace[key] = b""
        with pytest.raises(ValueError):
            keyspace.get(key)
