//! The names of the objects of a store.
//!
//! A piece is named by its bytes, so equal pieces of all backups are one object, and an object never changes. A stretch of
//! the archive is named by its place.

use std::fmt;

use crate::base::SequenceNumber;
use crate::base::key::SEQUENCE_MAX;

/// Bytes of one or more files, named by their checksum and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    /// The [checksum](crate::codec::checksum::ContentChecksum) of the bytes.
    pub(crate) checksum: u128,
    /// Their number, at least 1.
    pub(crate) length: u64,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{}.piece", self.checksum, self.length)
    }
}

/// Consecutive changes of one history. Ordered by history and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StretchName {
    /// A random number.
    pub(crate) history: u128,
    /// The sequence numbers of its first and its last change.
    pub(crate) first: SequenceNumber,
    pub(crate) last: SequenceNumber,
}

impl fmt::Display for StretchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            history,
            first,
            last,
        } = self;
        write!(f, "{history:032x}-{first}-{last}.archive")
    }
}

/// An object of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectName {
    /// The manifest of the backup of this number.
    Manifest(u64),
    Piece(Piece),
    /// The description of a stretch of the archive.
    Stretch(StretchName),
}

impl ObjectName {
    /// The object that `name` names; `None` for a name that Windrow does not write.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let object = if let Some(digits) = name.strip_suffix(".backup") {
            Self::Manifest(digits.parse().ok().filter(|number| *number > 0)?)
        } else if let Some(place) = name.strip_suffix(".archive") {
            let (history, numbers) = place.split_once('-')?;
            let (first, last) = numbers.split_once('-')?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            Self::Stretch(StretchName {
                history: u128::from_str_radix(history, 16).ok()?,
                first: Some(first).filter(|first| (1..=last).contains(first))?,
                last: Some(last).filter(|last| *last <= SEQUENCE_MAX)?,
            })
        } else {
            let (checksum, length) = name.strip_suffix(".piece")?.split_once('-')?;
            Self::Piece(Piece {
                checksum: u128::from_str_radix(checksum, 16).ok()?,
                length: length.parse().ok().filter(|length| *length > 0)?,
            })
        };
        // Each object has one name: no sign, no other number of zeros.
        (object.to_string() == name).then_some(object)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest(number) => write!(f, "{number:06}.backup"),
            Self::Piece(piece) => piece.fmt(f),
            Self::Stretch(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ObjectName, Piece, StretchName};
    use crate::base::key::SEQUENCE_MAX;

    #[test]
    fn names_round_trip_and_others_are_not_parsed() {
        let piece = Piece {
            checksum: 0xab << 100,
            length: 70_000,
        };
        let name = "00000ab0000000000000000000000000-70000.piece";
        assert_eq!(piece.to_string(), name);
        for number in [1, 999_999, 1_000_000, u64::MAX] {
            let object = ObjectName::Manifest(number);
            assert_eq!(ObjectName::parse(&object.to_string()), Some(object));
        }
        assert_eq!(ObjectName::parse(name), Some(ObjectName::Piece(piece)));
        for (first, last) in [(1, 1), (7, 1_000_000), (SEQUENCE_MAX, SEQUENCE_MAX)] {
            let object = ObjectName::Stretch(StretchName {
                history: 0xab,
                first,
                last,
            });
            assert_eq!(ObjectName::parse(&object.to_string()), Some(object));
            // What a store promises for names.
            assert!(object.to_string().len() <= 80, "{object}");
        }
        for name in [
            "",
            "1.backup",
            "000000.backup",
            "0000001.backup",
            "+00001.backup",
            "000001.backup.new",
            "18446744073709551616.backup",
            "ab-70000.piece",
            "00000AB0000000000000000000000000-70000.piece",
            "00000ab0000000000000000000000000-070000.piece",
            "00000ab0000000000000000000000000-0.piece",
            "00000ab0000000000000000000000000.piece",
            "000000000000000000000000000000ab-0-5.archive",
            "000000000000000000000000000000ab-6-5.archive",
            "000000000000000000000000000000ab-05-6.archive",
            "000000000000000000000000000000ab-5.archive",
            "000000000000000000000000000000ab-5-6-7.archive",
            "000000000000000000000000000000AB-5-6.archive",
            "ab-5-6.archive",
            "000000000000000000000000000000ab-5-72057594037927936.archive",
            "LOCK",
        ] {
            assert_eq!(ObjectName::parse(name), None, "{name}");
        }
    }
}
