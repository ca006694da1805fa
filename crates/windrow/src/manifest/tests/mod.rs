//! Tests of the manifest, and their builders of edits and files.

mod changes;
mod edits;
mod state;
mod store;
mod value_files;
mod values;
mod version;

use proptest::prelude::*;

use super::contradiction::Contradiction;
use super::reference_changes::ReferenceChange;
use super::*;
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{FileNumber, KeyspaceId, Kind, SegmentId, SequenceNumber, Totals, Trailer};
use crate::options::RecordedOptions;
use crate::table::{
    FenceKeys, FileMeta, LogReferences, ReferenceList, References, SegmentMeta, SegmentReferences,
};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta, ValuePointer};

const KEYSPACE: KeyspaceId = KeyspaceId(4);

fn apply(state: &mut ManifestState, records: Vec<Record>) -> Result<(), Contradiction> {
    state.apply(&Edit { records })
}

/// The state that the snapshot of `state` gives.
fn restored(state: &ManifestState) -> ManifestState {
    let mut restored = ManifestState::default();
    restored.apply(&state.snapshot()).unwrap();
    restored
}

// Records of `KEYSPACE`.

fn create_keyspace(name: &str) -> Record {
    let (id, name) = (KEYSPACE, name.to_owned());
    Record::CreateKeyspace { id, name }
}

fn flushed(sequence: SequenceNumber) -> Record {
    let keyspace = KEYSPACE;
    Record::Flushed { keyspace, sequence }
}

fn log_synced(offset: u64) -> Record {
    let number = FileNumber(1);
    Record::LogSynced { number, offset }
}

fn add_file(level: u8, file: FileMeta) -> Record {
    Record::AddFile {
        keyspace: KEYSPACE,
        level,
        file: file.into(),
    }
}

fn remove_file(level: u8, number: u64) -> Record {
    Record::RemoveFile {
        keyspace: KEYSPACE,
        level,
        number: FileNumber(number),
    }
}

fn add_transient_log(file: ValueFileMeta) -> Record {
    let keyspace = KEYSPACE;
    Record::AddTransientLog { keyspace, file }
}

fn add_value_log(number: u64) -> Record {
    let (keyspace, number) = (KEYSPACE, FileNumber(number));
    Record::AddValueLog { keyspace, number }
}

fn seal_value_log(file: ValueFileMeta, last_sequence: SequenceNumber) -> Record {
    Record::SealValueLog {
        keyspace: KEYSPACE,
        file,
        last_sequence,
    }
}

fn add_gc_output(file: ValueFileMeta) -> Record {
    let keyspace = KEYSPACE;
    Record::AddGcOutput { keyspace, file }
}

fn relocate(table: RelocationTable) -> Record {
    let keyspace = KEYSPACE;
    Record::Relocate { keyspace, table }
}

fn add_discard_list(number: u64, counts: &[(u64, u64)]) -> Record {
    Record::AddDiscardList {
        keyspace: KEYSPACE,
        list: garbage(number, counts),
    }
}

fn take_discard_list(list: u64, files: &[u64]) -> Record {
    Record::TakeDiscardList {
        keyspace: KEYSPACE,
        list: FileNumber(list),
        files: files.iter().copied().map(FileNumber).collect(),
    }
}

/// A file of one segment from `smallest` to `largest`.
fn file(number: u64, smallest: &[u8], largest: &[u8], sequences: (u64, u64)) -> FileMeta {
    FileMeta {
        number: FileNumber(number),
        sealed: false,
        external: false,
        segments: vec![SegmentMeta {
            id: SegmentId(number),
            offset: 0,
            length: 4096,
            entries: 10,
            tombstones: 3,
            keys: FenceKeys::new(smallest, largest),
            sequence_min: sequences.0,
            sequence_max: sequences.1,
            logical_bytes: 1000,
            overwrites: 0,
            filter_units: [64, 0, 0, 0],
            footer_checksum: 0x1234_5678,
            range_tombstones: 0,
            operands: 0,
            hidden_below: 0,
            expiring: None,
            references: SegmentReferences::default(),
        }]
        .into(),
    }
}

/// A transient log file of two records of 20 bytes.
fn transient_log(number: u64) -> ValueFileMeta {
    ValueFileMeta {
        number: FileNumber(number),
        length: 40,
        entries: 2,
        value_bytes: 22,
        end: 40,
    }
}

/// References of `entries` entries of `kind` to each of these files.
fn noted(files: &[u64], entries: u64, kind: Kind) -> References {
    let mut references = References::default();
    for file in files {
        for entry in 0..entries {
            let pointer = ValuePointer {
                file: FileNumber(*file),
                offset: 20 * entry,
                record_bytes: 20,
                value_bytes: 11,
            };
            let mut bytes = Vec::new();
            pointer.encode(&mut bytes);
            references.note(Trailer::new(1, kind), &bytes).unwrap();
        }
    }
    references
}

/// Lets `entries` entries of `file` refer to each of these transient logs.
fn refer(file: &mut FileMeta, transient_logs: &[u64], entries: u64) {
    let references = noted(transient_logs, entries, Kind::TransientPointer);
    file.segments[0].references = SegmentReferences::new(references.transient(), None);
}

/// The list of `entries` references to value log `log`.
fn log_list(log: u64, entries: u64) -> ReferenceList {
    noted(&[log], entries, Kind::ValueLogPointer).logs()
}

/// Lets `entries` entries of `file` refer to value log `log`. In these tests a segment refers to at most one, so its
/// sums say what its list has.
fn refer_to_log(file: &mut FileMeta, log: u64, entries: u64) {
    let sums = log_list(log, entries).log_sums();
    let logs = sums.map(|sums| LogReferences {
        sums,
        generation: FileNumber(log % 3),
    });
    file.segments[0].references = SegmentReferences::new(None, logs);
}

/// The changes of references to value logs as `file` comes or goes.
fn changes(file: &FileMeta, comes: bool) -> Vec<ReferenceChange> {
    let mut changes = ReferenceChanges::default();
    for segment in &file.segments {
        let Some(logs) = segment.references.logs() else {
            continue;
        };
        let list = log_list(logs.sums.smallest.0, logs.sums.referred.entries);
        if comes {
            changes.add(&list);
        } else {
            changes.subtract(&list);
        }
    }
    changes.changes()
}

/// The record of [`changes`], if there are any.
fn counted(keyspace: KeyspaceId, file: &FileMeta, comes: bool) -> Option<Record> {
    let changes = changes(file, comes);
    (!changes.is_empty()).then_some(Record::CountReferences { keyspace, changes })
}

/// Changes the counted references to these value logs.
fn count_references(changes: &[(u64, i64, i64)]) -> Record {
    let change = |&(file, entries, bytes)| ReferenceChange {
        file: FileNumber(file),
        entries,
        bytes,
    };
    Record::CountReferences {
        keyspace: KEYSPACE,
        changes: changes.iter().map(change).collect(),
    }
}

/// A value file with `entries` records of 20 bytes, and `behind` bytes behind them.
fn log(number: u64, entries: u64, behind: u64) -> ValueFileMeta {
    ValueFileMeta {
        number: FileNumber(number),
        length: 20 * entries,
        entries,
        value_bytes: 11 * entries,
        end: 20 * entries + behind,
    }
}

/// The relocation of `entries` values of `origin` to `gc_output`, with the table at `offset`.
fn moved(origin: u64, gc_output: u64, offset: u64, entries: u64) -> RelocationTable {
    RelocationTable {
        origin: FileNumber(origin),
        origin_bytes: 400,
        gc_output: FileNumber(gc_output),
        offset,
        entries,
    }
}

/// A list of garbage values, with (value file, number of values).
fn garbage(number: u64, counts: &[(u64, u64)]) -> DiscardList {
    let counts = counts.iter();
    DiscardList {
        number: FileNumber(number),
        length: 1000,
        counts: counts
            .map(|(file, count)| (FileNumber(*file), *count))
            .collect(),
    }
}

fn options(fields: &[(&str, &str)]) -> RecordedOptions {
    let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    fields.iter().map(own).collect()
}

/// Steps of a history, as numbers that [`History`] interprets.
fn steps(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<[u8; 4]>> {
    proptest::collection::vec(any::<[u8; 4]>(), count)
}

/// Lets `file` refer to a new transient log, whose number is behind `id`. Returns the records that add
/// the log.
fn own_transient_log(keyspace: KeyspaceId, file: &mut FileMeta, id: u64) -> Vec<Record> {
    refer(file, &[id + 1], 1);
    let file = transient_log(id + 1);
    vec![
        Record::NextId(id + 2),
        Record::AddTransientLog { keyspace, file },
    ]
}

/// Makes valid edits from arbitrary numbers.
#[derive(Debug, Default)]
struct History {
    state: ManifestState,
}

impl History {
    /// The edit of `step` in the present state. Applies the edit to the state.
    fn edit(&mut self, step: [u8; 4]) -> Edit {
        let [verb, first, second, third] = step;
        let state = &self.state;
        let id = state.next_id;
        let mut records = vec![Record::NextId(id + 1 + u64::from(third % 3))];
        let keyspace = state
            .keyspaces
            .keys()
            .nth(usize::from(first) % state.keyspaces.len().max(1));
        let level = second % 16;
        match (verb % 21, keyspace) {
            (0, _) | (_, None) => {
                let id = KeyspaceId(state.last_keyspace.0 + 1 + u32::from(third % 2));
                let name = format!("keyspace {id}");
                records.push(Record::CreateKeyspace { id, name });
            }
            (1 | 2, Some(&keyspace)) => {
                let mut file = file(id, &[first], &[first, second], (id, id + 5));
                if third % 2 == 0 {
                    records = own_transient_log(keyspace, &mut file, id);
                }
                records.push(Record::AddFile {
                    keyspace,
                    level,
                    file: file.into(),
                });
            }
            (3, Some(&keyspace)) => {
                let levels = &state.keyspaces[&keyspace].levels;
                let held = levels.iter().zip(0..).find_map(|(files, level)| {
                    let file = files.values().nth(usize::from(third) % files.len().max(1));
                    file.map(|file| (level, file))
                });
                if let Some((from, file)) = held {
                    records.push(Record::RemoveFile {
                        keyspace,
                        level: from,
                        number: file.number,
                    });
                    // Half of them move.
                    if third % 2 == 1 {
                        records.extend(counted(keyspace, file, false));
                    } else {
                        let file = std::sync::Arc::clone(file);
                        records.push(Record::AddFile {
                            keyspace,
                            level,
                            file,
                        });
                    }
                }
            }
            (4, Some(&keyspace)) => {
                records.push(Record::LevelCount {
                    keyspace,
                    count: level.max(1),
                });
                records.push(Record::KeyspaceOptions {
                    keyspace,
                    options: options(&[("level", &level.to_string())]),
                });
                records.push(Record::MergeOperator {
                    keyspace,
                    name: "operator".to_owned(),
                });
                let totals = Totals::from([(u64::from(level), u64::from(second) + 1)]);
                records.push(Record::KeyspaceTotals {
                    keyspace,
                    totals: totals.clone(),
                });
                records.push(Record::Totals(totals));
            }
            (5, Some(&keyspace)) => {
                let sequence = state.log_synced.map_or(0, |synced| synced.1) + u64::from(second);
                records.push(Record::LogSynced {
                    number: FileNumber(1),
                    offset: sequence,
                });
                records.push(Record::Flushed { keyspace, sequence });
                records.push(Record::ExpiredBy(u64::from(third) << 30));
            }
            (9, Some(&keyspace)) if third % 4 == 1 => {
                // The name of another keyspace, of this one, or of none.
                let names = state.keyspaces.values().map(|own| own.name.clone());
                let name = names.cycle().nth(usize::from(second % 8));
                let name = name
                    .filter(|_| second % 16 < 8)
                    .unwrap_or_else(|| format!("name {id}"));
                records.push(Record::RenameKeyspace { keyspace, name });
            }
            (9, Some(&keyspace)) if third % 4 == 0 => {
                records.push(Record::DropKeyspace(keyspace));
            }
            (10..=19, Some(&keyspace)) => {
                let more = values::change(state, keyspace, [verb % 10, second, third]);
                records.extend(more);
            }
            (20, Some(&keyspace)) => {
                let deeper = state.keyspaces[&keyspace].levels.iter().zip(0_u8..).skip(1);
                let files =
                    deeper.flat_map(|(files, level)| files.values().map(move |it| (level, it)));
                let mut files = files.filter(|(_, file)| file.segments.len() < SEGMENTS_MAX);
                if let Some((level, target)) = files.next() {
                    let mut piece = file(id, &[first], &[first, second], (id, id + 5));
                    piece.segments[0].offset = target.end().next_multiple_of(4096);
                    if third % 2 == 0 {
                        records = own_transient_log(keyspace, &mut piece, id);
                    }
                    records.push(Record::AddSegment {
                        keyspace,
                        level,
                        number: target.number,
                        segment: piece.segments[0].clone(),
                    });
                }
            }
            (6, _) => records.push(Record::AddLog(FileNumber(id))),
            (7, _) => {
                let mut open = state.logs.iter();
                let open = open.find(|log| !state.log_ends.contains_key(log));
                records.extend(open.map(|&number| Record::LogEnd {
                    number,
                    offset: u64::from(third),
                }));
            }
            (_, _) => {
                let oldest = state.logs.iter().nth(1);
                records.extend(oldest.map(|&log| Record::OldestLog(log)));
            }
        }
        let edit = Edit { records };
        self.state.apply(&edit).unwrap();
        edit
    }
}
