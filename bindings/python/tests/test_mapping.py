"""A keyspace is a mutable mapping in the order of keys, and so are its ranges and prefixes."""

import collections.abc

import pytest

import windrow


def test_a_keyspace_is_a_mutable_mapping(planets):
    assert isinstance(planets, collections.abc.MutableMapping)
    assert planets[b"earth"] == b"1"
    assert b"earth" in planets and b"pluto" not in planets
    assert planets.get(b"pluto") is None
    assert planets.get(b"pluto", b"none") == b"none"
    assert planets.get(b"pluto", default=5) == 5
    assert len(planets) == 4
    with pytest.raises(KeyError) as missing:
        planets[b"pluto"]
    assert missing.value.args == (b"pluto",)
    del planets[b"earth"]
    with pytest.raises(KeyError):
        del planets[b"earth"]
    planets.delete(b"earth")
    assert list(planets) == [b"jupiter", b"mars", b"venus"]
    planets[b"jupiter"] = b"many"
    assert planets == {b"jupiter": b"many", b"mars": b"2", b"venus": b"0"}
    assert planets != {b"jupiter": b"many"}
    assert planets != 5


def test_the_methods_of_a_dict_do_what_those_of_a_dict_do(keyspace):
    model = {}
    for each in (keyspace, model):
        each.update({b"a": b"1", b"b": b"2"})
        each.update([(b"c", b"3")])
        assert each.setdefault(b"a", b"9") == b"1"
        assert each.setdefault(b"d", b"4") == b"4"
        assert each.pop(b"b") == b"2"
        assert each.pop(b"b", None) is None
        assert each.setdefault(b"a") == b"1"
        each.update()
        each.update({})
        with pytest.raises(TypeError):
            each.pop()
        with pytest.raises(KeyError):
            each.pop(b"b")
        with pytest.raises(TypeError):
            each.pop(b"b", 1, 2)
        assert (b"a", b"1") in each.items() and (b"a", b"2") not in each.items()
        assert b"a" in each.keys() and b"b" not in each.keys()
        assert (5, b"1") not in each.items()
        assert each.keys() & {b"a", b"x"} == {b"a"} == {b"a", b"x"} & each.keys()
        assert each.keys() | [b"x"] == {b"a", b"c", b"d", b"x"} == {b"x"} | each.keys()
        assert each.keys() - {b"a"} == {b"c", b"d"} and {b"a", b"x"} - each.keys() == {b"x"}
        assert each.keys() ^ {b"a", b"x"} == {b"c", b"d", b"x"} == {b"a", b"x"} ^ each.keys()
        assert each.items() & {(b"a", b"1"), (b"c", b"1")} == {(b"a", b"1")}
        assert each.keys().isdisjoint([b"b"]) and not each.keys().isdisjoint([b"c"])
        with pytest.raises(TypeError):
            each.values() & {b"1"}
        with pytest.raises(TypeError):
            each.keys() & 5
        assert b"3" in each.values() and b"9" not in each.values()
        assert len(each.items()) == 3
    assert dict(keyspace) == dict(keyspace.items()) == model
    assert keyspace.popitem() == (b"a", b"1")
    assert keyspace.popitem(last=True) == (b"d", b"4")
    keyspace.clear()
    assert not keyspace and len(keyspace) == 0
    with pytest.raises(KeyError):
        keyspace.popitem()


def test_the_methods_of_the_abstract_class_do_what_those_of_a_dict_do(keyspace):
    abstract = collections.abc.MutableMapping
    model = {}
    for each in (keyspace, model):
        assert abstract.setdefault(each, b"a", b"1") == b"1"
        abstract.update(each, {b"b": b"2"})
        abstract.update(each, [(b"c", b"3")])
        assert abstract.get(each, b"a") == b"1" and abstract.get(each, b"x") is None
        assert b"a" in collections.abc.KeysView(each) and len(collections.abc.ItemsView(each)) == 3
    assert keyspace == model
    assert keyspace.pop(b"x", default=7) == 7 and keyspace.pop(b"x", default=None) is None
    with pytest.raises(TypeError):
        keyspace.setdefault(b"x")
    with pytest.raises(TypeError):
        keyspace.update(a=b"1")
    abstract.clear(keyspace)
    assert not keyspace


def test_a_slice_is_a_view_of_a_range(planets):
    middle = planets[b"f":b"n"]
    assert list(middle.items()) == [(b"jupiter", b"97"), (b"mars", b"2")]
    assert len(middle) == 2 and b"earth" not in middle and middle.get(b"earth") is None
    assert list(planets[:b"f"]) == [b"earth"] and list(planets[b"n":]) == [b"venus"]
    assert list(planets[:]) == list(planets)
    assert list(middle[b"k":b"z"]) == [b"mars"]
    assert list(planets[b"n":b"f"]) == []
    assert middle.first() == (b"jupiter", b"97") and middle.last() == (b"mars", b"2")
    assert planets[b"x":].first() is None
    assert middle.get_many([b"mars", b"earth", b"x"]) == [b"2", None, None]
    with pytest.raises(windrow.InvalidArgumentError):
        middle[b"earth"] = b"moved"
    with pytest.raises(KeyError):
        del middle[b"earth"]
    with pytest.raises(TypeError):
        planets[b"a":b"z":2]
    with pytest.raises(TypeError):
        planets["a":]
    middle[b"mercury"] = b"0"
    assert planets[b"mercury"] == b"0"
    del planets[b"f":b"n"]
    assert list(planets) == [b"earth", b"venus"]


def test_a_prefix_is_a_view_without_it(keyspace):
    keyspace.update({b"a": b"", b"u": b"0", b"u/1": b"1", b"u/2": b"2", b"v": b""})
    users = keyspace.prefix(b"u/")
    assert dict(users) == {b"1": b"1", b"2": b"2"}
    assert list(reversed(users.items())) == [(b"2", b"2"), (b"1", b"1")]
    assert list(users[b"2":]) == [b"2"]
    users[b"3"] = b"3"
    assert keyspace[b"u/3"] == b"3" and users[b"3"] == b"3" and users.last() == (b"3", b"3")
    assert dict(keyspace.prefix(b"u").prefix(b"/")) == dict(users)
    assert keyspace.prefix(b"u").get(b"") == b"0"
    users.clear()
    assert list(keyspace) == [b"a", b"u", b"v"]
    keyspace[b"\xff\xff1"] = b""
    assert list(keyspace.prefix(b"\xff\xff")) == [b"1"]
    assert list(keyspace.prefix(b"")) == list(keyspace)


def test_a_view_at_a_snapshot_does_not_change(db, planets):
    with db.snapshot() as snapshot:
        view = planets.at(snapshot)
    planets.clear()
    assert isinstance(view, collections.abc.Mapping)
    assert not isinstance(view, collections.abc.MutableMapping)
    assert list(view) == [b"earth", b"jupiter", b"mars", b"venus"]
    assert view[b"mars":][b"venus"] == b"0" and type(view.prefix(b"m")) is windrow.View
    assert view.get_many([b"mars", b"pluto"]) == [b"2", None]
    with pytest.raises(TypeError):
        view[b"pluto"] = b"0"
    with pytest.raises(windrow.ClosedError):
        planets.at(snapshot)
    with pytest.raises(windrow.InvalidArgumentError):
        db.batch().put(view, b"pluto", b"0")


def test_changes_of_one_key_are_one_step(planets):
    assert planets.compare_and_swap(b"earth", b"1", b"2")
    assert not planets.compare_and_swap(b"earth", b"1", b"3")
    assert planets.compare_and_swap(b"pluto", None, b"5")
    assert planets.compare_and_swap(b"pluto", b"5", None)
    assert planets.change(b"earth", lambda moons: moons + b"!") == b"2!"
    assert planets.change(b"earth", lambda moons: None) is None
    assert b"earth" not in planets
    with pytest.raises(ZeroDivisionError):
        planets.change(b"mars", lambda moons: 1 / 0)


def test_values_expire(keyspace):
    keyspace.put(b"short", b"1", ttl=0.001)
    keyspace.put(b"long", b"2", ttl=3600, durability="sync")
    keyspace[b"ever"] = b"3"
    while b"short" in keyspace:
        pass
    assert list(keyspace) == [b"ever", b"long"]
    assert keyspace.expires_at(b"ever") is None
    assert keyspace.expires_at(b"long") > 1_700_000_000
    with pytest.raises(KeyError):
        keyspace.expires_at(b"short")
    with pytest.raises(ValueError):
        keyspace.put(b"short", b"1", ttl=-1)


def test_keyspaces_are_opened_renamed_and_dropped(db):
    cold = db.keyspace("cold", compression="lz4", block_bytes=8192)
    assert cold.options()["block_bytes"] == 8192 and cold.name == "cold"
    assert db.keyspace("cold", memtable_bytes=1 << 20).options()["block_bytes"] == 8192
    assert db.keyspace("plain", preset="leveling").options()["size_ratio"] == 10.0
    cold[b"a"] = b"1"
    cold.rename("warm")
    assert db.keyspace_names() == ["plain", "warm"]
    db.swap_keyspaces("plain", "warm")
    assert cold.name == "plain"
    with pytest.raises(windrow.NotFoundError):
        db.keyspace("cold", create=False)
    db.drop_keyspace("plain")
    with pytest.raises(windrow.NotFoundError):
        cold.get(b"a")


def test_sizes_are_estimated_and_compactions_run(db, keyspace):
    keyspace.update((b"%05d" % number, b"x" * 100) for number in range(5000))
    db.flush()
    keyspace.compact()
    db.wait_idle()
    assert 4000 < keyspace.approximate_len() < 6000
    assert keyspace[b"02500":].approximate_size() < keyspace.approximate_size()
    assert db.stats()["user_writes"] == 5000 and sum(db.memory().values()) > 0
    assert db.verify() == []
