//! One atomic change of the manifest, and its bytes.
//!
//! An edit is a list of records; each is a tag, the length of its body, and the body. A tag that
//! this version does not know makes the whole edit `Unsupported`. See "Manifest" in
//! `docs/format.md`, which also lists the tags that are reserved.
//!
//! I1. Each edit has one encoding: what decodes encodes to the same bytes.

use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::LEVELS_MAX;
use crate::base::{FileNumber, KeyspaceId, SequenceNumber};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::options::RecordedOptions;
use crate::table::{FileMeta, SegmentMeta};
use crate::value::{DiscardList, RelocationTable, ValueFileMeta};

use super::file_codec::{
    put_discard_list, put_file, put_later_segment, put_table, put_value_file, read_discard_list,
    read_file, read_later_segment, read_table, read_value_file,
};

/// The version of the whole on-disk format that this build writes and reads.
const FORMAT_VERSION: u64 = 1;

/// The longest name of a keyspace, in bytes.
pub(crate) const KEYSPACE_NAME_BYTES_MAX: usize = 255;

/// The longest name, and the longest value, of an option, in bytes.
const OPTION_BYTES_MAX: usize = 4096;

/// A change of the manifest that happens as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edit {
    /// What changes, in order: ids are allocated before they are used, and a file is removed from
    /// its old level before it is added to a new one.
    pub(crate) records: Vec<Record>,
}

/// One part of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// The format of everything that follows; the first record of every manifest and found
    /// nowhere else.
    FormatVersion,
    /// Every id from here on is unused.
    NextId(u64),
    /// A new keyspace without files, of one level.
    CreateKeyspace { id: KeyspaceId, name: String },
    /// A table file is part of a level.
    AddFile {
        keyspace: KeyspaceId,
        level: u8,
        file: FileMeta,
    },
    /// A table file is no longer part of a level.
    RemoveFile {
        keyspace: KeyspaceId,
        level: u8,
        number: FileNumber,
    },
    /// A table file has one more segment, behind those it had. It must not be sealed.
    AddSegment {
        keyspace: KeyspaceId,
        level: u8,
        number: FileNumber,
        segment: SegmentMeta,
    },
    /// A file of a transient log, complete. It goes by itself with the edit that removes the last
    /// table that refers to it.
    AddTransientLog {
        keyspace: KeyspaceId,
        file: ValueFileMeta,
    },
    /// A value log, newer than all of its keyspace, that is being written.
    AddValueLog {
        keyspace: KeyspaceId,
        number: FileNumber,
    },
    /// How far the value log that is being written is referred to by tables.
    ValueLogAt {
        keyspace: KeyspaceId,
        file: ValueFileMeta,
    },
    /// A value log is complete and durable; entries up to `last_sequence` refer to it. It goes by
    /// itself once these are in tables and none refers to it.
    SealValueLog {
        keyspace: KeyspaceId,
        file: ValueFileMeta,
        last_sequence: SequenceNumber,
    },
    /// A value file that holds what was live in value logs, complete.
    AddGcOutput {
        keyspace: KeyspaceId,
        file: ValueFileMeta,
    },
    /// Pointers into the origin of the table lead through it from here on. Where that is a value log,
    /// it is no longer part of the database.
    Relocate {
        keyspace: KeyspaceId,
        table: RelocationTable,
    },
    /// A list of garbage values. It goes by itself once none of the value files that it speaks of is left.
    AddDiscardList {
        keyspace: KeyspaceId,
        list: DiscardList,
    },
    /// What a list says of these value files is known to a successor.
    TakeDiscardList {
        keyspace: KeyspaceId,
        list: FileNumber,
        files: Vec<FileNumber>,
    },
    /// The nominal number of levels below level 0, from which capacities are computed.
    LevelCount { keyspace: KeyspaceId, count: u8 },
    /// Every entry of the keyspace up to this sequence number is in table files.
    Flushed {
        keyspace: KeyspaceId,
        sequence: SequenceNumber,
    },
    /// A new write-ahead log, newer than all others.
    AddLog(FileNumber),
    /// Logs below this number are not needed any more.
    OldestLog(FileNumber),
    /// Recovery ended in this log at this offset: nothing behind it counts, neither in this log
    /// nor in the logs that follow it so far.
    LogEnd { number: FileNumber, offset: u64 },
    /// The logs are durable up to this offset of this log.
    LogSynced { number: FileNumber, offset: u64 },
    /// The keyspace and all its files are no longer part of the database.
    DropKeyspace(KeyspaceId),
    /// Every id of a keyspace and every sequence number up to these has been given out.
    Used {
        keyspace: KeyspaceId,
        sequence: SequenceNumber,
    },
    /// The options of the keyspace, all of them, in place of those before.
    KeyspaceOptions {
        keyspace: KeyspaceId,
        options: RecordedOptions,
    },
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

impl Record {
    /// The value log that the record speaks of, as it is then.
    pub(crate) fn value_file(&self) -> Option<&ValueFileMeta> {
        match self {
            Self::ValueLogAt { file, .. } | Self::SealValueLog { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Appends the body and returns the tag.
    fn put_body(&self, body: &mut Vec<u8>) -> u64 {
        match self {
            Self::FormatVersion => {
                put_varint(body, FORMAT_VERSION);
                tag::FORMAT_VERSION
            }
            Self::NextId(id) => {
                put_varint(body, *id);
                tag::NEXT_ID
            }
            Self::CreateKeyspace { id, name } => {
                put_varint(body, u64::from(id.0));
                put_bytes(body, name.as_bytes());
                tag::CREATE_KEYSPACE
            }
            Self::AddFile {
                keyspace,
                level,
                file,
            } => {
                put_varint(body, u64::from(keyspace.0));
                body.push(*level);
                put_file(body, file);
                tag::ADD_FILE
            }
            Self::RemoveFile {
                keyspace,
                level,
                number,
            } => {
                put_varint(body, u64::from(keyspace.0));
                body.push(*level);
                put_varint(body, number.0);
                tag::REMOVE_FILE
            }
            Self::AddSegment {
                keyspace,
                level,
                number,
                segment,
            } => {
                put_varint(body, u64::from(keyspace.0));
                body.push(*level);
                put_varint(body, number.0);
                put_later_segment(body, segment);
                tag::ADD_SEGMENT
            }
            Self::AddTransientLog { keyspace, file } => {
                put_varint(body, u64::from(keyspace.0));
                put_value_file(body, file);
                tag::ADD_TRANSIENT_LOG
            }
            Self::AddValueLog { keyspace, number } => {
                put_varint(body, u64::from(keyspace.0));
                put_varint(body, number.0);
                tag::ADD_VALUE_LOG
            }
            Self::ValueLogAt { keyspace, file } => {
                put_varint(body, u64::from(keyspace.0));
                put_value_file(body, file);
                tag::VALUE_LOG_AT
            }
            Self::SealValueLog {
                keyspace,
                file,
                last_sequence,
            } => {
                put_varint(body, u64::from(keyspace.0));
                put_value_file(body, file);
                put_varint(body, *last_sequence);
                tag::SEAL_VALUE_LOG
            }
            Self::AddGcOutput { keyspace, file } => {
                put_varint(body, u64::from(keyspace.0));
                put_value_file(body, file);
                tag::ADD_GC_OUTPUT
            }
            Self::Relocate { keyspace, table } => {
                put_varint(body, u64::from(keyspace.0));
                put_table(body, table);
                tag::RELOCATE
            }
            Self::AddDiscardList { keyspace, list } => {
                put_varint(body, u64::from(keyspace.0));
                put_discard_list(body, list);
                tag::ADD_DISCARD_LIST
            }
            Self::TakeDiscardList {
                keyspace,
                list,
                files,
            } => {
                put_varint(body, u64::from(keyspace.0));
                put_varint(body, list.0);
                for file in files {
                    put_varint(body, file.0);
                }
                tag::TAKE_DISCARD_LIST
            }
            Self::LevelCount { keyspace, count } => {
                put_varint(body, u64::from(keyspace.0));
                body.push(*count);
                tag::LEVEL_COUNT
            }
            Self::Flushed { keyspace, sequence } => {
                put_varint(body, u64::from(keyspace.0));
                put_varint(body, *sequence);
                tag::FLUSHED
            }
            Self::AddLog(number) => {
                put_varint(body, number.0);
                tag::ADD_LOG
            }
            Self::OldestLog(number) => {
                put_varint(body, number.0);
                tag::OLDEST_LOG
            }
            Self::LogEnd { number, offset } => {
                put_varint(body, number.0);
                put_varint(body, *offset);
                tag::LOG_END
            }
            Self::LogSynced { number, offset } => {
                put_varint(body, number.0);
                put_varint(body, *offset);
                tag::LOG_SYNCED
            }
            Self::DropKeyspace(id) => {
                put_varint(body, u64::from(id.0));
                tag::DROP_KEYSPACE
            }
            Self::Used { keyspace, sequence } => {
                put_varint(body, u64::from(keyspace.0));
                put_varint(body, *sequence);
                tag::USED
            }
            Self::KeyspaceOptions { keyspace, options } => {
                put_varint(body, u64::from(keyspace.0));
                for (name, text) in options {
                    put_bytes(body, name.as_bytes());
                    put_bytes(body, text.as_bytes());
                }
                tag::KEYSPACE_OPTIONS
            }
        }
    }

    fn read(tag: u64, body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let record = match tag {
            tag::FORMAT_VERSION => read_format_version(&mut reader)?,
            tag::NEXT_ID => Self::NextId(reader.varint("next id")?),
            tag::CREATE_KEYSPACE => Self::CreateKeyspace {
                id: read_keyspace(&mut reader)?,
                name: read_name(&mut reader)?,
            },
            tag::ADD_FILE => Self::AddFile {
                keyspace: read_keyspace(&mut reader)?,
                level: read_level(&mut reader)?,
                file: read_file(&mut reader)?,
            },
            tag::REMOVE_FILE => Self::RemoveFile {
                keyspace: read_keyspace(&mut reader)?,
                level: read_level(&mut reader)?,
                number: read_number(&mut reader)?,
            },
            tag::ADD_SEGMENT => Self::AddSegment {
                keyspace: read_keyspace(&mut reader)?,
                level: read_level(&mut reader)?,
                number: read_number(&mut reader)?,
                segment: read_later_segment(&mut reader)?,
            },
            tag::ADD_TRANSIENT_LOG => Self::AddTransientLog {
                keyspace: read_keyspace(&mut reader)?,
                file: read_value_file(&mut reader)?,
            },
            tag::ADD_VALUE_LOG => Self::AddValueLog {
                keyspace: read_keyspace(&mut reader)?,
                number: read_number(&mut reader)?,
            },
            tag::VALUE_LOG_AT => Self::ValueLogAt {
                keyspace: read_keyspace(&mut reader)?,
                file: read_value_file(&mut reader)?,
            },
            tag::SEAL_VALUE_LOG => Self::SealValueLog {
                keyspace: read_keyspace(&mut reader)?,
                file: read_value_file(&mut reader)?,
                last_sequence: read_sequence(&mut reader)?,
            },
            tag::ADD_GC_OUTPUT => Self::AddGcOutput {
                keyspace: read_keyspace(&mut reader)?,
                file: read_value_file(&mut reader)?,
            },
            tag::RELOCATE => Self::Relocate {
                keyspace: read_keyspace(&mut reader)?,
                table: read_table(&mut reader)?,
            },
            tag::ADD_DISCARD_LIST => Self::AddDiscardList {
                keyspace: read_keyspace(&mut reader)?,
                list: read_discard_list(&mut reader)?,
            },
            tag::TAKE_DISCARD_LIST => Self::TakeDiscardList {
                keyspace: read_keyspace(&mut reader)?,
                list: read_number(&mut reader)?,
                files: read_numbers(&mut reader)?,
            },
            tag::LEVEL_COUNT => Self::LevelCount {
                keyspace: read_keyspace(&mut reader)?,
                count: read_level(&mut reader)?,
            },
            tag::FLUSHED => Self::Flushed {
                keyspace: read_keyspace(&mut reader)?,
                sequence: read_sequence(&mut reader)?,
            },
            tag::ADD_LOG => Self::AddLog(read_number(&mut reader)?),
            tag::OLDEST_LOG => Self::OldestLog(read_number(&mut reader)?),
            tag::LOG_END => Self::LogEnd {
                number: read_number(&mut reader)?,
                offset: reader.varint("end of a log")?,
            },
            tag::LOG_SYNCED => Self::LogSynced {
                number: read_number(&mut reader)?,
                offset: reader.varint("durable end of a log")?,
            },
            tag::DROP_KEYSPACE => Self::DropKeyspace(read_keyspace(&mut reader)?),
            tag::USED => Self::Used {
                keyspace: read_keyspace(&mut reader)?,
                sequence: read_sequence(&mut reader)?,
            },
            tag::KEYSPACE_OPTIONS => Self::KeyspaceOptions {
                keyspace: read_keyspace(&mut reader)?,
                options: read_options(&mut reader)?,
            },
            _ => return Err(reader.unsupported("an unknown kind of record")),
        };
        reader.finish("bytes behind the body of a record")?;
        Ok(record)
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

fn read_keyspace(reader: &mut Reader<'_>) -> Result<KeyspaceId, DecodeError> {
    let start = reader.clone();
    let id = reader.varint("id of a keyspace")?;
    match u32::try_from(id) {
        Ok(id) => Ok(KeyspaceId(id)),
        Err(_) => Err(start.error("id of a keyspace beyond the largest")),
    }
}

fn read_name(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let start = reader.clone();
    let name = reader.prefixed_bytes(KEYSPACE_NAME_BYTES_MAX, "name of a keyspace")?;
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(start.error("name of a keyspace is empty or not UTF-8")),
    }
}

fn read_options(reader: &mut Reader<'_>) -> Result<RecordedOptions, DecodeError> {
    let mut options = RecordedOptions::new();
    while !reader.is_empty() {
        let start = reader.clone();
        let name = read_text(reader, "name of an option")?;
        let text = read_text(reader, "value of an option")?;
        let last = options.last_key_value();
        if last.is_some_and(|(last, _)| *last >= name) {
            return Err(start.error("options out of order")); // I1
        }
        options.insert(name, text);
    }
    Ok(options)
}

fn read_text(reader: &mut Reader<'_>, what: &'static str) -> Result<String, DecodeError> {
    let start = reader.clone();
    let bytes = reader.prefixed_bytes(OPTION_BYTES_MAX, what)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(start.error("an option that is not UTF-8")),
    }
}

fn read_level(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let start = reader.clone();
    let level = reader.u8("level")?;
    if usize::from(level) > LEVELS_MAX {
        return Err(start.error("a level beyond the deepest"));
    }
    Ok(level)
}

fn read_number(reader: &mut Reader<'_>) -> Result<FileNumber, DecodeError> {
    reader.varint("number of a file").map(FileNumber)
}

fn read_numbers(reader: &mut Reader<'_>) -> Result<Vec<FileNumber>, DecodeError> {
    let mut numbers = Vec::new();
    while !reader.is_empty() {
        numbers.push(read_number(reader)?);
    }
    Ok(numbers)
}

fn read_sequence(reader: &mut Reader<'_>) -> Result<SequenceNumber, DecodeError> {
    reader.varint_at_most(SEQUENCE_MAX, "sequence number")
}
