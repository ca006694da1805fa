//! The references of segments and of table files to value files.

/// For each file, how many entries of each class of keys refer to it.
#[derive(Debug, Clone, Default)]
pub(super) struct References {
    /// Places in [`ValueFiles`](super::value_files::ValueFiles), or in the files that a merge knows.
    pub(super) files: Vec<usize>,
    /// For each file the entries of each class of keys.
    entries: Vec<f64>,
}

impl References {
    /// Each file with its entries by class.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[f64])> {
        let classes = self.entries.len() / self.files.len().max(1);
        let entries = self.entries.chunks_exact(classes.max(1));
        self.files.iter().copied().zip(entries)
    }

    /// The entries by class of the file at `position`.
    pub(super) fn of(&self, position: usize) -> &[f64] {
        let classes = self.entries.len() / self.files.len().max(1);
        &self.entries[position * classes..][..classes]
    }

    pub(super) fn push(&mut self, file: usize, entries: impl Iterator<Item = f64>) {
        self.files.push(file);
        self.entries.extend(entries);
    }
}

/// What a table file refers to in value files.
#[derive(Debug, Clone, Default)]
pub(super) struct FileReferences {
    /// Transient log files, each once, with the entries that refer there, and how many files that is.
    pub(super) transient_logs: Vec<(usize, f64, f64)>,
    /// Value logs with such entries.
    pub(super) logs: Vec<(usize, f64)>,
}

/// Bytes that a table file refers to in value files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReferredBytes {
    pub(super) transient_bytes: f64,
    pub(super) pinned_bytes: f64,
    pub(super) transient_files: f64,
    pub(super) log_bytes: f64,
}
