//! What an I/O means to the engine: which durable step it is, and which kinds of edits a write to
//! the manifest carries.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::disk::{Event, OperationKind};

/// The bytes before the payload of a long chunk of a log, as all of a manifest are.
const CHUNK_HEADER_BYTES: usize = 20;

/// The kinds of records of an edit, by tag less one; see "Manifest" in `docs/format.md`.
const EDIT_RECORDS: [&str; 23] = [
    "format version",
    "next id",
    "create keyspace",
    "add file",
    "remove file",
    "level count",
    "flushed",
    "add log",
    "oldest log",
    "log end",
    "log synced",
    "drop keyspace",
    "used",
    "keyspace options",
    "add run",
    "add value log",
    "value log at",
    "seal value log",
    "add successor",
    "relocate",
    "add dead",
    "take dead",
    "add segment",
];

/// The place of "add value log" in these.
const ADD_VALUE_LOG: usize = 15;

/// The durable steps of a history besides edits.
const STEPS: [&str; 33] = [
    "folder create",
    "folder sync",
    "LOCK create",
    "log create",
    "log write",
    "log sync",
    "log remove",
    "table create",
    "table write",
    "table sync",
    "segment write",
    "segment sync",
    "table link",
    "table remove",
    "value file create",
    "run write",
    "run sync",
    "value log write",
    "value log sync",
    "value file link",
    "value file remove",
    "discard list create",
    "discard list write",
    "discard list sync",
    "discard list remove",
    "manifest create",
    "manifest write",
    "manifest sync",
    "manifest remove",
    "CURRENT.new create",
    "CURRENT.new write",
    "CURRENT.new sync",
    "CURRENT rename",
];

/// The durable steps of recovery.
const RECOVERY_STEPS: [&str; 21] = [
    "folder sync",
    "log create",
    "log write",
    "log sync",
    "log remove",
    "table remove",
    "value log write",
    "value log sync",
    "value file remove",
    "discard list remove",
    "edit synced: add run",
    "edit synced: add successor",
    "edit synced: seal value log",
    "manifest create",
    "manifest write",
    "manifest sync",
    "manifest remove",
    "CURRENT.new create",
    "CURRENT.new write",
    "CURRENT.new sync",
    "CURRENT rename",
];

/// The names of all steps that a sweep must cross.
pub(super) fn required() -> impl Iterator<Item = String> {
    let edits = EDIT_RECORDS
        .iter()
        .flat_map(|record| ["written", "synced"].map(|verb| format!("edit {verb}: {record}")));
    STEPS
        .iter()
        .map(|step| (*step).to_owned())
        .chain(edits)
        .chain(RECOVERY_STEPS.iter().map(|step| in_recovery(step)))
}

/// The name of a step during recovery.
pub(super) fn in_recovery(step: &str) -> String {
    format!("recovery: {step}")
}

/// Names each durable step as it passes by.
#[derive(Debug, Default)]
pub(super) struct StepNames {
    /// The records of the edits that the manifest received since its last sync.
    written: Vec<&'static str>,
    /// The value files that were created and are not known as logs. None is written to after the
    /// opening in which it was created.
    runs: BTreeSet<PathBuf>,
    /// The tables that were created and have not been synced yet. What is written to others is appended.
    new_tables: BTreeSet<PathBuf>,
}

impl StepNames {
    /// The names of what `event` did.
    pub(super) fn of(&mut self, event: &Event) -> Vec<String> {
        let name = event.path.file_name().unwrap_or_default().to_string_lossy();
        let file = match name.rsplit_once('.') {
            Some((_, "wal")) => "log",
            Some((_, "table")) => self.table(event),
            Some((_, "values")) => self.value_file(event),
            Some((_, "dead")) => "discard list",
            Some((_, "manifest")) => "manifest",
            _ if name.starts_with("CURRENT") || name == "LOCK" => &name,
            _ => "folder",
        };
        let verb = match event.kind {
            OperationKind::Write => "write",
            OperationKind::Sync | OperationKind::SyncDir => "sync",
            OperationKind::Create | OperationKind::CreateDir | OperationKind::Lock => "create",
            OperationKind::Rename => "rename",
            OperationKind::Link => "link",
            OperationKind::Remove => "remove",
            OperationKind::Truncate => "cut",
            OperationKind::Read
            | OperationKind::Reserve
            | OperationKind::Length
            | OperationKind::Map
            | OperationKind::Open
            | OperationKind::List => unreachable!("this changes nothing"),
        };
        let mut names = vec![format!("{file} {verb}")];
        if file == "manifest" && event.kind == OperationKind::Write {
            let records = edit_records(&event.bytes);
            for (index, body) in &records {
                if *index == ADD_VALUE_LOG
                    && let Some(name) = value_log_of(body)
                {
                    self.runs.remove(&event.path.with_file_name(name));
                }
            }
            let mut records: Vec<_> = records
                .iter()
                .map(|(index, _)| *EDIT_RECORDS.get(*index).unwrap_or(&"unknown"))
                .collect();
            records.sort_unstable();
            records.dedup();
            names.extend(
                records
                    .iter()
                    .map(|record| format!("edit written: {record}")),
            );
            self.written.extend(records);
        }
        if file == "manifest" && event.kind == OperationKind::Sync {
            self.written.sort_unstable();
            self.written.dedup();
            let records = self.written.drain(..);
            names.extend(records.map(|record| format!("edit synced: {record}")));
        }
        names
    }

    /// Whether `event` is about a new table or about a segment that is appended to one.
    fn table(&mut self, event: &Event) -> &'static str {
        let is_new = match event.kind {
            OperationKind::Create => {
                self.new_tables.insert(event.path.clone());
                true
            }
            OperationKind::Write => self.new_tables.contains(&event.path),
            OperationKind::Sync => self.new_tables.remove(&event.path),
            _ => true,
        };
        if is_new { "table" } else { "segment" }
    }

    /// What kind of value file `event` is about, where that can be told.
    fn value_file(&mut self, event: &Event) -> &'static str {
        match event.kind {
            OperationKind::Create => {
                self.runs.insert(event.path.clone());
                "value file"
            }
            OperationKind::Write | OperationKind::Sync if self.runs.contains(&event.path) => "run",
            OperationKind::Write | OperationKind::Sync => "value log",
            _ => "value file",
        }
    }
}

/// The records in a chunk of a manifest: tags less one, and bodies.
fn edit_records(chunk: &[u8]) -> Vec<(usize, &[u8])> {
    let mut rest = chunk.get(CHUNK_HEADER_BYTES..).unwrap_or_default();
    let mut records = Vec::new();
    while let Some((tag, length)) = take_varint(&mut rest).zip(take_varint(&mut rest)) {
        let (body, behind) = rest.split_at(length.min(rest.len()));
        records.push((tag.wrapping_sub(1), body));
        rest = behind;
    }
    records
}

/// The name of the file that a record "add value log" names.
fn value_log_of(mut body: &[u8]) -> Option<String> {
    let (_keyspace, number) = take_varint(&mut body).zip(take_varint(&mut body))?;
    Some(format!("{number:06}.values"))
}

fn take_varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_edits_are_named() {
        let mut names = StepNames::default();
        let mut event = |kind, path: &str, bytes: &[u8]| {
            names.of(&Event {
                index: 0,
                kind,
                path: PathBuf::from(path),
                offset: 0,
                bytes: bytes.to_owned(),
            })
        };
        let mut chunk = vec![0; CHUNK_HEADER_BYTES];
        chunk.extend([2, 2, 0x80, 1, 4, 1, 9, 4, 0]);
        let write = event(OperationKind::Write, "/db/000001.manifest", &chunk);
        assert_eq!(
            write,
            [
                "manifest write",
                "edit written: add file",
                "edit written: next id"
            ]
        );
        let sync = event(OperationKind::Sync, "/db/000001.manifest", &[]);
        assert_eq!(
            sync,
            [
                "manifest sync",
                "edit synced: add file",
                "edit synced: next id"
            ]
        );
        assert_eq!(
            event(OperationKind::Rename, "/db/CURRENT", &[]),
            ["CURRENT rename"]
        );
        assert_eq!(event(OperationKind::SyncDir, "/db", &[]), ["folder sync"]);
        assert_eq!(
            event(OperationKind::Create, "/db/000002.wal", &[]),
            ["log create"]
        );
    }

    #[test]
    fn segments_are_told_from_new_tables() {
        let mut names = StepNames::default();
        let mut first = |kind| {
            let event = Event {
                index: 0,
                kind,
                path: PathBuf::from("/db/000014.table"),
                offset: 0,
                bytes: Vec::new(),
            };
            names.of(&event).swap_remove(0)
        };
        for name in ["table", "segment"] {
            if name == "table" {
                assert_eq!(first(OperationKind::Create), "table create");
            }
            assert_eq!(first(OperationKind::Write), format!("{name} write"));
            assert_eq!(first(OperationKind::Write), format!("{name} write"));
            assert_eq!(first(OperationKind::Sync), format!("{name} sync"));
        }
        assert_eq!(first(OperationKind::Remove), "table remove");
    }

    #[test]
    fn value_logs_are_told_from_runs() {
        let mut names = StepNames::default();
        let mut first = |kind, path: &str, bytes: &[u8]| {
            let event = Event {
                index: 0,
                kind,
                path: PathBuf::from(path),
                offset: 0,
                bytes: bytes.to_owned(),
            };
            names.of(&event).swap_remove(0)
        };
        let (run, log) = ("/db/000014.values", "/db/000015.values");
        for path in [run, log] {
            assert_eq!(first(OperationKind::Create, path, &[]), "value file create");
        }
        let mut chunk = vec![0; CHUNK_HEADER_BYTES];
        chunk.extend([16, 2, 1, 15]);
        first(OperationKind::Write, "/db/000001.manifest", &chunk);
        assert_eq!(first(OperationKind::Write, run, &[]), "run write");
        assert_eq!(first(OperationKind::Sync, run, &[]), "run sync");
        assert_eq!(first(OperationKind::Write, log, &[]), "value log write");
        // It was there before.
        let old = "/db/000009.values";
        assert_eq!(first(OperationKind::Sync, old, &[]), "value log sync");
        assert_eq!(first(OperationKind::Remove, old, &[]), "value file remove");
    }
}
