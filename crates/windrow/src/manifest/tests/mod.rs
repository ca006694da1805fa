//! Tests of the manifest, and what they build edits and files from.

mod edits;
mod state;
mod store;
mod values;
mod version;

use proptest::prelude::*;

use super::*;
use crate::base::limits::SEGMENTS_MAX;
use crate::base::{FileNumber, KeyspaceId, Kind, SegmentId, Trailer};
use crate::options::RecordedOptions;
use crate::table::{FileMeta, References, SegmentMeta};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta, ValuePointer};

/// A file of one segment from `smallest` to `largest`.
fn file(number: u64, smallest: &[u8], largest: &[u8], sequences: (u64, u64)) -> FileMeta {
    FileMeta {
        number: FileNumber(number),
        sealed: false,
        segments: vec![SegmentMeta {
            id: SegmentId(number),
            offset: 0,
            length: 4096,
            entries: 10,
            tombstones: 3,
            smallest: smallest.into(),
            largest: largest.into(),
            sequence_min: sequences.0,
            sequence_max: sequences.1,
            logical_bytes: 1000,
            overwrites: 0,
            filter_units: [64, 0, 0, 0],
            footer_checksum: 0x1234_5678,
            references: References::default(),
        }],
    }
}

/// A file of a run, of two records of 20 bytes.
fn transient_log(number: u64) -> ValueFileMeta {
    ValueFileMeta {
        number: FileNumber(number),
        length: 40,
        entries: 2,
        value_bytes: 22,
        end: 40,
    }
}

/// Lets `entries` of `file` refer to `run`.
fn refer(file: &mut FileMeta, transient_log: &ValueFileMeta, entries: u64) {
    refer_as(file, transient_log, entries, Kind::TransientPointer);
}

/// As [`refer`], with entries of `kind`.
fn refer_as(file: &mut FileMeta, transient_log: &ValueFileMeta, entries: u64, kind: Kind) {
    for entry in 0..entries {
        let pointer = ValuePointer {
            file: transient_log.number,
            offset: 20 * entry,
            record_bytes: 20,
            value_bytes: 11,
        };
        let mut bytes = Vec::new();
        pointer.encode(&mut bytes);
        let references = &mut file.segments[0].references;
        let trailer = Trailer::new(1, kind);
        references.note(trailer, &bytes).unwrap();
    }
}

/// A value file of `entries` records of 20 bytes, and `behind` bytes behind them.
fn log(number: u64, entries: u64, behind: u64) -> ValueFileMeta {
    ValueFileMeta {
        number: FileNumber(number),
        length: 20 * entries,
        entries,
        value_bytes: 11 * entries,
        end: 20 * entries + behind,
    }
}

/// `entries` of value log `origin` are in `successor`, told at its `offset`.
fn moved(origin: u64, gc_output: u64, offset: u64, entries: u64) -> RelocationTable {
    RelocationTable {
        origin: FileNumber(origin),
        origin_bytes: 400,
        gc_output: FileNumber(gc_output),
        offset,
        entries,
    }
}

/// A list of garbage values: how many of which value file.
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

/// Steps of a history, as numbers that [`History`] makes sense of.
fn steps(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<[u8; 4]>> {
    proptest::collection::vec(any::<[u8; 4]>(), count)
}

/// Makes valid edits out of arbitrary numbers.
#[derive(Debug, Default)]
struct History {
    state: ManifestState,
}

impl History {
    /// The edit that `step` stands for in the present state, which it becomes part of.
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
                // Half of them have a run of their own.
                if third % 2 == 0 {
                    let transient_log = transient_log(id + 1);
                    records = vec![Record::NextId(id + 2)];
                    refer(&mut file, &transient_log, 1);
                    records.push(Record::AddTransientLog {
                        keyspace,
                        file: transient_log,
                    });
                }
                records.push(Record::AddFile {
                    keyspace,
                    level,
                    file,
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
                    if third % 2 == 0 {
                        let file = file.clone();
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
            }
            (5, Some(&keyspace)) => {
                let sequence = state.log_synced.map_or(0, |synced| synced.1) + u64::from(second);
                records.push(Record::LogSynced {
                    number: FileNumber(1),
                    offset: sequence,
                });
                records.push(Record::Flushed { keyspace, sequence });
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
                    // Half of them refer to a run of their own.
                    if third % 2 == 0 {
                        let transient_log = transient_log(id + 1);
                        records = vec![Record::NextId(id + 2)];
                        refer(&mut piece, &transient_log, 1);
                        records.push(Record::AddTransientLog {
                            keyspace,
                            file: transient_log,
                        });
                    }
                    records.push(Record::AddSegment {
                        keyspace,
                        level,
                        number: target.number,
                        segment: piece.segments.remove(0),
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
