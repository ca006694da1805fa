//! The names of the files of a database.

use std::fmt;

use crate::base::FileNumber;

/// Every file number is below this bound. No database comes near it, so additions to a file number do not
/// overflow.
pub(crate) const FILE_NUMBER_MAX: u64 = 1 << 56;

/// A file of a database, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FileName {
    /// A write-ahead log.
    Wal(FileNumber),
    /// A table file.
    Table(FileNumber),
    /// A value file.
    Values(FileNumber),
    /// A list of garbage values.
    DiscardList(FileNumber),
    /// A manifest.
    Manifest(FileNumber),
    /// Names the current manifest.
    Current,
    /// The next `CURRENT`, before it replaces the present one.
    CurrentNew,
    /// The lock of the process that has the database open.
    Lock,
    /// The reserve for a full disk.
    Reserve,
    /// Marks a folder that a repair is filling, or has been when it was interrupted.
    Repairing,
    /// The job log, for people.
    JobLog,
    /// The job log before that one.
    OldJobLog,
    /// The statistics of the process that has the database open for writing.
    Status,
    /// How far the scrub in the background is.
    Scrub,
    /// How far a scrub by hand is that was interrupted.
    ScrubByHand,
}

impl FileName {
    /// The file that `name` names; `None` for a name that Windrow does not write.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let file = match name {
            "CURRENT" => Self::Current,
            "CURRENT.new" => Self::CurrentNew,
            "LOCK" => Self::Lock,
            "RESERVE" => Self::Reserve,
            "REPAIRING" => Self::Repairing,
            "LOG" => Self::JobLog,
            "LOG.old" => Self::OldJobLog,
            "STATUS" => Self::Status,
            "SCRUB" => Self::Scrub,
            "SCRUB.hand" => Self::ScrubByHand,
            _ => {
                let (digits, extension) = name.split_once('.')?;
                let number = digits.parse().ok();
                let number = FileNumber(number.filter(|number| *number < FILE_NUMBER_MAX)?);
                match extension {
                    "wal" => Self::Wal(number),
                    "table" => Self::Table(number),
                    "values" => Self::Values(number),
                    "dead" => Self::DiscardList(number),
                    "manifest" => Self::Manifest(number),
                    _ => return None,
                }
            }
        };
        // Each file has one name: no sign, no other number of zeros.
        (file.to_string() == name).then_some(file)
    }

    /// Whether it is only for people and other programs, or notes how far a scrub is: nothing of the database depends on it.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::JobLog | Self::OldJobLog | Self::Status) || self.is_scrub_note()
    }

    /// Whether it notes how far a scrub is.
    pub(crate) fn is_scrub_note(self) -> bool {
        matches!(self, Self::Scrub | Self::ScrubByHand)
    }

    /// The number in the name.
    pub(crate) fn number(self) -> Option<FileNumber> {
        match self {
            Self::Wal(number)
            | Self::Table(number)
            | Self::Values(number)
            | Self::DiscardList(number)
            | Self::Manifest(number) => Some(number),
            Self::Current
            | Self::CurrentNew
            | Self::Lock
            | Self::Reserve
            | Self::Repairing
            | Self::JobLog
            | Self::OldJobLog
            | Self::Status
            | Self::Scrub
            | Self::ScrubByHand => None,
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wal(number) => write!(f, "{number}.wal"),
            Self::Table(number) => write!(f, "{number}.table"),
            Self::Values(number) => write!(f, "{number}.values"),
            Self::DiscardList(number) => write!(f, "{number}.dead"),
            Self::Manifest(number) => write!(f, "{number}.manifest"),
            Self::Current => f.write_str("CURRENT"),
            Self::CurrentNew => f.write_str("CURRENT.new"),
            Self::Lock => f.write_str("LOCK"),
            Self::Reserve => f.write_str("RESERVE"),
            Self::Repairing => f.write_str("REPAIRING"),
            Self::JobLog => f.write_str("LOG"),
            Self::OldJobLog => f.write_str("LOG.old"),
            Self::Status => f.write_str("STATUS"),
            Self::Scrub => f.write_str("SCRUB"),
            Self::ScrubByHand => f.write_str("SCRUB.hand"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE_NUMBER_MAX, FileName};
    use crate::base::FileNumber;

    #[test]
    fn names_round_trip() {
        for number in [0, 7, 999_999, 1_000_000, FILE_NUMBER_MAX - 1].map(FileNumber) {
            for file in [
                FileName::Wal(number),
                FileName::Table(number),
                FileName::Values(number),
                FileName::DiscardList(number),
                FileName::Manifest(number),
                FileName::Current,
                FileName::CurrentNew,
                FileName::Lock,
                FileName::Reserve,
                FileName::Repairing,
                FileName::JobLog,
                FileName::OldJobLog,
                FileName::Status,
                FileName::Scrub,
                FileName::ScrubByHand,
            ] {
                assert_eq!(FileName::parse(&file.to_string()), Some(file));
            }
        }
        assert_eq!(FileName::Wal(FileNumber(12)).to_string(), "000012.wal");
        let number = FileNumber(15);
        assert_eq!(FileName::Values(number).to_string(), "000015.values");
        assert_eq!(
            FileName::Values(number).to_string(),
            crate::value::file_name(number)
        );
        assert_eq!(
            FileName::DiscardList(number).to_string(),
            crate::value::discard_list_name(number)
        );
        assert_eq!(
            FileName::Table(number).to_string(),
            crate::table::file_name(number)
        );
    }

    #[test]
    fn other_names_are_not_parsed() {
        for name in [
            "",
            "12.wal",
            "0000012.wal",
            "+00012.wal",
            "000012.log",
            "000012.value",
            "000012",
            "current",
            "LOG.1",
            "000012.wal.bak",
            "72057594037927936.wal",
            "18446744073709551615.table",
            "18446744073709551616.wal",
        ] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
