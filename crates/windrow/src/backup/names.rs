//! The names of the objects of a store.
//!
//! A piece is named by its bytes, so equal pieces of all backups are one object, and an object never changes.

use std::fmt;

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

/// The number of the backup whose manifest has this name.
pub(crate) fn backup_of_manifest(name: &str) -> Option<u64> {
    match ObjectName::parse(name)? {
        ObjectName::Manifest(number) => Some(number),
        ObjectName::Piece(_) => None,
    }
}

/// An object of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectName {
    /// The manifest of the backup of this number.
    Manifest(u64),
    Piece(Piece),
}

impl ObjectName {
    /// The object that `name` names; `None` for a name that Windrow does not write.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let object = if let Some(digits) = name.strip_suffix(".backup") {
            Self::Manifest(digits.parse().ok().filter(|number| *number > 0)?)
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ObjectName, Piece};

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
            "LOCK",
        ] {
            assert_eq!(ObjectName::parse(name), None, "{name}");
        }
    }
}
