//! The files below a folder, in a stable order.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windrow::{Error, ErrorKind, Result};

/// One regular file.
#[derive(Debug, Clone)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// Walks over every regular file below a folder, folder by folder in the order of names. Symbolic
/// links and special files are passed over; the folder itself may be named through a link.
#[derive(Debug)]
pub(crate) struct Walk {
    /// What is still to be visited, the next one last.
    pending: Vec<PathBuf>,
    ignored_folders: &'static [&'static str],
}

impl Walk {
    /// # Errors
    /// `NotFound`, and `InvalidArgument` for what is not a folder.
    pub(crate) fn new(root: &Path) -> Result<Self> {
        let metadata = fs::metadata(root).map_err(|error| failed("read", root, error))?;
        if !metadata.is_dir() {
            let message = format!("{} is not a folder", root.display());
            return Err(Error::invalid_argument(message));
        }
        let mut walk = Self {
            pending: Vec::new(),
            ignored_folders: &[],
        };
        walk.enter(root)?;
        Ok(walk)
    }

    /// Leaves folders of these names out.
    pub(crate) fn without(mut self, names: &'static [&'static str]) -> Self {
        self.ignored_folders = names;
        self
    }

    fn visit(&mut self, path: PathBuf) -> Result<Option<FoundFile>> {
        let metadata = fs::symlink_metadata(&path).map_err(|error| failed("read", &path, error))?;
        if metadata.is_file() {
            let bytes = metadata.len();
            return Ok(Some(FoundFile { path, bytes }));
        }
        if metadata.is_dir() && !self.is_ignored(&path) {
            self.enter(&path)?;
        }
        Ok(None)
    }

    fn enter(&mut self, folder: &Path) -> Result<()> {
        let mut children = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| failed("list", folder, error))? {
            children.push(entry.map_err(|error| failed("list", folder, error))?.path());
        }
        children.sort_unstable_by(|left, right| right.cmp(left));
        self.pending.append(&mut children);
        Ok(())
    }

    fn is_ignored(&self, path: &Path) -> bool {
        let name = path.file_name();
        self.ignored_folders
            .iter()
            .any(|ignored| name == Some(ignored.as_ref()))
    }
}

impl Iterator for Walk {
    type Item = Result<FoundFile>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(path) = self.pending.pop() {
            if let Some(found) = self.visit(path).transpose() {
                return Some(found);
            }
        }
        None
    }
}

/// The key of the file at `path`: its path below `root`, with `/` between the parts.
pub(crate) fn key_of(root: &Path, path: &Path) -> Vec<u8> {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<&[u8]> = below
        .components()
        .map(|part| part.as_os_str().as_encoded_bytes())
        .collect();
    parts.join(&b'/')
}

/// The content of the file at `path`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| failed("read", path, error))
}

/// The operating system failed `operation` on `path`, which the caller named: where it does not
/// exist, that is the caller's mistake.
pub(crate) fn failed(operation: &str, path: &Path, source: io::Error) -> Error {
    let missing = source.kind() == io::ErrorKind::NotFound;
    let error = Error::io(operation, path, source);
    if missing {
        error.with_kind(ErrorKind::NotFound)
    } else {
        error
    }
}
