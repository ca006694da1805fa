//! What the crate `tracing` receives.

#![cfg(feature = "tracing")]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the subscriber belongs to the tests and needs no model, and they damage files"
)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use windrow::{Db, Options, Recovery, Scrub, SegmentLimit};

/// The fields of an event, as text.
#[derive(Debug, Default, Clone)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

/// An event, its level, and the span that it came in.
type Received = (Fields, Level, Option<&'static str>);

#[derive(Debug, Default)]
struct State {
    spans: Vec<(&'static str, Fields)>,
    /// Entered and not left, of each thread.
    entered: HashMap<ThreadId, Vec<&'static str>>,
    events: Vec<Received>,
}

impl State {
    fn has(&self, event: &str) -> bool {
        let mut events = self.events.iter();
        events.any(|(fields, ..)| fields.0["event"] == event)
    }

    /// The first event of this name.
    #[track_caller]
    fn find(&self, event: &str) -> Received {
        let is_it = |(fields, ..): &&Received| fields.0["event"] == event;
        self.events.iter().find(is_it).unwrap().clone()
    }

    /// The fields of the first span of this name.
    #[track_caller]
    fn span(&self, name: &str) -> &BTreeMap<String, String> {
        let mut spans = self.spans.iter();
        &spans.find(|(own, _)| *own == name).unwrap().1.0
    }
}

/// Notes all spans and events.
#[derive(Debug, Default, Clone)]
struct Notes(Arc<Mutex<State>>);

impl Notes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a test. Jobs run in threads of the database, so the program has one subscriber, and one test at a time uses it.
struct Turn {
    notes: Notes,
    _turn: MutexGuard<'static, ()>,
}

impl Turn {
    fn begin() -> Self {
        static TURNS: Mutex<()> = Mutex::new(());
        static NOTES: OnceLock<Notes> = OnceLock::new();
        let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let notes = NOTES.get_or_init(|| {
            let notes = Notes::default();
            tracing::subscriber::set_global_default(notes.clone()).unwrap();
            notes
        });
        *notes.state() = State::default();
        Self {
            notes: notes.clone(),
            _turn: turn,
        }
    }

    /// What was noted since the last call. All databases are closed.
    fn take(&self) -> State {
        let state = std::mem::take(&mut *self.notes.state());
        assert!(state.entered.values().all(Vec::is_empty));
        state
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "windrow"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut state = self.state();
        state.spans.push((span.metadata().name(), fields));
        Id::from_u64(state.spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut state = self.state();
        let own = state.entered.get(&thread::current().id());
        let span = own.and_then(|own| own.last().copied());
        state.events.push((fields, *event.metadata().level(), span));
    }

    fn enter(&self, span: &Id) {
        let mut state = self.state();
        let name = state.spans[usize::try_from(span.into_u64()).unwrap() - 1].0;
        let own = state.entered.entry(thread::current().id());
        own.or_default().push(name);
    }

    fn exit(&self, _: &Id) {
        let mut state = self.state();
        let own = state.entered.get_mut(&thread::current().id());
        own.unwrap().pop();
    }
}

/// Options under which a few kilobytes make several tables.
fn tiny() -> Options {
    let mut options = Options::default();
    options.background_threads = 1;
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 4 << 10;
    options.keyspace.base_bytes = 16 << 10;
    options.keyspace.level0_runs = 2;
    options
}

/// The files in `folder` whose names have this ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap();
    let paths = paths.map(|file| file.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == ending))
        .collect()
}

#[test]
fn spans_and_events_are_traced() {
    let turn = Turn::begin();
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.job_log_bytes = 0;
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    loop {
        keyspace.insert("key", "value").unwrap();
        db.flush().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
        db.wait_idle().unwrap();
        let state = turn.notes.state();
        if state.has("flush_ended") && state.has("compaction_ended") {
            break;
        }
    }
    drop(keyspace);
    db.close().unwrap();
    let state = turn.take();
    assert_eq!(state.spans[0].0, "open");
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    assert!(state.span("open")["path"].ends_with(name));
    let (opened, level, span) = state.find("opened");
    assert_eq!((level, span), (Level::INFO, Some("open")));
    assert_eq!((&*opened.0["is_new"], &*opened.0["logs"]), ("true", "0"));
    assert!(!opened.0.contains_key("keyspace"));
    let (flushed, _, span) = state.find("flush_ended");
    assert_eq!(span, Some("flush"));
    assert_eq!(
        (&*flushed.0["keyspace"], &*flushed.0["entries"]),
        ("main", "1")
    );
    assert!(flushed.0["message"].starts_with("flush_ended keyspace=\"main\" "));
    assert!(flushed.0["duration"].parse::<f64>().unwrap() > 0.0);
    let (compacted, _, span) = state.find("compaction_ended");
    assert_eq!(
        (span, &*compacted.0["purpose"]),
        (Some("compaction"), "tree")
    );
    assert_eq!(state.find("closed").2, None);
}

#[test]
fn a_garbage_collection_is_a_span() {
    let turn = Turn::begin();
    let folder = tempfile::tempdir().unwrap();
    let mut options = tiny();
    // All values are in value logs.
    (options.keyspace.medium_from, options.keyspace.large_from) = (90, 90);
    options.keyspace.max_space_amp = 1.2;
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    let mut rounds = 0..100;
    while !turn.notes.state().has("garbage_collection_ended") {
        assert!(rounds.next().is_some(), "no garbage was collected");
        for number in 0..2000_u32 {
            let key = (number % 100).to_be_bytes();
            keyspace.insert(key, [7; 100]).unwrap();
        }
        db.flush().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
        db.wait_idle().unwrap();
    }
    drop(keyspace);
    db.close().unwrap();
    let state = turn.take();
    assert_eq!(state.span("garbage_collection")["keyspace"], "main");
    for event in ["garbage_collection_began", "garbage_collection_ended"] {
        let (fields, level, span) = state.find(event);
        assert_eq!((level, span), (Level::INFO, Some("garbage_collection")));
        assert_eq!(fields.0["keyspace"], "main");
        assert!(fields.0["files"].parse::<u64>().unwrap() > 0);
    }
    let (ended, ..) = state.find("garbage_collection_ended");
    assert!(ended.0["bytes_read"].parse::<u64>().unwrap() > 0);
    assert!(ended.0["values_dropped"].parse::<u64>().unwrap() > 0);
    assert!(ended.0["duration"].parse::<f64>().unwrap() > 0.0);
}

/// Makes ten commits in a new database in `folder`. The close leaves them in the log.
fn ten_commits(folder: &Path) {
    let db = Db::open(folder, Options::default()).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    for number in 0..10_u8 {
        keyspace.insert([number], [b'a' + number; 20]).unwrap();
    }
    drop(keyspace);
    db.close().unwrap();
}

#[test]
fn an_open_traces_what_it_recovers() {
    let turn = Turn::begin();
    let folder = tempfile::tempdir().unwrap();
    ten_commits(folder.path());
    turn.take();
    let db = Db::open(folder.path(), Options::default()).unwrap();
    db.close().unwrap();
    let state = turn.take();
    assert_eq!(state.spans[0].0, "open");
    let (opened, level, span) = state.find("opened");
    assert_eq!((level, span), (Level::INFO, Some("open")));
    assert_eq!(
        (&*opened.0["is_new"], &*opened.0["entries"]),
        ("false", "10")
    );
    assert!(opened.0["logs"].parse::<u64>().unwrap() > 0);
    // Ten commits with a key and a value each.
    assert!(opened.0["log_bytes"].parse::<u64>().unwrap() > 10 * 21);
    assert!(opened.0["duration"].parse::<f64>().unwrap() > 0.0);
}

#[test]
fn a_cut_history_is_a_warning_within_its_open() {
    let turn = Turn::begin();
    let folder = tempfile::tempdir().unwrap();
    ten_commits(folder.path());
    turn.take();
    let mut damaged = 0;
    for path in files(folder.path(), "wal") {
        let mut bytes = fs::read(&path).unwrap();
        // The value of the commit behind six others.
        if let Some(at) = bytes.windows(20).position(|it| it == [b'g'; 20]) {
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
    let mut options = Options::default();
    options.recovery = Recovery::UpToDamage;
    let db = Db::open(folder.path(), options).unwrap();
    db.close().unwrap();
    let state = turn.take();
    let (cut, level, span) = state.find("history_cut");
    assert_eq!((level, span), (Level::WARN, Some("open")));
    assert_eq!(cut.0["last_sequence"], "6");
    assert!(!cut.0["damage"].is_empty());
    assert_eq!(state.find("opened").0.0["entries"], "6");
}

#[test]
fn a_stall_is_traced_with_its_cause() {
    let turn = Turn::begin();
    let folder = tempfile::tempdir().unwrap();
    let has_stalled = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&has_stalled);
    // No flush goes on before a writer waits for it.
    let listener = move |event: &windrow::Event| match event {
        windrow::Event::StallBegan { .. } => seen.store(true, Ordering::Release),
        windrow::Event::FlushBegan { .. } => {
            let start = Instant::now();
            while !seen.load(Ordering::Acquire) && start.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        _ => {}
    };
    let db = Db::open(folder.path(), tiny().with_listener(Arc::new(listener))).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    let mut numbers = 0..10_000_u32;
    while !has_stalled.load(Ordering::Acquire) {
        let number = numbers.next().expect("a writer waits for the flush");
        keyspace.insert(number.to_be_bytes(), [7; 100]).unwrap();
    }
    drop(keyspace);
    db.close().unwrap();
    let state = turn.take();
    for event in ["stall_began", "stall_ended"] {
        let (stall, level, span) = state.find(event);
        assert_eq!((level, span), (Level::DEBUG, None));
        assert_eq!(stall.0["cause"], "memtables");
    }
    let (ended, ..) = state.find("stall_ended");
    assert!(ended.0["duration"].parse::<f64>().unwrap() > 0.0);
}

/// A scrub finds the damage of tables, and a compaction fails because of it.
#[test]
fn damage_and_a_failure_are_errors() {
    let turn = Turn::begin();
    let folder = tempfile::tempdir().unwrap();
    let mut options = tiny();
    // A compaction reads all of a table, instead of adding to it.
    options.keyspace.segment_limit = SegmentLimit::Fixed(1);
    let write = |db: &Db| {
        let keyspace = db.keyspace("main").unwrap();
        for number in 0..100_u32 {
            keyspace.insert(number.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush().unwrap();
    };
    let db = Db::open(folder.path(), options.clone()).unwrap();
    write(&db);
    db.wait_idle().unwrap();
    db.close().unwrap();
    let tables = files(folder.path(), "table");
    assert!(!tables.is_empty());
    for path in &tables {
        let mut bytes = fs::read(path).unwrap();
        // Entries come first.
        let at = bytes.len() / 4;
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    let names_a_table = |text: &str| {
        let mut names = tables.iter().map(|path| path.file_name().unwrap());
        names.any(|name| text.contains(name.to_str().unwrap()))
    };

    turn.take();
    let db = Db::open(folder.path(), options).unwrap();
    let report = db.scrub(&Scrub::default()).unwrap();
    assert!(!report.is_sound());
    let mut rounds = 0..100;
    while db.wait_idle().is_ok() {
        assert!(rounds.next().is_some(), "no compaction has failed");
        write(&db);
    }
    // It goes on to fail.
    drop(db.close());
    let state = turn.take();
    let (found, level, _) = state.find("damage_found");
    assert_eq!(level, Level::ERROR);
    assert!(names_a_table(&found.0["file"]), "{found:?}");
    assert!(!found.0["damage"].is_empty());
    let (failed, level, _) = state.find("job_failed");
    assert_eq!(level, Level::ERROR);
    assert_eq!(
        (&*failed.0["job"], &*failed.0["keyspace"]),
        ("compaction", "main")
    );
    assert!(names_a_table(&failed.0["error"]), "{failed:?}");
}
