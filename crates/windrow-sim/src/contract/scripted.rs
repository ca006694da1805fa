//! Histories that are written by hand: limits and errors, and what the model does not know. The engine gives their answers, too.
//!
//! Concurrency: none.

use super::{Action, Answer, Begin, Bytes, History, LISTS, MAIN, Place, Step, Write};

/// The longest key.
const KEY_BYTES_MAX: usize = 64 << 10;

/// A time to live that ends long after the history, in milliseconds: ten days.
const TIME_TO_LIVE: u64 = 864_000_000;

const LATEST: Place = Place::Latest;

/// All of them.
pub(super) fn histories() -> Vec<History> {
    vec![
        history("limits and errors", limits),
        history("locking transactions", locks),
        history("prepared transactions", prepared),
        history("changes", changes),
    ]
}

fn history(name: &str, write: fn(&mut Script)) -> History {
    let mut script = Script(Vec::new());
    write(&mut script);
    History {
        name: name.to_owned(),
        steps: script.0,
    }
}

struct Script(Vec<Step>);

impl Script {
    fn push(&mut self, action: Action, place: Place, answer: Answer) {
        self.0.push(Step {
            action,
            place,
            answer,
        });
    }

    /// A step that succeeds.
    fn push_done(&mut self, action: Action, place: Place) {
        self.push(action, place, Answer::Done);
    }

    fn push_error(&mut self, action: Action, place: Place, kind: &'static str) {
        self.push(action, place, Answer::Error(kind));
    }
}

fn key(text: &str) -> Bytes {
    text.as_bytes().to_vec()
}

fn put(text: &str, value: &str) -> Action {
    Action::Write(Write::Put(MAIN, key(text), key(value)))
}

fn get(text: &str) -> Action {
    Action::Get(MAIN, key(text))
}

fn get_for_update(text: &str) -> Action {
    Action::GetForUpdate(MAIN, key(text))
}

fn delete_range(start: &str, end: Option<&str>) -> Write {
    Write::DeleteRange(MAIN, (Some(key(start)), end.map(key)))
}

fn value(text: &str) -> Answer {
    Answer::Value(Some(key(text)))
}

const NO_VALUE: Answer = Answer::Value(None);

/// What each language must refuse, and the longest key that it must not.
fn limits(script: &mut Script) {
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let longer = vec![b'k'; KEY_BYTES_MAX + 1];
    let put = |key: &Bytes| Action::Write(Write::Put(MAIN, key.clone(), b"1".to_vec()));
    let get = |key: &Bytes| Action::Get(MAIN, key.clone());
    let key = b"a".to_vec();
    for wrong in [&Bytes::new(), &longer] {
        let delete = Write::Delete(MAIN, wrong.clone());
        for action in [
            put(wrong),
            get(wrong),
            Action::MultiGet(MAIN, vec![key.clone(), wrong.clone()]),
            Action::ExpiresAt(MAIN, wrong.clone()),
            Action::PutIfAbsent(MAIN, wrong.clone(), key.clone()),
            Action::CompareAndSwap(MAIN, wrong.clone(), None, Some(key.clone())),
            Action::Write(delete.clone()),
            Action::Batch(vec![delete]),
        ] {
            script.push_error(action, LATEST, "InvalidArgument");
        }
    }
    script.push_done(put(&longest), LATEST);
    script.push(get(&longest), LATEST, value("1"));
    // A keyspace has merges or values that expire.
    for write in [
        Write::Merge(MAIN, key.clone(), key.clone()),
        Write::PutFor(LISTS, key.clone(), key.clone(), TIME_TO_LIVE),
    ] {
        script.push_error(Action::Write(write), LATEST, "InvalidArgument");
    }
    // An empty range and one whose end comes first have no keys.
    for end in [b"a", b"A"] {
        let range = (Some(key.clone()), Some(end.to_vec()));
        let delete = Write::DeleteRange(MAIN, range.clone());
        script.push_done(Action::Write(delete), LATEST);
        let scan = Action::Scan(MAIN, range, false);
        script.push(scan, LATEST, Answer::Entries(Vec::new()));
    }
    script.push_error(Action::OpenAgain, LATEST, "Locked");

    let reader = Place::Transaction(1);
    script.push_done(Action::Begin(Begin::Serializable), reader);
    script.push(get(&key), reader, NO_VALUE);
    script.push_done(put(&key), LATEST);
    script.push(get(&key), reader, NO_VALUE);
    script.push_done(put(&longest), reader);
    script.push_error(put(&longer), reader, "InvalidArgument");
    script.push_error(Action::Commit, reader, "Conflict");

    let writer = Place::Transaction(2);
    script.push_done(Action::Snapshot(1), LATEST);
    script.push_done(Action::Begin(Begin::Serializable), writer);
    script.push_done(put(&key), writer);
    script.push_done(Action::Close, LATEST);
    for place in [LATEST, Place::Snapshot(1), writer] {
        script.push_error(get(&longest), place, "Closed");
        let scan = Action::Scan(MAIN, (None, None), false);
        script.push_error(scan, place, "Closed");
    }
    script.push_error(put(&key), LATEST, "Closed");
    script.push_error(Action::Commit, writer, "Closed");
    script.push_error(Action::Flush, LATEST, "Closed");
    script.push_done(Action::Release(1), LATEST);
    script.push_done(Action::Reopen, LATEST);
    script.push(get(&key), LATEST, value("1"));
}

/// Locks that are taken and are not free, savepoints that release them, a write that waits for none, and reads for an update.
fn locks(script: &mut Script) {
    let [first, second] = [1, 2].map(Place::Transaction);
    script.push_done(put("a", "1"), LATEST);
    script.push_done(Action::Begin(Begin::Locking), first);
    script.push_done(Action::Begin(Begin::Locking), second);
    script.push(get_for_update("a"), first, value("1"));
    script.push(get("a"), LATEST, value("1"));
    script.push_error(put("a", "2"), second, "TimedOut");
    script.push_error(get_for_update("a"), second, "TimedOut");
    script.push_done(put("b", "2"), second);
    script.push_error(get_for_update("b"), first, "TimedOut");

    // The locks behind a savepoint go with it.
    script.push_done(Action::Savepoint(1), first);
    script.push_done(put("c", "1"), first);
    script.push_error(get_for_update("c"), second, "TimedOut");
    script.push_done(Action::RollBackTo(1), first);
    script.push(get_for_update("c"), second, NO_VALUE);
    script.push_error(put("c", "1"), first, "TimedOut");

    // A read under a lock finds what was committed since the begin.
    script.push_done(put("a", "3"), first);
    script.push_done(Action::Commit, first);
    script.push(get_for_update("a"), second, value("3"));
    script.push_done(put("a", "4"), second);
    script.push_done(Action::Commit, second);
    script.push(get("a"), LATEST, value("4"));
    script.push(get("b"), LATEST, value("2"));

    // Who takes no locks waits for none, and the commit finds it.
    let third = Place::Transaction(3);
    script.push_done(Action::Begin(Begin::Locking), third);
    script.push(get_for_update("a"), third, value("4"));
    script.push_done(put("a", "5"), LATEST);
    script.push_done(put("b", "6"), third);
    script.push_error(Action::Commit, third, "Conflict");
    script.push(get("a"), LATEST, value("5"));
    script.push(get("b"), LATEST, value("2"));

    let [fourth, fifth] = [4, 5].map(Place::Transaction);
    let delete = Action::Write(delete_range("a", Some("z")));
    script.push_done(Action::Begin(Begin::Locking), fourth);
    script.push_done(Action::Begin(Begin::Locking), fifth);
    script.push_done(put("d", "1"), fourth);
    script.push_error(delete.clone(), fifth, "TimedOut");
    script.push_done(Action::RollBack, fourth);
    script.push_done(delete, fifth);
    script.push_done(Action::Commit, fifth);
    let scan = Action::Scan(MAIN, (None, None), false);
    script.push(scan, LATEST, Answer::Entries(Vec::new()));

    // Without locks, the commit alone finds what has changed since a read for an update, and not since a plain one.
    let [covered, plain] = [6, 7].map(Place::Transaction);
    script.push_done(Action::Begin(Begin::Snapshot), covered);
    script.push_done(Action::Begin(Begin::Snapshot), plain);
    script.push(get_for_update("a"), covered, NO_VALUE);
    script.push(get("a"), plain, NO_VALUE);
    script.push_done(put("a", "7"), LATEST);
    script.push(get_for_update("a"), covered, NO_VALUE);
    script.push_done(put("b", "8"), covered);
    script.push_done(put("c", "9"), plain);
    script.push_error(Action::Commit, covered, "Conflict");
    script.push_done(Action::Commit, plain);
    script.push(get("b"), LATEST, NO_VALUE);
    script.push(get("c"), LATEST, value("9"));
}

/// Transactions that wait for the second phase of their commit, also over a close.
fn prepared(script: &mut Script) {
    let names = |names: &[&'static str]| Answer::Names(names.to_vec());
    let merge = Action::Write(Write::Merge(LISTS, key("l"), key("x")));
    let [first, second, third] = [1, 2, 3].map(Place::Transaction);
    script.push_done(Action::Begin(Begin::Serializable), first);
    script.push(get("r"), first, NO_VALUE);
    script.push_done(put("a", "1"), first);
    script.push_done(merge, first);
    script.push_done(Action::Prepare("one"), first);
    script.push(Action::PreparedNames, LATEST, names(&["one"]));
    // Nobody sees or changes what it writes, and nobody changes what it has read.
    script.push(get("a"), LATEST, NO_VALUE);
    script.push_error(put("a", "2"), LATEST, "Conflict");
    script.push_error(put("r", "2"), LATEST, "Conflict");
    script.push_done(put("b", "2"), LATEST);
    script.push_done(Action::Begin(Begin::Locking), second);
    script.push_error(put("a", "3"), second, "TimedOut");
    script.push_done(Action::RollBack, second);

    script.push_done(Action::Begin(Begin::Snapshot), second);
    script.push_done(put("c", "2"), second);
    script.push_error(Action::Prepare("one"), second, "AlreadyExists");
    script.push_done(Action::Begin(Begin::Locking), second);
    script.push_done(put("c", "3"), second);
    script.push_error(Action::Prepare(""), second, "InvalidArgument");
    script.push_done(Action::Begin(Begin::Locking), second);
    script.push_done(put("c", "4"), second);
    script.push_done(Action::Prepare("two"), second);
    script.push(Action::PreparedNames, LATEST, names(&["one", "two"]));

    script.push_done(Action::Reopen, LATEST);
    script.push(Action::PreparedNames, LATEST, names(&["one", "two"]));
    script.push_error(put("a", "2"), LATEST, "Conflict");
    script.push_done(Action::CommitPrepared("one"), LATEST);
    script.push_error(Action::CommitPrepared("one"), LATEST, "NotFound");
    script.push(get("a"), LATEST, value("1"));
    let list = Action::Get(LISTS, key("l"));
    script.push(list, LATEST, value("x"));
    script.push_done(put("a", "2"), LATEST);
    script.push_done(Action::RollBackPrepared("two"), LATEST);
    script.push_error(Action::RollBackPrepared("two"), LATEST, "NotFound");
    script.push(get("c"), LATEST, NO_VALUE);
    script.push_done(put("c", "5"), LATEST);
    script.push(Action::PreparedNames, LATEST, names(&[]));

    // To prepare is to commit, as far as conflicts go.
    script.push_done(Action::Begin(Begin::Serializable), third);
    script.push(get("a"), third, value("2"));
    script.push_done(put("d", "1"), third);
    script.push_done(put("a", "3"), LATEST);
    script.push_error(Action::Prepare("three"), third, "Conflict");
    script.push(Action::PreparedNames, LATEST, names(&[]));
    script.push(get("d"), LATEST, NO_VALUE);
}

/// All kinds of writes as changes, and consumers with places of their own, also over a close.
fn changes(script: &mut Script) {
    let read = || Action::Changes("one");
    script.push_done(put("a", "0"), LATEST);
    script.push_done(Action::Consumer("one"), LATEST);
    script.push(read(), LATEST, Answer::Changes(Vec::new()));

    let put = |text: &str, value: &str| Write::Put(MAIN, key(text), key(value));
    let merge = Write::Merge(LISTS, key("l"), key("x"));
    let mut expected = Vec::new();
    for write in [
        put("a", "1"),
        merge.clone(),
        Write::Delete(MAIN, key("a")),
        delete_range("b", Some("d")),
        delete_range("x", None),
        Write::PutFor(MAIN, key("e"), key("2"), TIME_TO_LIVE),
    ] {
        script.push_done(Action::Write(write.clone()), LATEST);
        expected.push(vec![write]);
    }
    let batch = vec![put("b", "1"), merge, Write::Delete(MAIN, key("e"))];
    script.push_done(Action::Batch(batch.clone()), LATEST);
    expected.push(batch);

    let transaction = Place::Transaction(1);
    script.push_done(Action::Begin(Begin::Snapshot), transaction);
    script.push_done(Action::Write(put("t", "1")), transaction);
    script.push(read(), LATEST, Answer::Changes(expected.clone()));
    script.push_done(Action::Commit, transaction);
    expected.push(vec![put("t", "1")]);
    script.push_done(Action::Begin(Begin::Snapshot), transaction);
    script.push_done(Action::Write(put("t", "2")), transaction);
    script.push_done(Action::RollBack, transaction);
    script.push(read(), LATEST, Answer::Changes(expected.clone()));

    script.push_done(Action::Acknowledge("one", 3), LATEST);
    expected.drain(..3);
    script.push(read(), LATEST, Answer::Changes(expected.clone()));
    script.push_done(Action::Consumer("two"), LATEST);
    let names = Answer::Names(vec!["one", "two"]);
    script.push(Action::ConsumerNames, LATEST, names);
    script.push(Action::Changes("two"), LATEST, Answer::Changes(Vec::new()));
    script.push_done(Action::Flush, LATEST);
    script.push_done(Action::Compact(MAIN), LATEST);
    script.push_done(Action::Reopen, LATEST);
    for name in ["one", "two"] {
        script.push_done(Action::Consumer(name), LATEST);
    }
    script.push(read(), LATEST, Answer::Changes(expected.clone()));
    script.push_done(Action::Acknowledge("one", expected.len()), LATEST);
    script.push(read(), LATEST, Answer::Changes(Vec::new()));

    let last = vec![vec![put("z", "1")]];
    script.push_done(Action::Write(put("z", "1")), LATEST);
    script.push(
        Action::Changes("two"),
        LATEST,
        Answer::Changes(last.clone()),
    );
    script.push_done(Action::RemoveConsumer("two"), LATEST);
    script.push_error(Action::Changes("two"), LATEST, "NotFound");
    script.push_error(Action::RemoveConsumer("two"), LATEST, "NotFound");
    script.push(Action::ConsumerNames, LATEST, Answer::Names(vec!["one"]));
    script.push(read(), LATEST, Answer::Changes(last));
}
