//! Values of the damaged database, wherever the pointers of its entries lead.
//!
//! The manifest knows where collected values have gone. Without it a pointer leads to its file as it is: a record is
//! sound for one key, file and offset only, so a wrong one is never returned.
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

/// The value files of a folder.
pub(super) struct OldValues {
    vfs: Arc<dyn Vfs>,
    folder: PathBuf,
    open: OpenValues,
    versions: BTreeMap<KeyspaceId, Version>,
    /// The files as they are.
    files: Mutex<BTreeMap<FileNumber, (ValueFileMeta, Arc<ValueSlot>)>>,
    is_whole: bool,
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
        Self {
            vfs: Arc::clone(&options.vfs),
            open: OpenValues::new(
                Arc::clone(&options.vfs),
                folder.clone(),
                context,
                options.open_files_max / 2,
            ),
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
        let pointer = ValuePointer::decode(pointer);
        let pointer = pointer.map_err(|error| error.in_file("an entry", 0))?;
        let (meta, slot) = self.file(pointer.file)?;
        let open = self.open.get(&slot, &meta)?;
        open.read_into(key, &pointer, value).map(drop)
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
