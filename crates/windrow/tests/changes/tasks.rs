//! Tasks wait for changes as threads do: each is woken when it has an answer, by wakers that may do anything.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use windrow::{Change, Changes, Db, Durability, ErrorKind, Options, Result};

use crate::{batch, open};

/// Runs tasks on the thread of the call, each when it is woken. A wake-up that is lost lets it wait for ever.
#[derive(Default)]
struct Executor<'a> {
    tasks: BTreeMap<usize, Pin<Box<dyn Future<Output = ()> + 'a>>>,
}

struct Queued {
    task: usize,
    queue: mpsc::Sender<usize>,
}

impl Wake for Queued {
    fn wake(self: Arc<Self>) {
        // The executor may have ended.
        self.queue.send(self.task).ok();
    }
}

impl<'a> Executor<'a> {
    fn spawn(&mut self, task: impl Future<Output = ()> + 'a) {
        self.tasks.insert(self.tasks.len(), Box::pin(task));
    }

    /// Runs until all tasks have ended.
    fn run(mut self) {
        let (queue, woken) = mpsc::channel();
        for &task in self.tasks.keys() {
            queue.send(task).unwrap();
        }
        while !self.tasks.is_empty() {
            let task = woken.recv().unwrap();
            let queue = queue.clone();
            let waker = Waker::from(Arc::new(Queued { task, queue }));
            let mut context = Context::from_waker(&waker);
            let polled = self
                .tasks
                .get_mut(&task)
                .map(|it| it.as_mut().poll(&mut context));
            if polled.is_some_and(|polled| polled.is_ready()) {
                self.tasks.remove(&task);
            }
        }
    }
}

/// Waits for `future` on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut answer = None;
    let mut executor = Executor::default();
    executor.spawn(async { answer = Some(future.await) });
    executor.run();
    answer.unwrap()
}

async fn next(changes: &mut Changes) -> Option<Result<Change>> {
    poll_fn(|context| changes.poll_change(context)).await
}

/// Notes that it was called.
struct Alarm {
    calls: AtomicUsize,
    called: mpsc::Sender<()>,
}

impl Alarm {
    fn new() -> (Arc<Self>, mpsc::Receiver<()>) {
        let (called, calls) = mpsc::channel();
        let alarm = Self {
            calls: AtomicUsize::new(0),
            called,
        };
        (Arc::new(alarm), calls)
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.called.send(()).ok();
    }
}

/// Calls its function, once.
struct Call(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        let call = self.0.lock().unwrap().take();
        call.unwrap()();
    }
}

/// A waker that calls `call` when it is called.
fn calling(call: impl FnOnce() + Send + 'static) -> Waker {
    Arc::new(Call(Mutex::new(Some(Box::new(call))))).into()
}

fn poll(changes: &mut Changes, waker: &Waker) -> Poll<Option<Result<Change>>> {
    changes.poll_change(&mut Context::from_waker(waker))
}

/// Polls without an answer.
fn pend(changes: &mut Changes, waker: &Waker) {
    let polled = poll(changes, waker);
    assert!(polled.is_pending(), "{polled:?}");
}

/// A database with one keyspace, and a feed behind what is there.
fn begun() -> (tempfile::TempDir, Db, Changes) {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    db.keyspace("k").unwrap().insert("first", "1").unwrap();
    let changes = db.changes(db.snapshot().sequence() + 1).unwrap();
    (folder, db, changes)
}

fn write(db: &Db) {
    db.keyspace("k").unwrap().insert("more", "2").unwrap();
}

#[test]
fn tasks_see_what_concurrent_writers_commit() {
    const ROUNDS: u32 = 500;
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace("k").unwrap();
    let consumer = db.consumer("c").unwrap();
    let follow = async |mut changes: Changes| {
        let mut seen = [0_u32; 3];
        while seen != [ROUNDS; 3] {
            let change = next(&mut changes).await.unwrap().unwrap();
            for write in batch(&change) {
                let writer = usize::from(write.key[0]);
                assert_eq!(write.key[1..], seen[writer].to_be_bytes());
                seen[writer] += 1;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut executor = Executor::default();
                for _ in 0..3 {
                    executor.spawn(follow(consumer.changes().unwrap()));
                }
                executor.run();
            });
        }
        for writer in 0..3_u8 {
            let keyspace = &keyspace;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let key = [&[writer][..], &round.to_be_bytes()].concat();
                    let durability = match round % 50 {
                        0 => Durability::Sync,
                        _ => Durability::Buffered,
                    };
                    keyspace.insert_with(key, "value", durability).unwrap();
                    if round % 10 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
}

#[test]
fn every_kind_of_change_wakes_a_task() {
    type Step = (&'static str, fn(&Db));
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let consumer = db.consumer("c").unwrap();
    let mut changes = consumer.changes().unwrap();
    let steps: [Step; 6] = [
        ("created", |db| drop(db.keyspace("k").unwrap())),
        ("written", write),
        ("loaded", |db| {
            let entries = [(b"a".to_vec(), b"1".to_vec())];
            db.keyspace("k").unwrap().bulk_load(entries).unwrap();
        }),
        ("renamed", |db| {
            db.keyspace("k").unwrap().rename("l").unwrap();
        }),
        ("dropped", |db| db.drop_keyspace("l").unwrap()),
        ("closed", |db| db.clone().close().unwrap()),
    ];
    for (step, change) in steps {
        let (alarm, calls) = Alarm::new();
        pend(&mut changes, &Arc::clone(&alarm).into());
        change(&db);
        calls.recv().unwrap();
        let answer = block_on(next(&mut changes)).unwrap();
        match (step, answer) {
            ("created", Ok(Change::KeyspaceCreated { .. }))
            | ("written", Ok(Change::Batch(_)))
            | ("loaded", Ok(Change::TablesAdded { .. }))
            | ("renamed", Ok(Change::KeyspaceRenamed { .. }))
            | ("dropped", Ok(Change::KeyspaceDropped { .. })) => {}
            ("closed", Err(error)) if error.kind() == ErrorKind::Closed => {}
            (step, answer) => unreachable!("{step}: {answer:?}"),
        }
        assert_eq!(alarm.calls.load(Ordering::SeqCst), 1);
    }
    for _ in 0..2 {
        assert!(block_on(next(&mut changes)).is_none());
    }
}

#[test]
fn a_removal_of_its_consumer_wakes_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let mut changes = db.consumer("c").unwrap().changes().unwrap();
    let (alarm, calls) = Alarm::new();
    pend(&mut changes, &alarm.into());
    db.remove_consumer("c").unwrap();
    calls.recv().unwrap();
    let error = block_on(next(&mut changes)).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(block_on(next(&mut changes)).is_none());
}

#[test]
fn each_poll_replaces_the_waker_and_a_drop_forgets_it() {
    let (_folder, db, mut changes) = begun();
    let (first, _calls) = Alarm::new();
    let (second, calls) = Alarm::new();
    for _ in 0..3 {
        pend(&mut changes, &Arc::clone(&first).into());
        // One of ours, one of the database.
        assert_eq!(Arc::strong_count(&first), 2);
    }
    // The feed moves to another task on another thread.
    let moved = Arc::clone(&second).into();
    let mut changes = thread::spawn(move || {
        pend(&mut changes, &moved);
        changes
    })
    .join()
    .unwrap();
    assert_eq!(Arc::strong_count(&first), 1);
    write(&db);
    calls.recv().unwrap();
    assert_eq!(first.calls.load(Ordering::SeqCst), 0);
    assert!(block_on(next(&mut changes)).is_some());
    pend(&mut changes, &Arc::clone(&first).into());
    drop(changes);
    assert_eq!(Arc::strong_count(&first), 1);
    write(&db);
    db.close().unwrap();
    assert_eq!(first.calls.load(Ordering::SeqCst), 0);
}

#[test]
fn a_waker_that_uses_the_database_waits_for_nobody() {
    let (_folder, db, mut changes) = begun();
    let (sender, done) = mpsc::channel();
    let called = db.clone();
    let waker = calling(move || {
        let keyspace = called.keyspace("created by a waker").unwrap();
        for _ in 0..3 {
            keyspace.insert_with("a", "b", Durability::Sync).unwrap();
            called.flush().unwrap();
        }
        keyspace.compact_range::<&[u8]>(..).unwrap();
        called.set_background_threads(3).unwrap();
        called.wait_idle().unwrap();
        let mut changes = called.changes(1).unwrap();
        assert!(block_on(next(&mut changes)).unwrap().is_ok());
        called.close().unwrap();
        sender.send(()).unwrap();
    });
    pend(&mut changes, &waker);
    write(&db);
    done.recv().unwrap();
    loop {
        match block_on(next(&mut changes)).unwrap() {
            Ok(_) => {}
            Err(error) => break assert_eq!(error.kind(), ErrorKind::Closed),
        }
    }
}

#[test]
fn a_waker_that_drops_its_feed_and_the_last_handle_closes_the_database() {
    let (folder, db, changes) = begun();
    let place = Arc::new(Mutex::new(Some(changes)));
    let (let_go, is_last) = mpsc::channel();
    let (sender, closed) = mpsc::channel();
    let own = Arc::clone(&place);
    let waker = calling(move || {
        is_last.recv().unwrap();
        let changes = own.lock().unwrap().take();
        drop(changes);
        sender.send(()).unwrap();
    });
    pend(place.lock().unwrap().as_mut().unwrap(), &waker);
    drop(waker);
    write(&db);
    drop(db);
    let_go.send(()).unwrap();
    closed.recv().unwrap();
    let db = open(folder.path());
    let found = db.keyspace("k").unwrap().get("more").unwrap();
    assert_eq!(found.as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_close_waits_for_no_task() {
    let (_folder, db, mut changes) = begun();
    let (alarm, calls) = Alarm::new();
    pend(&mut changes, &alarm.into());
    thread::scope(|scope| {
        let task = scope.spawn(move || {
            calls.recv().unwrap();
            block_on(next(&mut changes)).unwrap().unwrap_err().kind()
        });
        db.close().unwrap();
        assert_eq!(task.join().unwrap(), ErrorKind::Closed);
    });
}

#[test]
fn a_feed_ends_and_its_database_closes_while_its_waker_is_called() {
    let (_folder, db, mut changes) = begun();
    let (begins, begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let (sender, found) = mpsc::channel();
    let called = db.clone();
    let waker = calling(move || {
        begins.send(()).unwrap();
        may_go_on.recv().unwrap();
        let refused = called.keyspace("k").unwrap_err();
        sender.send(refused.kind()).unwrap();
    });
    pend(&mut changes, &waker);
    write(&db);
    begun.recv().unwrap();
    drop(changes);
    let closes = {
        let db = db.clone();
        thread::spawn(move || db.close())
    };
    while db.keyspace("k").is_ok() {
        thread::yield_now();
    }
    go_on.send(()).unwrap();
    closes.join().unwrap().unwrap();
    assert_eq!(found.recv().unwrap(), ErrorKind::Closed);
}

#[test]
fn wakers_of_two_databases_close_each_other() {
    let opened = [begun(), begun()];
    let handles = opened.each_ref().map(|(_, db, _)| db.clone());
    let both_are_called = Arc::new(Barrier::new(2));
    let (sender, closed) = mpsc::channel();
    let [first, second] = &handles;
    let mut feeds = Vec::new();
    for ((folder, db, mut changes), other) in opened.into_iter().zip([second, first]) {
        let (barrier, sender) = (Arc::clone(&both_are_called), sender.clone());
        let other = other.clone();
        let waker = calling(move || {
            barrier.wait();
            other.close().unwrap();
            sender.send(()).unwrap();
        });
        pend(&mut changes, &waker);
        feeds.push((changes, folder));
        write(&db);
    }
    for _ in &feeds {
        closed.recv().unwrap();
    }
    for (changes, _) in &mut feeds {
        let error = block_on(next(changes)).unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
}

#[test]
fn the_changes_of_a_reader_end() {
    let (folder, db, changes) = begun();
    let position = changes.position();
    drop(changes);
    write(&db);
    db.close().unwrap();
    let reader = Db::open_read_only(folder.path(), Options::default()).unwrap();
    let mut changes = reader.changes(position).unwrap();
    let (alarm, _calls) = Alarm::new();
    let waker = Arc::clone(&alarm).into();
    assert!(matches!(
        poll(&mut changes, &waker),
        Poll::Ready(Some(Ok(Change::Batch(_))))
    ));
    for _ in 0..2 {
        assert!(matches!(poll(&mut changes, &waker), Poll::Ready(None)));
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&alarm), 1);
}
