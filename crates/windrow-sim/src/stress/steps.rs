//! What an I/O means to the engine: its durable step, and the kinds of edits that a write to the manifest carries.

use crate::disk::{Event, OperationKind};
use crate::hostile::bytes::take_varint;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The bytes before the payload of a long chunk of a log. All chunks of a manifest are long.
const CHUNK_HEADER_BYTES: usize = 20;

/// The kinds of records of an edit, by tag less one; see "Manifest" in `docs/format.md`.
const EDIT_RECORDS: [&str; 29] = [
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
    "add transient log",
    "add value log",
    "value log at",
    "seal value log",
    "add GC output",
    "relocate",
    "add discard list",
    "take discard list",
    "add segment",
    "totals",
    "keyspace totals",
    "count references",
    "rename keyspace",
    "merge operator",
    "expired by",
];

/// The tag less one of the first of the later kinds of records, and these kinds. Histories have no consumers of changes: the
/// scenario `changes` lets the power fail after each change of such a history.
const LATER_RECORDS: (usize, [&str; 5]) = (
    31,
    [
        "consumer",
        "remove consumer",
        "keep log",
        "change event",
        UNLOGGED,
    ],
);

/// The one of these that histories have.
const UNLOGGED: &str = "unlogged";

/// The name of the kind of record with this tag less one.
fn record_name(index: usize) -> &'static str {
    let (first, names) = LATER_RECORDS;
    let later = index.checked_sub(first).and_then(|index| names.get(index));
    EDIT_RECORDS.get(index).or(later).unwrap_or(&"unknown")
}

/// The index of "add value log" in these.
const ADD_VALUE_LOG: usize = 15;

/// The durable steps of a history besides edits: files, and what happens to each.
const STEPS: [(&str, &str); 12] = [
    ("folder", "create sync"),
    ("LOCK", "create"),
    ("log", "create write sync remove"),
    ("table", "create write sync link remove"),
    ("segment", "write sync"),
    ("value file", "create link remove"),
    ("transient log", "write sync"),
    ("value log", "write sync"),
    ("discard list", "create write sync remove"),
    ("manifest", "create write sync remove"),
    ("CURRENT.new", "create write sync"),
    ("CURRENT", "rename"),
];

/// The durable steps of recovery.
const RECOVERY_STEPS: [(&str, &str); 9] = [
    ("folder", "sync"),
    ("log", "create write sync remove"),
    ("table", "remove"),
    ("value log", "write sync"),
    ("value file", "remove"),
    ("discard list", "remove"),
    ("manifest", "create write sync remove"),
    ("CURRENT.new", "create write sync"),
    ("CURRENT", "rename"),
];

/// The edits of recovery.
const RECOVERY_EDITS: [&str; 3] = ["add transient log", "add GC output", "seal value log"];

/// The names of all steps that a sweep must cross.
pub(super) fn required() -> impl Iterator<Item = String> {
    let steps = |steps: &'static [(&str, &str)]| {
        steps.iter().flat_map(|(file, verbs)| {
            let verbs = verbs.split(' ');
            verbs.map(move |verb| format!("{file} {verb}"))
        })
    };
    let edits = EDIT_RECORDS
        .iter()
        .chain([&UNLOGGED])
        .flat_map(|record| ["written", "synced"].map(|verb| format!("edit {verb}: {record}")));
    let recovery_edits = RECOVERY_EDITS.map(|record| format!("edit synced: {record}"));
    let recovery = steps(&RECOVERY_STEPS).chain(recovery_edits);
    steps(&STEPS)
        .chain(edits)
        .chain(recovery.map(|step| in_recovery(&step)))
}

/// The name of a step during recovery.
pub(super) fn in_recovery(step: &str) -> String {
    format!("recovery: {step}")
}

/// Names each durable step of a history.
#[derive(Debug, Default)]
pub(super) struct StepNames {
    /// The records of the edits that the manifest received since its last sync.
    written: BTreeSet<&'static str>,
    /// Created value files that no edit names as value logs. Only the open that creates a transient log
    /// writes to it.
    transient_logs: BTreeSet<PathBuf>,
    /// Created tables that are not synced yet. Writes to other tables append a segment.
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
            | OperationKind::WriteBack
            | OperationKind::Reserve
            | OperationKind::Length
            | OperationKind::Map
            | OperationKind::Open
            | OperationKind::List => unreachable!("this changes nothing"),
        };
        let mut names = vec![format!("{file} {verb}")];
        if file == "manifest" && event.kind == OperationKind::Write {
            let mut written = BTreeSet::new();
            for (index, body) in edit_records(&event.bytes) {
                if index == ADD_VALUE_LOG
                    && let Some(name) = value_log_of(body)
                {
                    self.transient_logs.remove(&event.path.with_file_name(name));
                }
                written.insert(record_name(index));
            }
            names.extend(
                written
                    .iter()
                    .map(|record| format!("edit written: {record}")),
            );
            self.written.extend(written);
        }
        if file == "manifest" && event.kind == OperationKind::Sync {
            let records = std::mem::take(&mut self.written).into_iter();
            names.extend(records.map(|record| format!("edit synced: {record}")));
        }
        names
    }

    /// Whether `event` concerns a new table or a segment appended to an old one.
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

    /// The kind of value file that `event` concerns, if it is known.
    fn value_file(&mut self, event: &Event) -> &'static str {
        match event.kind {
            OperationKind::Create => {
                self.transient_logs.insert(event.path.clone());
                "value file"
            }
            OperationKind::Write | OperationKind::Sync
                if self.transient_logs.contains(&event.path) =>
            {
                "transient log"
            }
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
        let [tag, length] = [tag, length].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
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

#[cfg(test)]
mod tests {
    use super::*;
    use OperationKind::{Create, Remove, Rename, Sync, SyncDir, Write};

    /// The names of one step.
    fn names(own: &mut StepNames, kind: OperationKind, path: &str, bytes: &[u8]) -> Vec<String> {
        own.of(&Event {
            index: 0,
            kind,
            path: PathBuf::from(path),
            offset: 0,
            bytes: bytes.to_owned(),
        })
    }

    /// The chunk of an edit with these records.
    fn chunk(records: &[u8]) -> Vec<u8> {
        [&[0; CHUNK_HEADER_BYTES], records].concat()
    }

    #[test]
    fn steps_and_edits_have_names() {
        let own = &mut StepNames::default();
        let edit = chunk(&[2, 2, 0x80, 1, 4, 1, 9, 4, 0]);
        for (kind, verb, edits) in [(Write, "write", "written"), (Sync, "sync", "synced")] {
            let bytes = if kind == Write { &edit[..] } else { &[] };
            let expected = [
                format!("manifest {verb}"),
                format!("edit {edits}: add file"),
                format!("edit {edits}: next id"),
            ];
            assert_eq!(names(own, kind, "/db/000001.manifest", bytes), expected);
        }
        for (kind, path, name) in [
            (Rename, "/db/CURRENT", "CURRENT rename"),
            (SyncDir, "/db", "folder sync"),
            (Create, "/db/000002.wal", "log create"),
        ] {
            assert_eq!(names(own, kind, path, &[]), [name]);
        }
    }

    #[test]
    fn appended_segments_are_no_new_tables() {
        let own = &mut StepNames::default();
        for (kind, name) in [
            (Create, "table create"),
            (Write, "table write"),
            (Write, "table write"),
            (Sync, "table sync"),
            (Write, "segment write"),
            (Write, "segment write"),
            (Sync, "segment sync"),
            (Remove, "table remove"),
        ] {
            assert_eq!(names(own, kind, "/db/000014.table", &[]), [name]);
        }
    }

    #[test]
    fn value_logs_are_no_transient_logs() {
        let own = &mut StepNames::default();
        let [transient, log, old] =
            [14, 15, 9].map(|number: u32| format!("/db/{number:06}.values"));
        for path in [&transient, &log] {
            assert_eq!(names(own, Create, path, &[]), ["value file create"]);
        }
        names(own, Write, "/db/000001.manifest", &chunk(&[16, 2, 1, 15]));
        for (kind, path, name) in [
            (Write, &transient, "transient log write"),
            (Sync, &transient, "transient log sync"),
            (Write, &log, "value log write"),
            // Nothing created this one.
            (Sync, &old, "value log sync"),
            (Remove, &old, "value file remove"),
        ] {
            assert_eq!(names(own, kind, path, &[]), [name]);
        }
    }
}
