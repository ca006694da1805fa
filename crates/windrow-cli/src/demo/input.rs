//! The files that the demo loads.

use std::env;
use std::path::{Path, PathBuf};

use windrow::{Error, ErrorKind, Result};

use crate::files::{self, Walk};

/// The most that is loaded if no folder was named.
const BYTES_MAX: u64 = 256 << 20;
const FILES_MAX: usize = 60_000;

/// Longer files are left out: the demo holds several at a time.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// One file to load.
#[derive(Debug)]
pub(super) struct InputFile {
    pub(super) key: Vec<u8>,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// All files to load, at least one, in the order of their paths.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) root: PathBuf,
    pub(super) files: Vec<InputFile>,
    pub(super) bytes: u64,
    /// Files left out because they are too large.
    pub(super) skipped_large: u64,
}

impl Input {
    /// The files below `folder`; else those that cargo has unpacked, up to a bound; else the
    /// project's own.
    pub(super) fn find(folder: Option<&Path>) -> Result<Self> {
        if let Some(folder) = folder {
            let input = Self::below(folder, &[], u64::MAX, usize::MAX)?;
            return input.not_empty();
        }
        if let Some(sources) = unpacked_sources() {
            let input = Self::below(&sources, &[], BYTES_MAX, FILES_MAX)?;
            if !input.files.is_empty() {
                return Ok(input);
            }
        }
        let ignored = &["target", ".git"];
        Self::below(&project(), ignored, BYTES_MAX, FILES_MAX)?.not_empty()
    }

    fn below(
        root: &Path,
        ignored_folders: &'static [&'static str],
        bytes_max: u64,
        files_max: usize,
    ) -> Result<Self> {
        let mut input = Self {
            root: root.to_owned(),
            files: Vec::new(),
            bytes: 0,
            skipped_large: 0,
        };
        for file in Walk::new(root)?.without(ignored_folders) {
            let file = file?;
            if file.bytes > FILE_BYTES_MAX {
                input.skipped_large += 1;
                continue;
            }
            if input.files.len() == files_max || input.bytes + file.bytes > bytes_max {
                break;
            }
            input.bytes += file.bytes;
            input.files.push(InputFile {
                key: files::key_of(root, &file.path),
                path: file.path,
                bytes: file.bytes,
            });
        }
        Ok(input)
    }

    fn not_empty(self) -> Result<Self> {
        if self.files.is_empty() {
            let what = format!("there is no file to load below {}", self.root.display());
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        Ok(self)
    }
}

/// Where cargo unpacks the sources that it builds.
fn unpacked_sources() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")))?;
    let sources = home.join("registry").join("src");
    sources.is_dir().then_some(sources)
}

/// The root of the project under `cargo run`, else the current folder.
fn project() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = manifest.and_then(|folder| Some(folder.parent()?.parent()?.to_owned()));
    root.unwrap_or_else(|| PathBuf::from("."))
}
