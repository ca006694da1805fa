//! The files of open tables, which are open only while they are read.
//!
//! A table stays in memory without its file: its filters answer for absent keys, and its index has the place of each
//! block. Reads of blocks open the file, and [`OpenFiles`] closes the least recently used, so the number of descriptors
//! and mappings is bounded whatever the number of tables.
//!
//! Concurrency: that of [`OpenFiles`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::cache::{CachedFile, FileSlot, OpenFile, OpenFiles};
use crate::options::BlockSource;
use crate::vfs::{Advice, File, OpenMode, Region, Vfs, map_if_possible};

/// The file of a table while it is open.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) file: Arc<dyn File>,
    /// The mapping, in mapped mode, if the file can be mapped.
    pub(crate) region: Option<Arc<Region>>,
}

/// Holds the file of a table while it is open.
pub(crate) type TableFileSlot = FileSlot<TableFile>;

impl CachedFile for TableFile {
    type State = ();
    type Budget = ();
}

/// Opens the table files of a folder on demand and closes the least recently used.
#[derive(Debug)]
pub(crate) struct TableFiles {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    source: BlockSource,
    files: OpenFiles<TableFile>,
}

impl TableFiles {
    /// Files of `directory`, about `open_max` of them open at a time, and mapped if `source` says so.
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        source: BlockSource,
        open_max: usize,
    ) -> Self {
        Self {
            vfs,
            directory,
            source,
            files: OpenFiles::new(open_max, ()),
        }
    }

    /// Opens no more files and closes those that no reader holds.
    pub(crate) fn close(&self) {
        self.files.close();
    }

    /// The file `name` in `slot`, whose segments end at `end`.
    #[inline]
    pub(crate) fn get(
        &self,
        slot: &Arc<TableFileSlot>,
        name: &str,
        end: u64,
    ) -> Result<OpenFile<TableFile>> {
        match slot.get() {
            Some(file) => Ok(file),
            None => self.open(slot, name, end),
        }
    }

    #[cold]
    fn open(&self, slot: &Arc<TableFileSlot>, name: &str, end: u64) -> Result<OpenFile<TableFile>> {
        let path = self.directory.join(name);
        self.files.open(slot, || {
            let open = || self.vfs.open(&path, OpenMode::Read);
            let file = self.files.unless_closed(open)?;
            let file = file.map_err(|error| Error::open(name, &path, error))?;
            self.prepare(file, name, end)
        })
    }

    /// The number of open files.
    #[cfg(test)]
    pub(crate) fn open_files(&self) -> usize {
        self.files.open_files()
    }

    /// Puts `file` into `slot` as [`get`](Self::get) would open it.
    #[cfg(test)]
    pub(crate) fn hold(
        &self,
        slot: &Arc<TableFileSlot>,
        file: Arc<dyn File>,
        name: &str,
        end: u64,
    ) -> Result<()> {
        self.files
            .open(slot, || self.prepare(file, name, end))
            .map(drop)
    }

    fn prepare(&self, file: Arc<dyn File>, name: &str, end: u64) -> Result<Arc<TableFile>> {
        let path = Path::new(name);
        let length = file
            .length()
            .map_err(|error| Error::io("read the length of", path, error))?;
        if length < end {
            let what = "the file ends before its recorded end";
            return Err(Error::corruption(name, length, what));
        }
        file.advise(0..end, Advice::Random);
        let region = match self.source {
            BlockSource::Buffered => None,
            BlockSource::Mapped => {
                map_if_possible(&*file, end).map_err(|error| Error::io("map", path, error))?
            }
        };
        Ok(Arc::new(TableFile { file, region }))
    }
}
