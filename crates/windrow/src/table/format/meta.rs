//! What the manifest records of table files.
//!
//! Invariant: the record of a segment agrees with its bytes; `verify` counts again. References are sums
//! over entries, so the manifest knows without reading a table when nothing refers to a value file.

use std::sync::Arc;

use crate::base::{FileNumber, Kind, SegmentId, SequenceNumber, Trailer};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;
use crate::filter::FILTER_UNITS_MAX;
use crate::value::ValuePointer;

/// What the manifest records of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    pub(crate) id: SegmentId,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) smallest: Box<[u8]>,
    pub(crate) largest: Box<[u8]>,
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    pub(crate) logical_bytes: u64,
    /// About how many of its keys older segments of the file have too, estimated from their filters; all if
    /// these are too small, none in the first segment.
    pub(crate) overwrites: u64,
    /// Bytes of each filter unit, 0 where it is absent.
    pub(crate) filter_units: [u64; FILTER_UNITS_MAX],
    pub(crate) footer_checksum: u32,
    pub(crate) references: References,
}

/// What the entries of a segment refer to in value files, by file. Copies share it: with keys in random
/// order, nearly every table refers to nearly every value log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct References {
    /// Ascending by file.
    files: Arc<Vec<(FileNumber, Referred)>>,
    /// The number of transient logs.
    transient_files: usize,
    /// The bytes of all records in transient logs; read at every key of a compaction.
    transient_bytes: u64,
    /// The bytes of all records in value logs.
    log_bytes: u64,
}

/// The references to one value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Referred {
    /// Whether the file is a value log, not a transient log.
    pub(crate) is_log: bool,
    pub(crate) entries: u64,
    /// Stored bytes of the records.
    pub(crate) bytes: u64,
}

impl Referred {
    /// The sum of both, in files of the kind of this one.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
            ..self
        }
    }
}

impl References {
    /// Counts an entry of kind `trailer.kind()` with the stored `value`; returns the logical length of its
    /// value.
    pub(crate) fn note(&mut self, trailer: Trailer, value: &[u8]) -> Result<u64, DecodeError> {
        if !trailer.is_pointer() {
            return Ok(value.len() as u64);
        }
        let pointer = ValuePointer::decode(value)?;
        let referred = Referred {
            is_log: trailer.kind() == Kind::ValueLogPointer,
            entries: 1,
            bytes: pointer.record_bytes,
        };
        self.add(pointer.file, referred);
        // A value in a log is never compacted: the level holds its pointer (D13).
        if referred.is_log {
            return Ok(value.len() as u64);
        }
        Ok(pointer.value_bytes)
    }

    /// Adds references to `file`.
    fn add(&mut self, file: FileNumber, referred: Referred) {
        let files = Arc::make_mut(&mut self.files);
        let place = files.binary_search_by_key(&file, |(number, _)| *number);
        let place = place.unwrap_or_else(|place| {
            self.transient_files += usize::from(!referred.is_log);
            let nothing = Referred {
                is_log: referred.is_log,
                ..Referred::default()
            };
            files.insert(place, (file, nothing));
            place
        });
        let (_, of_file) = &mut files[place];
        *of_file = of_file.plus(referred);
        let bytes = if of_file.is_log {
            &mut self.log_bytes
        } else {
            &mut self.transient_bytes
        };
        *bytes = bytes.saturating_add(referred.bytes);
    }

    /// Ascending by file.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (FileNumber, Referred)> {
        self.files.iter().copied()
    }

    /// The bytes of all records in transient logs.
    pub(crate) fn transient_bytes(&self) -> u64 {
        self.transient_bytes
    }

    /// The bytes of all records in value logs.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// The number of transient logs.
    pub(crate) fn transient_files(&self) -> usize {
        self.transient_files
    }

    /// The entries of all files.
    pub(crate) fn entries(&self) -> u64 {
        let entries = self.files.iter().map(|(_, referred)| referred.entries);
        entries.fold(0, u64::saturating_add)
    }

    /// Appends the references to `output`.
    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        put_varint(output, self.files.len() as u64);
        for (file, referred) in self.iter() {
            put_varint(output, file.0);
            output.push(u8::from(referred.is_log));
            put_varint(output, referred.entries);
            put_varint(output, referred.bytes);
        }
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.varint("count of referred value files")?;
        let mut references = Self::default();
        for _ in 0..count {
            let start = reader.clone();
            let file = FileNumber(reader.varint("number of a referred value file")?);
            let kind = reader.clone();
            let referred = Referred {
                is_log: match reader.u8("kind of a referred value file")? {
                    0 => false,
                    1 => true,
                    _ => return Err(kind.unsupported("unknown kind of value file")),
                },
                entries: reader.varint("entries that refer to a value file")?,
                bytes: reader.varint("bytes that are referred to in a value file")?,
            };
            let last = references.files.last().map(|(last, _)| *last);
            if last >= Some(file) || referred.entries == 0 {
                return Err(start.error("references are out of order or refer to nothing"));
            }
            references.add(file, referred);
        }
        Ok(references)
    }
}

/// What the manifest records of one table file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMeta {
    pub(crate) number: FileNumber,
    /// Whether other databases may share the file's bytes, as in a checkpoint: this database neither
    /// appends to it nor truncates it, and ignores bytes after its segments.
    pub(crate) sealed: bool,
    pub(crate) segments: Vec<SegmentMeta>,
}

impl SegmentMeta {
    /// Bytes of all filter units.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filter_units
            .iter()
            .fold(0, |sum, unit| sum.saturating_add(*unit))
    }

    /// The number of filter units.
    pub(crate) fn filter_unit_count(&self) -> usize {
        self.filter_units
            .iter()
            .take_while(|unit| **unit > 0)
            .count()
    }

    /// The offset just after the segment's footer.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl FileMeta {
    /// The sum over all segments, at most `u64::MAX` whatever a damaged manifest says.
    fn sum(&self, count: impl Fn(&SegmentMeta) -> u64) -> u64 {
        self.segments.iter().map(count).fold(0, u64::saturating_add)
    }

    /// The bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(|segment| segment.length)
    }

    /// The offset just after the last segment.
    pub(crate) fn end(&self) -> u64 {
        let ends = self.segments.iter().map(SegmentMeta::end);
        ends.max().unwrap_or(0)
    }

    /// The entries of all segments, every version counted.
    pub(crate) fn entries(&self) -> u64 {
        self.sum(|segment| segment.entries)
    }

    /// The tombstones of all segments.
    pub(crate) fn tombstones(&self) -> u64 {
        self.sum(|segment| segment.tombstones)
    }

    /// The logical bytes of all segments.
    pub(crate) fn logical_bytes(&self) -> u64 {
        self.sum(|segment| segment.logical_bytes)
    }

    /// The bytes in transient logs that the entries of all segments refer to.
    pub(crate) fn transient_bytes(&self) -> u64 {
        self.sum(|segment| segment.references.transient_bytes())
    }

    /// The bytes in value logs that the entries of all segments refer to.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.sum(|segment| segment.references.log_bytes())
    }

    /// The number of transient logs that the entries refer to. One that several segments refer to counts
    /// for each.
    pub(crate) fn transient_files(&self) -> u32 {
        let files = self.sum(|segment| segment.references.transient_files() as u64);
        u32::try_from(files).unwrap_or(u32::MAX)
    }

    /// The smallest sequence number of any entry.
    pub(crate) fn sequence_min(&self) -> SequenceNumber {
        let numbers = self.segments.iter().map(|segment| segment.sequence_min);
        numbers.min().unwrap_or_default()
    }

    /// The largest sequence number of any entry.
    pub(crate) fn sequence_max(&self) -> SequenceNumber {
        self.segments
            .iter()
            .map(|segment| segment.sequence_max)
            .max()
            .unwrap_or_default()
    }
}

/// The name of a table file within the database's directory.
pub(crate) fn file_name(number: FileNumber) -> String {
    format!("{number}.table")
}
