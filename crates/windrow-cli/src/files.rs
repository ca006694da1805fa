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

/// What a walk passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PassedOver {
    /// Symbolic links.
    pub(crate) links: u64,
    /// Pipes, sockets and devices.
    pub(crate) special: u64,
    /// Folders that are databases.
    pub(crate) databases: u64,
}

/// Walks over every regular file below a folder, folder by folder in the order of names. It passes over
/// symbolic links, special files and databases, and counts them; the folder itself may be named
/// through a link.
#[derive(Debug)]
pub(crate) struct Walk {
    /// What is still to be visited, the next one last.
    pending: Vec<PathBuf>,
    ignored_folders: &'static [&'static str],
    passed_over: PassedOver,
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
            passed_over: PassedOver::default(),
        };
        walk.enter(root)?;
        Ok(walk)
    }

    /// What was passed over so far.
    pub(crate) fn passed_over(&self) -> PassedOver {
        self.passed_over
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
        if metadata.is_symlink() {
            self.passed_over.links += 1;
        } else if !metadata.is_dir() {
            self.passed_over.special += 1;
        } else if is_database(&path) {
            self.passed_over.databases += 1;
        } else if !self.is_ignored(&path) {
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

/// Whether `folder` holds a database: a file CURRENT beside a manifest.
pub(crate) fn is_database(folder: &Path) -> bool {
    let is_manifest = |path: &Path| path.extension().is_some_and(|end| end == "manifest");
    folder.join("CURRENT").is_file()
        && fs::read_dir(folder)
            .is_ok_and(|entries| entries.flatten().any(|entry| is_manifest(&entry.path())))
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

/// The operating system failed `operation` on `path`, which the caller named. If the path does not
/// exist, that is a mistake of the caller.
pub(crate) fn failed(operation: &str, path: &Path, source: io::Error) -> Error {
    let missing = source.kind() == io::ErrorKind::NotFound;
    let error = Error::io(operation, path, source);
    if missing {
        error.with_kind(ErrorKind::NotFound)
    } else {
        error
    }
}
