//! What the crate `tracing` receives.

#![cfg(feature = "tracing")]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    reason = "the subscriber belongs to the test and needs no model"
)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use windrow::{Db, Options};

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
    spans: Vec<&'static str>,
    /// Entered and not left, of each thread.
    entered: HashMap<ThreadId, Vec<&'static str>>,
    events: Vec<Received>,
}

/// Notes all events.
#[derive(Debug, Default, Clone)]
struct Notes(Arc<Mutex<State>>);

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "windrow"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut state = self.0.lock().unwrap();
        state.spans.push(span.metadata().name());
        Id::from_u64(state.spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut state = self.0.lock().unwrap();
        let own = state.entered.get(&thread::current().id());
        let span = own.and_then(|own| own.last().copied());
        state.events.push((fields, *event.metadata().level(), span));
    }

    fn enter(&self, span: &Id) {
        let mut state = self.0.lock().unwrap();
        let name = state.spans[usize::try_from(span.into_u64()).unwrap() - 1];
        let own = state.entered.entry(thread::current().id());
        own.or_default().push(name);
    }

    fn exit(&self, _: &Id) {
        let mut state = self.0.lock().unwrap();
        let own = state.entered.get_mut(&thread::current().id());
        own.unwrap().pop();
    }
}

#[test]
fn spans_and_events_are_traced() {
    let folder = tempfile::tempdir().unwrap();
    let notes = Notes::default();
    let mut options = Options::default();
    options.job_log_bytes = 0;
    // The only test of its program: jobs run in threads of the database, too.
    tracing::subscriber::set_global_default(notes.clone()).unwrap();
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    loop {
        keyspace.insert("key", "value").unwrap();
        db.flush().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
        db.wait_idle().unwrap();
        let state = notes.0.lock().unwrap();
        let has = |wanted: &str| {
            let mut events = state.events.iter();
            events.any(|(fields, ..)| fields.0["event"] == wanted)
        };
        if has("flush_ended") && has("compaction_ended") {
            break;
        }
    }
    drop(keyspace);
    db.close().unwrap();
    let state = notes.0.lock().unwrap();
    assert!(state.entered.values().all(Vec::is_empty));
    assert_eq!(state.spans[0], "open");
    let find = |event: &str| {
        let is_it = |(fields, ..): &&Received| fields.0["event"] == event;
        state.events.iter().find(is_it).unwrap().clone()
    };
    let (opened, level, span) = find("opened");
    assert_eq!((level, span), (Level::INFO, Some("open")));
    assert_eq!((&*opened.0["is_new"], &*opened.0["logs"]), ("true", "0"));
    assert!(!opened.0.contains_key("keyspace"));
    let (flushed, _, span) = find("flush_ended");
    assert_eq!(span, Some("flush"));
    assert_eq!(
        (&*flushed.0["keyspace"], &*flushed.0["entries"]),
        ("main", "1")
    );
    assert!(flushed.0["message"].starts_with("flush_ended keyspace=\"main\" "));
    assert!(flushed.0["duration"].parse::<f64>().unwrap() > 0.0);
    let (compacted, _, span) = find("compaction_ended");
    assert_eq!(
        (span, &*compacted.0["purpose"]),
        (Some("compaction"), "tree")
    );
    assert_eq!(find("closed").2, None);
}
