//! One atomic change of the manifest, and its bytes.
//!
//! An edit is a list of records. A record is a tag, the length of its body, and the body. A tag that
//! this version does not know makes the whole edit `Unsupported`. See "Manifest" in
//! `docs/format.md`, which also lists the reserved tags.
//!
//! I1. Each edit has one encoding: an edit that decodes encodes to the same bytes.

use std::sync::Arc;

use crate::base::key::SEQUENCE_MAX;
use crate::base::{FileNumber, KeyspaceId, Moment, SequenceNumber, Totals};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::options::RecordedOptions;
use crate::table::{FileMeta, SegmentMeta};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

use super::change_records::{ChangeEvent, ConsumerState, KeptLog};
use super::field_codec::Field;
use super::reference_changes::{ReferenceChange, ReferenceChanges};

/// The version of the whole on-disk format that this build writes and reads.
const FORMAT_VERSION: u64 = 1;

/// A change of the manifest that happens as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edit {
    /// The changes, in order: an id is allocated before it is used, and a file is removed from
    /// its old level before it is added to a new one.
    pub(crate) records: Vec<Record>,
}

/// Declares [`Record`] and its encoding. Each entry is a tag, the kind of record, and its fields in
/// the order of their bytes.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $tag:ident $kind:ident
        $(($value:ident: $value_type:ty))?
        $({ $($field:ident: $field_type:ty),* })?;
    )*) => {
        /// One part of an edit.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum Record {
            /// The format of all records that follow. It is the first record of every manifest and
            /// stands nowhere else.
            FormatVersion,
            $($(#[$doc])* $kind $(($value_type))? $({ $($field: $field_type),* })?,)*
        }

        impl Record {
            /// Appends the body and returns the tag.
            fn put_body(&self, body: &mut Vec<u8>) -> u64 {
                match self {
                    Self::FormatVersion => {
                        FORMAT_VERSION.put(body);
                        tag::FORMAT_VERSION
                    }
                    $(Self::$kind $(($value))? $({ $($field),* })? => {
                        $($value.put(body);)?
                        $($($field.put(body);)*)?
                        tag::$tag
                    })*
                }
            }

            fn read_body(tag: u64, body: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(match tag {
                    tag::FORMAT_VERSION => read_format_version(body)?,
                    $(tag::$tag => Self::$kind
                        $((<$value_type>::read(body)?))?
                        $({ $($field: Field::read(body)?),* })?,)*
                    _ => return Err(body.unsupported("an unknown kind of record")),
                })
            }
        }
    };
}

records! {
    /// Every id from here on is unused.
    NEXT_ID NextId(id: u64);

    /// A new keyspace without files, of one level.
    CREATE_KEYSPACE CreateKeyspace { id: KeyspaceId, name: String };

    /// A table file is part of a level.
    ADD_FILE AddFile { keyspace: KeyspaceId, level: u8, file: Arc<FileMeta> };

    /// A table file is no longer part of a level.
    REMOVE_FILE RemoveFile { keyspace: KeyspaceId, level: u8, number: FileNumber };

    /// A table file has one more segment behind the others. The file must not be sealed.
    ADD_SEGMENT AddSegment {
        keyspace: KeyspaceId,
        level: u8,
        number: FileNumber,
        segment: SegmentMeta
    };

    /// A complete file of a transient log. The edit that removes the last table that refers to it
    /// removes it too.
    ADD_TRANSIENT_LOG AddTransientLog { keyspace: KeyspaceId, file: ValueFileMeta };

    /// An open value log, newer than all others of its keyspace.
    ADD_VALUE_LOG AddValueLog { keyspace: KeyspaceId, number: FileNumber };

    /// Tables refer to the open value log up to here.
    VALUE_LOG_AT ValueLogAt { keyspace: KeyspaceId, file: ValueFileMeta };

    /// A value log is complete and durable; entries up to `last_sequence` refer to it. Once these
    /// are in tables, the edit after which no table refers to it removes it.
    SEAL_VALUE_LOG SealValueLog {
        keyspace: KeyspaceId,
        file: ValueFileMeta,
        last_sequence: SequenceNumber
    };

    /// The complete output of a garbage collection.
    ADD_GC_OUTPUT AddGcOutput { keyspace: KeyspaceId, file: ValueFileMeta };

    /// Pointers into the origin of the table resolve through it from here on. An origin that was
    /// still a value log is no longer part of the database.
    RELOCATE Relocate { keyspace: KeyspaceId, table: RelocationTable };

    /// A list of garbage values. The edit that removes the last of the value files that it names
    /// removes it too.
    ADD_DISCARD_LIST AddDiscardList { keyspace: KeyspaceId, list: DiscardList };

    /// A GC output leaves behind everything that the list names in these value files.
    TAKE_DISCARD_LIST TakeDiscardList {
        keyspace: KeyspaceId,
        list: FileNumber,
        files: Vec<FileNumber>
    };

    /// The nominal number of levels below level 0, from which capacities are computed.
    LEVEL_COUNT LevelCount { keyspace: KeyspaceId, count: u8 };

    /// Every entry of the keyspace up to this sequence number is in table files.
    FLUSHED Flushed { keyspace: KeyspaceId, sequence: SequenceNumber };

    /// A new write-ahead log, newer than all others.
    ADD_LOG AddLog(number: FileNumber);

    /// Logs below this number are not needed any more.
    OLDEST_LOG OldestLog(number: FileNumber);

    /// This log ends at this offset, by a recovery or a clean close. The bytes behind it do not count, nor do
    /// the later logs that were added before this record.
    LOG_END LogEnd { number: FileNumber, offset: u64 };

    /// The logs are durable up to this offset of this log.
    LOG_SYNCED LogSynced { number: FileNumber, offset: u64 };

    /// The keyspace and all its files are no longer part of the database.
    DROP_KEYSPACE DropKeyspace(id: KeyspaceId);

    /// Keyspace ids and sequence numbers up to these were allocated.
    USED Used { keyspace: KeyspaceId, sequence: SequenceNumber };

    /// All options of the keyspace. They replace the earlier ones.
    KEYSPACE_OPTIONS KeyspaceOptions { keyspace: KeyspaceId, options: RecordedOptions };

    /// The lifetime counters of the database. They replace the earlier ones.
    TOTALS Totals(totals: Totals);

    /// The lifetime counters of a keyspace. They replace the earlier ones.
    KEYSPACE_TOTALS KeyspaceTotals { keyspace: KeyspaceId, totals: Totals };

    /// How the references of tables to value logs, GC outputs and origins change. After each edit their sum is that of
    /// all tables.
    COUNT_REFERENCES CountReferences { keyspace: KeyspaceId, changes: Vec<ReferenceChange> };

    /// The keyspace has this name. If another one has it, that one takes the old name of this one.
    RENAME_KEYSPACE RenameKeyspace { keyspace: KeyspaceId, name: String };

    /// The name of the merge operator of the keyspace. It never changes.
    MERGE_OPERATOR MergeOperator { keyspace: KeyspaceId, name: String };

    /// Entries that have expired by this moment may be gone, whatever the clock shows later. The latest such moment counts.
    EXPIRED_BY ExpiredBy(moment: Moment);

    /// The place of a consumer of changes. It replaces the earlier one.
    CONSUMER Consumer { name: String, state: ConsumerState };

    /// There is no such consumer any more.
    REMOVE_CONSUMER RemoveConsumer(name: String);

    /// Recovery does not need this log, the oldest of those that it needed. It stays while a consumer holds it.
    KEEP_LOG KeepLog { number: FileNumber, log: KeptLog };

    /// A change that has no entries in the logs, only this sequence number.
    CHANGE_EVENT ChangeEvent { sequence: SequenceNumber, event: ChangeEvent };

    /// Writes go to no log. Edits behind the length in `CURRENT` do not count.
    UNLOGGED Unlogged;
}

mod tag {
    pub(super) const FORMAT_VERSION: u64 = 1;
    pub(super) const NEXT_ID: u64 = 2;
    pub(super) const CREATE_KEYSPACE: u64 = 3;
    pub(super) const ADD_FILE: u64 = 4;
    pub(super) const REMOVE_FILE: u64 = 5;
    pub(super) const LEVEL_COUNT: u64 = 6;
    pub(super) const FLUSHED: u64 = 7;
    pub(super) const ADD_LOG: u64 = 8;
    pub(super) const OLDEST_LOG: u64 = 9;
    pub(super) const LOG_END: u64 = 10;
    pub(super) const LOG_SYNCED: u64 = 11;
    pub(super) const DROP_KEYSPACE: u64 = 12;
    pub(super) const USED: u64 = 13;
    pub(super) const KEYSPACE_OPTIONS: u64 = 14;
    pub(super) const ADD_TRANSIENT_LOG: u64 = 15;
    pub(super) const ADD_VALUE_LOG: u64 = 16;
    pub(super) const VALUE_LOG_AT: u64 = 17;
    pub(super) const SEAL_VALUE_LOG: u64 = 18;
    pub(super) const ADD_GC_OUTPUT: u64 = 19;
    pub(super) const RELOCATE: u64 = 20;
    pub(super) const ADD_DISCARD_LIST: u64 = 21;
    pub(super) const TAKE_DISCARD_LIST: u64 = 22;
    pub(super) const ADD_SEGMENT: u64 = 23;
    pub(super) const TOTALS: u64 = 24;
    pub(super) const KEYSPACE_TOTALS: u64 = 25;
    pub(super) const COUNT_REFERENCES: u64 = 26;
    pub(super) const RENAME_KEYSPACE: u64 = 27;
    pub(super) const MERGE_OPERATOR: u64 = 28;
    pub(super) const EXPIRED_BY: u64 = 29;
    pub(super) const CONSUMER: u64 = 32;
    pub(super) const REMOVE_CONSUMER: u64 = 33;
    pub(super) const KEEP_LOG: u64 = 34;
    pub(super) const CHANGE_EVENT: u64 = 35;
    pub(super) const UNLOGGED: u64 = 36;
}

impl Edit {
    /// Appends the edit's bytes to `buffer`.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let mut body = Vec::new();
        for record in &self.records {
            body.clear();
            let tag = record.put_body(&mut body);
            put_varint(buffer, tag);
            put_bytes(buffer, &body);
        }
    }

    /// Whether the format of the edit at `offset` of its manifest is known, whatever its records are: the first edit says so.
    pub(crate) fn has_known_format(bytes: &[u8], offset: u64) -> bool {
        let mut reader = Reader::new(bytes);
        let tag = reader.varint("tag of a record");
        let body = reader.prefixed_bytes(bytes.len(), "body of a record");
        let first = tag.and_then(|tag| Record::read(tag, body?));
        offset > 0 || first == Ok(Record::FormatVersion)
    }

    /// Decodes a whole edit.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut records = Vec::new();
        while !reader.is_empty() {
            let start = reader.clone();
            let tag = reader.varint("tag of a record")?;
            let body = reader.prefixed_bytes(bytes.len(), "body of a record")?;
            let body_offset = reader.position() - body.len();
            let record = Record::read(tag, body).map_err(|error| {
                if error.unsupported {
                    return start.unsupported(error.what);
                }
                DecodeError {
                    offset: body_offset + error.offset,
                    ..error
                }
            })?;
            records.push(record);
        }
        Ok(Self { records })
    }
}

impl Edit {
    /// Whether it changes which keyspaces there are, their names or their options.
    pub(super) fn changes_keyspaces(&self) -> bool {
        let changes = |record: &Record| {
            matches!(
                record,
                Record::CreateKeyspace { .. }
                    | Record::DropKeyspace(_)
                    | Record::RenameKeyspace { .. }
                    | Record::KeyspaceOptions { .. }
                    | Record::MergeOperator { .. }
            )
        };
        self.records.iter().any(changes)
    }
}

impl Record {
    /// The keyspace whose tables or value files the record changes.
    pub(super) fn keyspace_of_files(&self) -> Option<KeyspaceId> {
        match self {
            Self::AddFile { keyspace, .. }
            | Self::AddSegment { keyspace, .. }
            | Self::RemoveFile { keyspace, .. }
            | Self::AddTransientLog { keyspace, .. }
            | Self::AddValueLog { keyspace, .. }
            | Self::ValueLogAt { keyspace, .. }
            | Self::SealValueLog { keyspace, .. }
            | Self::AddGcOutput { keyspace, .. }
            | Self::Relocate { keyspace, .. }
            | Self::AddDiscardList { keyspace, .. }
            | Self::TakeDiscardList { keyspace, .. }
            | Self::CountReferences { keyspace, .. }
            | Self::Flushed { keyspace, .. } => Some(*keyspace),
            _ => None,
        }
    }

    /// The value log that the record changes, as the record leaves it.
    pub(crate) fn value_file(&self) -> Option<&ValueFileMeta> {
        match self {
            Self::ValueLogAt { file, .. } | Self::SealValueLog { file, .. } => Some(file),
            _ => None,
        }
    }

    /// The record of these changes; `None` if there are none.
    pub(crate) fn count_references(
        keyspace: KeyspaceId,
        changes: &ReferenceChanges,
    ) -> Option<Self> {
        let changes = changes.changes();
        (!changes.is_empty()).then_some(Self::CountReferences { keyspace, changes })
    }

    fn read(tag: u64, body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let record = Self::read_body(tag, &mut reader)?;
        match record {
            Self::SealValueLog {
                last_sequence: sequence,
                ..
            }
            | Self::Flushed { sequence, .. }
            | Self::Used { sequence, .. }
            | Self::ChangeEvent { sequence, .. }
                if sequence > SEQUENCE_MAX =>
            {
                Err(reader.error("a sequence number above the largest"))
            }
            _ => {
                reader.finish("bytes behind the body of a record")?;
                Ok(record)
            }
        }
    }
}

fn read_format_version(reader: &mut Reader<'_>) -> Result<Record, DecodeError> {
    let start = reader.clone();
    match reader.varint("format version")? {
        FORMAT_VERSION => Ok(Record::FormatVersion),
        0 => Err(start.error("format version 0")),
        _ => Err(start.unsupported("a newer format version")),
    }
}
