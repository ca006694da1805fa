//! The references of a segment's entries to value files.
//!
//! A writer counts them by file ([`References`]). The list of transient logs is short, because compactions rewrite thin
//! slices of them. So the manifest and the properties of the segment have it. The list of value logs is as long as
//! there are value logs, if keys come in random order. It has a block of its own in the segment, and the manifest and
//! the properties have only its sums ([`LogSums`]). So memory and manifest do not grow with the product of tables and
//! logs.
//!
//! I1. A list ascends strictly by file, and each file has entries.
//! I2. A list or a sum that decodes encodes to the same bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::expiry::{EXPIRY_BYTES, split_expiring};
use crate::base::{FileNumber, Kind, Trailer};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;
use crate::value::ValuePointer;

/// References to one value file, or to several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Referred {
    pub(crate) entries: u64,
    /// Stored bytes of the records.
    pub(crate) bytes: u64,
}

impl Referred {
    /// The sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Without `part`, which it has counted.
    pub(crate) fn minus(self, part: Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(part.entries),
            bytes: self.bytes.saturating_sub(part.bytes),
        }
    }
}

/// The references of entries, while they are counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct References {
    transient: BTreeMap<FileNumber, Referred>,
    logs: BTreeMap<FileNumber, Referred>,
    /// The bytes of all records in transient logs; read at every key of a compaction.
    transient_bytes: u64,
}

impl References {
    /// Counts an entry of kind `trailer.kind()` that stores `value`; returns the logical length of that.
    pub(crate) fn note(&mut self, trailer: Trailer, value: &[u8]) -> Result<u64, DecodeError> {
        if trailer.is_expiring() {
            let (_, value) = split_expiring(value);
            return Ok(EXPIRY_BYTES as u64 + self.note(trailer.lasting(), value)?);
        }
        if !trailer.is_pointer() {
            return Ok(value.len() as u64);
        }
        let pointer = ValuePointer::decode(value)?;
        let referred = Referred {
            entries: 1,
            bytes: pointer.record_bytes,
        };
        // A value in a log is never compacted: the level holds its pointer (D13).
        let (files, logical_bytes) = if trailer.kind() == Kind::ValueLogPointer {
            (&mut self.logs, value.len() as u64)
        } else {
            self.transient_bytes = self.transient_bytes.saturating_add(referred.bytes);
            (&mut self.transient, pointer.value_bytes)
        };
        let of_file = files.entry(pointer.file).or_default();
        *of_file = of_file.plus(referred);
        Ok(logical_bytes)
    }

    /// The bytes of all records in transient logs.
    pub(crate) fn transient_bytes(&self) -> u64 {
        self.transient_bytes
    }

    /// About how many bytes they hold in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        // Nodes of the maps are about two thirds full.
        let entry_bytes = size_of::<(FileNumber, Referred)>() * 3 / 2;
        (self.transient.len() + self.logs.len()) * entry_bytes
    }

    /// The references to transient logs, if there are any.
    pub(crate) fn transient(&self) -> Option<Arc<ReferenceList>> {
        ReferenceList::new(self.transient.iter()).shared()
    }

    /// The references to value logs.
    pub(crate) fn logs(&self) -> ReferenceList {
        ReferenceList::new(self.logs.iter())
    }
}

/// References to value files of one kind, by file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReferenceList {
    /// I1.
    files: Vec<(FileNumber, Referred)>,
    sum: Referred,
}

impl ReferenceList {
    fn new<'a>(files: impl ExactSizeIterator<Item = (&'a FileNumber, &'a Referred)>) -> Self {
        let mut list = Self::default();
        list.files.reserve_exact(files.len());
        files.for_each(|(file, referred)| list.push(*file, *referred));
        list
    }

    fn push(&mut self, file: FileNumber, referred: Referred) {
        self.files.push((file, referred));
        self.sum = self.sum.plus(referred);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// `None` for an empty list.
    pub(super) fn shared(self) -> Option<Arc<Self>> {
        (!self.is_empty()).then(|| Arc::new(self))
    }

    /// Ascending by file.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (FileNumber, Referred)> {
        self.files.iter().copied()
    }

    /// The sums of a list of value logs; `None` if it is empty.
    pub(crate) fn log_sums(&self) -> Option<LogSums> {
        let ((smallest, _), (largest, _)) = (self.files.first()?, self.files.last()?);
        Some(LogSums {
            referred: self.sum,
            smallest: *smallest,
            largest: *largest,
        })
    }

    /// Appends the list to `output`.
    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        put_varint(output, self.files.len() as u64);
        let mut before = 0;
        for (file, referred) in self.iter() {
            put_varint(output, file.0 - before);
            put_varint(output, referred.entries);
            put_varint(output, referred.bytes);
            before = file.0;
        }
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.varint("count of referred value files")?;
        let mut list = Self::default();
        let mut before = 0_u64;
        for _ in 0..count {
            let start = reader.clone();
            let step = reader.varint("number of a referred value file")?;
            let referred = Referred {
                entries: reader.varint("entries that refer to a value file")?,
                bytes: reader.varint("bytes that are referred to in a value file")?,
            };
            let file = before.checked_add(step).filter(|file| *file > before);
            let Some(file) = file.filter(|_| referred.entries > 0) else {
                return Err(start.error("references are out of order or refer to nothing"));
            };
            list.push(FileNumber(file), referred);
            before = file;
        }
        list.files.shrink_to_fit();
        Ok(list)
    }

    /// Reads the whole payload of a block.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let list = Self::read(&mut reader)?;
        reader.finish("bytes follow a list of references")?;
        Ok(list)
    }
}

/// The sums of a list of value logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSums {
    /// The references to all of them.
    pub(crate) referred: Referred,
    /// The span: the smallest and the largest number.
    pub(crate) smallest: FileNumber,
    pub(crate) largest: FileNumber,
}

impl LogSums {
    /// Appends the sums to `output`.
    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        put_varint(output, self.referred.entries);
        put_varint(output, self.referred.bytes);
        put_varint(output, self.smallest.0);
        put_varint(output, self.largest.0 - self.smallest.0);
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let entries = reader.varint("entries that refer to value logs")?;
        Self::read_after(entries, reader)
    }

    /// Reads what follows `entries`.
    fn read_after(entries: u64, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let bytes = reader.varint("bytes that are referred to in value logs")?;
        let smallest = reader.varint("smallest number of a referred value log")?;
        let more = reader.varint("span of the referred value logs")?;
        let largest = smallest.checked_add(more);
        let Some(largest) = largest.filter(|_| entries > 0 && smallest > 0) else {
            return Err(start.error("references to value logs are impossible"));
        };
        Ok(Self {
            referred: Referred { entries, bytes },
            smallest: FileNumber(smallest),
            largest: FileNumber(largest),
        })
    }
}

/// What the manifest records of the references to value logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogReferences {
    pub(crate) sums: LogSums,
    /// The newest GC output when the segment was written, or 0. The segment has no pointer into an origin that led to
    /// this file or to an older one, unless the relocation table was damaged. No reader depends on it.
    pub(crate) generation: FileNumber,
}

/// What the manifest records of a segment's references. Copies share it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SegmentReferences {
    /// `None` if there are none.
    transient: Option<Arc<ReferenceList>>,
    logs: Option<Arc<LogReferences>>,
}

impl SegmentReferences {
    /// `transient` is not an empty list.
    pub(crate) fn new(transient: Option<Arc<ReferenceList>>, logs: Option<LogReferences>) -> Self {
        Self {
            transient,
            logs: logs.map(Arc::new),
        }
    }

    /// The references to transient logs, ascending by file.
    pub(crate) fn transient(&self) -> impl Iterator<Item = (FileNumber, Referred)> {
        self.transient.iter().flat_map(|list| list.iter())
    }

    /// The list of transient logs.
    pub(crate) fn transient_list(&self) -> Option<&Arc<ReferenceList>> {
        self.transient.as_ref()
    }

    /// The number of transient logs.
    pub(crate) fn transient_files(&self) -> usize {
        self.transient.as_ref().map_or(0, |list| list.files.len())
    }

    /// The bytes of all records in transient logs.
    pub(crate) fn transient_bytes(&self) -> u64 {
        self.transient.as_ref().map_or(0, |list| list.sum.bytes)
    }

    /// The references to value logs, if there are any.
    pub(crate) fn logs(&self) -> Option<&LogReferences> {
        self.logs.as_deref()
    }

    /// All references to value logs together.
    pub(crate) fn in_logs(&self) -> Referred {
        let logs = self.logs.as_ref();
        logs.map_or_else(Referred::default, |logs| logs.sums.referred)
    }

    /// The bytes of all records in value logs.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.in_logs().bytes
    }

    /// The entries that refer to any file.
    pub(crate) fn entries(&self) -> u64 {
        let transient = self.transient.as_ref().map_or(0, |list| list.sum.entries);
        transient.saturating_add(self.in_logs().entries)
    }

    /// Whether the properties of the segment say the same.
    pub(super) fn agree_with(
        &self,
        transient: Option<&Arc<ReferenceList>>,
        logs: Option<LogSums>,
    ) -> bool {
        self.transient.as_ref() == transient && self.logs.as_ref().map(|logs| logs.sums) == logs
    }

    /// Appends the references to `output`.
    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        match &self.transient {
            Some(list) => list.encode(output),
            None => put_varint(output, 0),
        }
        match &self.logs {
            Some(logs) => {
                logs.sums.encode(output);
                put_varint(output, logs.generation.0);
            }
            None => put_varint(output, 0),
        }
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let transient = ReferenceList::read(reader)?.shared();
        let logs = match reader.varint("entries that refer to value logs")? {
            0 => None,
            entries => Some(LogReferences {
                sums: LogSums::read_after(entries, reader)?,
                generation: FileNumber(reader.varint("generation of the references")?),
            }),
        };
        Ok(Self::new(transient, logs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(files: &[(u64, u64, u64)]) -> ReferenceList {
        let files = files
            .iter()
            .map(|&(file, entries, bytes)| (FileNumber(file), Referred { entries, bytes }));
        let files: BTreeMap<FileNumber, Referred> = files.collect();
        ReferenceList::new(files.iter())
    }

    fn encoded(references: &SegmentReferences) -> Vec<u8> {
        let mut bytes = Vec::new();
        references.encode(&mut bytes);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<SegmentReferences, DecodeError> {
        let mut reader = Reader::new(bytes);
        let references = SegmentReferences::read(&mut reader)?;
        reader.finish("bytes follow")?;
        Ok(references)
    }

    // I2
    #[test]
    fn references_round_trip() {
        let logs = list(&[(3, 1, 7), (300, 2, 1 << 40)]);
        let sums = logs.log_sums().unwrap();
        assert_eq!(
            (sums.smallest, sums.largest),
            (FileNumber(3), FileNumber(300))
        );
        assert_eq!(sums.referred, logs.sum);
        let mut block = Vec::new();
        logs.encode(&mut block);
        assert_eq!(ReferenceList::decode(&block).unwrap(), logs);
        for transient in [
            list(&[]),
            list(&[(1, 1, 9)]),
            list(&[(1, 1, 9), (2, 5, 50)]),
        ] {
            let transient = transient.shared();
            for generation in [None, Some(0), Some(1 << 50)] {
                let logs = generation.map(|generation| LogReferences {
                    sums,
                    generation: FileNumber(generation),
                });
                let references = SegmentReferences::new(transient.clone(), logs);
                assert_eq!(read(&encoded(&references)).unwrap(), references);
                let sums = logs.map(|logs| logs.sums);
                assert!(references.agree_with(transient.as_ref(), sums));
                let other = list(&[(9, 1, 9)]).shared();
                assert!(!references.agree_with(other.as_ref(), sums));
                let others = list(&[(3, 1, 7)]).log_sums();
                assert!(!references.agree_with(transient.as_ref(), others));
            }
        }
        assert_eq!(list(&[]).log_sums(), None);
    }

    // I1
    #[test]
    fn impossible_references_are_refused() {
        let sound: &[u8] = &[1, 7, 1, 40, 2, 90, 3, 5, 11];
        let read_sound = read(sound).unwrap();
        assert_eq!(read_sound.entries(), 3);
        assert_eq!(
            (read_sound.transient_bytes(), read_sound.log_bytes()),
            (40, 90)
        );
        let overflow = [&[2, 7, 1, 40][..], &[255; 9], &[1, 1, 40, 0]].concat();
        let endless = [&[0, 2, 90, 3][..], &[255; 9], &[1, 11]].concat();
        for (what, bytes) in [
            ("the same file twice", &[2, 7, 1, 40, 0, 1, 40, 0][..]),
            ("file 0", &[1, 0, 1, 40, 0]),
            ("no entries", &[1, 7, 0, 40, 0]),
            ("cut off in the list", &[2, 7, 1, 40]),
            ("a count beyond the bytes", &[255, 255, 3, 7, 1, 40]),
            ("the number overflows", &overflow),
            ("the span overflows", &endless),
            ("log 0", &[0, 2, 90, 0, 5, 11]),
            ("cut off in the sums", &sound[..8]),
        ] {
            assert!(!read(bytes).expect_err(what).unsupported, "{what}");
        }
        assert!(ReferenceList::decode(&[1, 7, 1, 40, 0]).is_err());
        assert!(LogSums::read(&mut Reader::new(&[0, 90, 3, 5])).is_err());
    }

    proptest! {
        // I2
        #[test]
        fn arbitrary_bytes_are_an_error_or_one_encoding(
            bytes in proptest::collection::vec(0..20u8, 0..20),
        ) {
            if let Ok(references) = read(&bytes) {
                prop_assert_eq!(encoded(&references), bytes);
            }
        }
    }
}
