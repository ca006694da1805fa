//! Values of the damaged database, wherever the pointers of its entries lead.
//!
//! The manifest knows where collected values have gone. Without it a pointer leads to its file as it is: a record is
//! sound for one key, file and offset only, so a wrong one is never returned.
//!
//! A record is read before anybody knows whether it is sound, and a few bytes of a log name a long one. So the bytes of a file that
//! are read for records that are not sound are bounded by its length.
//!
//! Concurrency: one thread.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::survey::Survey;
use crate::base::sync::Mutex;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Result};
use crate::cache::MarkClock;
use crate::manifest::names::FileName;
use crate::manifest::{Obsolete, Version};
use crate::options::{BlockSource, Options};
use crate::read::value_reader::ValueReader;
use crate::value::{OpenValues, ValueContext, ValueFileMeta, ValuePointer, ValueSlot};
use crate::vfs::{OpenMode, Vfs};

/// How often the bytes of a value file may be read for records that are not sound. In one database, few entries lead to the same record.
const UNSOUND_READS_MAX: u64 = 16;

/// The value files of a folder.
pub(super) struct OldValues {
    vfs: Arc<dyn Vfs>,
    folder: PathBuf,
    open: OpenValues,
    versions: BTreeMap<KeyspaceId, Version>,
    /// The files as they are.
    files: Mutex<BTreeMap<FileNumber, (ValueFileMeta, Arc<ValueSlot>)>>,
    is_whole: bool,
    /// The length of each file of the folder, and the bytes of it that may still be read for records that are not sound.
    unsound_bytes_left: Mutex<BTreeMap<FileNumber, (u64, u64)>>,
}

impl OldValues {
    pub(super) fn new(options: &Options, folder: PathBuf, survey: &Survey) -> Self {
        let context = ValueContext {
            source: BlockSource::Buffered,
            clock: Arc::new(MarkClock::new(&options.runtime)),
            files: Arc::default(),
            cursors: Arc::default(),
        };
        let obsolete = Arc::<Obsolete>::default();
        let keyspaces = survey.state.keyspaces.iter();
        let version = |(&id, keyspace)| Some((id, Version::from_state(keyspace, &obsolete).ok()?));
        let length = |file: &FileName| {
            let FileName::Values(number) = *file else {
                return None;
            };
            let file = options
                .vfs
                .open(&folder.join(file.to_string()), OpenMode::Read);
            // What cannot be opened has no bytes to read.
            let length = file.and_then(|file| file.length()).ok()?;
            Some((number, (length, length.saturating_mul(UNSOUND_READS_MAX))))
        };
        let unsound_bytes_left = survey.files.iter().filter_map(length).collect();
        Self {
            vfs: Arc::clone(&options.vfs),
            open: OpenValues::new(
                Arc::clone(&options.vfs),
                folder.clone(),
                context,
                options.open_files_max / 2,
            ),
            unsound_bytes_left: Mutex::new(unsound_bytes_left),
            folder,
            versions: keyspaces.filter_map(version).collect(),
            files: Mutex::default(),
            is_whole: survey.is_whole(),
        }
    }

    /// Replaces the content of `value` by the value of `key` that `pointer` leads to.
    ///
    /// # Errors
    /// `Corruption`: the value is lost. `Io`.
    pub(super) fn read(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        pointer: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<()> {
        let decoded = ValuePointer::decode(pointer);
        let decoded = decoded.map_err(|error| error.in_file("an entry", 0))?;
        let end = decoded.offset.saturating_add(decoded.record_bytes);
        let left = self.unsound_bytes_left.lock().get(&decoded.file).copied();
        // Of other records nothing is read.
        let left = left.and_then(|(length, left)| (end <= length).then_some(left));
        if left.is_some_and(|left| decoded.record_bytes > left) {
            let what = "too many records of the file cannot be read, so no others are tried";
            let file = FileName::Values(decoded.file).to_string();
            return Err(Error::corruption(&file, decoded.offset, what));
        }
        let outcome = self.read_at(keyspace, key, (pointer, &decoded), value);
        if matches!(&outcome, Err(error) if error.kind() == ErrorKind::Corruption)
            && let (Some(_), Some((_, left))) =
                (left, self.unsound_bytes_left.lock().get_mut(&decoded.file))
        {
            *left = left.saturating_sub(decoded.record_bytes);
        }
        outcome
    }

    fn read_at(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        (pointer, decoded): (&[u8], &ValuePointer),
        value: &mut Vec<u8>,
    ) -> Result<()> {
        let by_manifest = self.versions.get(&keyspace).map(|version| {
            let reader = ValueReader {
                files: version.values(),
                open: &self.open,
            };
            reader.read_into(key, pointer, value)
        });
        match by_manifest {
            Some(Err(error)) if error.kind() == ErrorKind::Corruption && !self.is_whole => {}
            Some(outcome) => return outcome,
            None => {}
        }
        let (meta, slot) = self.file(decoded.file)?;
        let open = self.open.get(&slot, &meta)?;
        open.read_into(key, decoded, value).map(drop)
    }

    /// The file `number` as it is.
    fn file(&self, number: FileNumber) -> Result<(ValueFileMeta, Arc<ValueSlot>)> {
        let mut files = self.files.lock();
        if let Some((meta, slot)) = files.get(&number) {
            return Ok((*meta, Arc::clone(slot)));
        }
        let name = FileName::Values(number).to_string();
        let path = self.folder.join(&name);
        let opened = self.vfs.open(&path, OpenMode::Read);
        let file = opened.map_err(|error| Error::open(&name, &path, error))?;
        let length = file.length();
        let length = length.map_err(|error| Error::io("read the length of", &path, error))?;
        let meta = ValueFileMeta {
            number,
            length,
            entries: 0,
            value_bytes: 0,
            end: length,
        };
        let slot = Arc::<ValueSlot>::default();
        files.insert(number, (meta, Arc::clone(&slot)));
        Ok((meta, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::{OldValues, Survey, UNSOUND_READS_MAX};
    use crate::base::{FileNumber, KeyspaceId};
    use crate::options::Options;
    use crate::value::ValuePointer;
    use crate::vfs::write_all_at;

    /// Each key may lead to the same bytes, which are long and no record of it.
    #[test]
    fn reads_of_unsound_records_are_bounded() {
        const LENGTH: usize = 10_000;
        let folder = tempfile::tempdir().unwrap();
        let options = Options::default();
        let file = options
            .vfs
            .create(&folder.path().join("000009.values"))
            .unwrap();
        write_all_at(&*file, &[0; LENGTH], 0).unwrap();
        let survey = Survey::read(&*options.vfs, folder.path()).unwrap();
        let values = OldValues::new(&options, folder.path().to_owned(), &survey);
        let pointer = ValuePointer {
            file: FileNumber(9),
            offset: 0,
            record_bytes: LENGTH as u64,
            value_bytes: 100,
        };
        let mut bytes = Vec::new();
        pointer.encode(&mut bytes);
        let mut tried = 0;
        for key in 0..=u8::MAX {
            let error = values
                .read(KeyspaceId(1), &[key], &bytes, &mut Vec::new())
                .unwrap_err();
            tried += u64::from(!error.to_string().contains("no others are tried"));
        }
        assert_eq!(tried, UNSOUND_READS_MAX);
    }
}
