//! What a repair has kept and what is lost.
//!
//! I1. The report has at most [`LOSSES_MAX`] losses, with keys of [`LOSS_KEYS_BYTES_MAX`] bytes together, and counts the others. So its memory
//!     is bounded.
//!
//! Concurrency: owned by one repair.

use crate::base::SequenceNumber;
use std::fmt;

/// The most losses that a report lists.
pub(super) const LOSSES_MAX: usize = 10_000;

/// The most bytes of all keys that a report lists.
const LOSS_KEYS_BYTES_MAX: usize = 16 << 20;

/// How a repair knew which files count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestUse {
    /// The manifest is sound: the repair read what an open would read.
    Whole,
    /// The manifest has lost its last edits: the repair read all files of the folder, and the rest of the manifest for
    /// names and options.
    Part,
    /// No manifest was sound. Keyspaces are named by number.
    Missing,
}

impl ManifestUse {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Part => "part",
            Self::Missing => "missing",
        }
    }
}

/// A keyspace of the new database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedKeyspace {
    /// Its name.
    pub name: String,
    /// Its entries in the new database. The operands of a key count each.
    pub entries: u64,
}

/// Something that a repair could not keep, or of which it does not know how new it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Loss {
    /// What is lost, as a sentence without a full stop.
    pub what: String,
    /// The file, if it is one.
    pub file: Option<String>,
    /// The offset of the damage in the file, if it is known.
    pub offset: Option<u64>,
    /// The keyspace, if it is known.
    pub keyspace: Option<String>,
    /// No key below this one is lost here; `None` if no such key is known.
    pub from: Option<Vec<u8>>,
    /// No key above this one is lost here; `None` if no such key is known.
    pub to: Option<Vec<u8>>,
    /// The first and the last sequence number that may be lost here, if they are known.
    pub sequences: Option<(SequenceNumber, SequenceNumber)>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            if let Some(offset) = self.offset {
                write!(f, " at offset {offset}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.what)?;
        if let Some(keyspace) = &self.keyspace {
            write!(f, "; keyspace \"{keyspace}\"")?;
        }
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from == to => write!(f, ", key \"{}\"", from.escape_ascii())?,
            (None, None) => {}
            (from, to) => {
                f.write_str(", keys")?;
                if let Some(from) = from {
                    write!(f, " from \"{}\"", from.escape_ascii())?;
                }
                if let Some(to) = to {
                    write!(f, " to \"{}\"", to.escape_ascii())?;
                }
            }
        }
        match self.sequences {
            Some((first, last)) => write!(f, ", sequence numbers {first} to {last}"),
            None => Ok(()),
        }
    }
}

/// The result of a [repair](crate::Db::repair).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// How the repair knew which files count.
    pub manifest: ManifestUse,
    /// The keyspaces of the new database, by id.
    pub keyspaces: Vec<RepairedKeyspace>,
    /// Tables read.
    pub tables: u64,
    /// Write-ahead logs read.
    pub logs: u64,
    /// What is lost; at most 10,000 losses, and 16 MiB of keys.
    pub losses: Vec<Loss>,
    /// Losses beyond these.
    pub losses_left_off: u64,
    /// The bytes of the keys that the losses name.
    key_bytes: usize,
}

impl RepairReport {
    pub(super) fn new(manifest: ManifestUse) -> Self {
        Self {
            manifest,
            keyspaces: Vec::new(),
            tables: 0,
            logs: 0,
            losses: Vec::new(),
            losses_left_off: 0,
            key_bytes: 0,
        }
    }

    /// Whether nothing is lost.
    pub fn is_whole(&self) -> bool {
        self.losses.is_empty()
    }

    /// Adds a loss (I1).
    pub(super) fn lose(&mut self, loss: Loss) {
        let keys = [&loss.from, &loss.to].into_iter().flatten();
        let key_bytes = self.key_bytes + keys.map(Vec::len).sum::<usize>();
        if self.losses.len() < LOSSES_MAX && key_bytes <= LOSS_KEYS_BYTES_MAX {
            self.key_bytes = key_bytes;
            self.losses.push(loss);
        } else {
            self.losses_left_off += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOSSES_MAX, Loss, ManifestUse, RepairReport};

    #[test]
    fn a_loss_is_one_sentence_with_all_that_is_known() {
        let loss = Loss {
            what: "a block is damaged".to_owned(),
            file: Some("000007.table".to_owned()),
            offset: Some(4096),
            keyspace: Some("planets".to_owned()),
            from: Some(b"earth".to_vec()),
            to: Some(b"mars\xff".to_vec()),
            sequences: Some((3, 9)),
        };
        assert_eq!(
            loss.to_string(),
            "000007.table at offset 4096: a block is damaged; keyspace \"planets\", keys from \"earth\" to \
             \"mars\\xff\", sequence numbers 3 to 9"
        );
        let one = Loss {
            what: "its value is damaged".to_owned(),
            from: Some(b"k".to_vec()),
            to: Some(b"k".to_vec()),
            ..Loss::default()
        };
        assert_eq!(one.to_string(), "its value is damaged, key \"k\"");
    }

    #[test]
    fn a_report_counts_what_it_does_not_list() {
        let mut report = RepairReport::new(ManifestUse::Whole);
        assert!(report.is_whole());
        for _ in 0..LOSSES_MAX + 3 {
            report.lose(Loss::default());
        }
        assert_eq!(
            (report.losses.len(), report.losses_left_off),
            (LOSSES_MAX, 3)
        );
        assert!(!report.is_whole());
    }

    // I1
    #[test]
    fn a_report_lists_no_more_keys_than_fit() {
        let mut report = RepairReport::new(ManifestUse::Whole);
        let loss = Loss {
            from: Some(vec![7; 64 << 10]),
            ..Loss::default()
        };
        for _ in 0..300 {
            report.lose(loss.clone());
        }
        assert_eq!((report.losses.len(), report.losses_left_off), (256, 44));
    }
}
