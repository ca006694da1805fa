//! The first record of every WAL: the previous log, its length, and the next sequence number.
//!
//! See "WAL" in `docs/format.md`.

use super::chunk::HEADER_BYTES;
use crate::base::key::SEQUENCE_MAX;
use crate::base::{FileNumber, SequenceNumber};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;

/// The version that this build writes and reads.
const VERSION: u8 = 1;

/// The previous log of a WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Predecessor {
    /// The number of the log.
    pub(crate) number: FileNumber,
    /// The final length.
    pub(crate) end: u64,
    /// Whether the log was durable up to its end when this header was written.
    pub(crate) synced: bool,
}

/// The payload of a WAL's first chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalHeader {
    /// The previous log; `None` if no earlier log is needed.
    pub(crate) predecessor: Option<Predecessor>,
    /// The sequence number of the first entry, if one follows.
    pub(crate) base: SequenceNumber,
}

impl WalHeader {
    /// The bytes of its chunk, which is long.
    pub(crate) const CHUNK_BYTES: usize = HEADER_BYTES + 1 + 8 + 8 + 1 + 8;

    /// Appends the payload to `buffer`.
    pub(crate) fn encode(self, buffer: &mut Vec<u8>) {
        let (number, end, synced) = match self.predecessor {
            Some(log) => (log.number.0, log.end, log.synced),
            None => (0, 0, false),
        };
        buffer.push(VERSION);
        buffer.extend_from_slice(&number.to_le_bytes());
        buffer.extend_from_slice(&end.to_le_bytes());
        buffer.push(u8::from(synced));
        buffer.extend_from_slice(&self.base.to_le_bytes());
    }

    /// Decodes a payload. Only the output of [`encode`](Self::encode) is valid.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let start = reader.clone();
        match reader.u8("version of the log")? {
            VERSION => {}
            0 => return Err(start.error("version 0 of the log")),
            _ => return Err(start.unsupported("an unknown version of the log")),
        }
        let number = FileNumber(reader.u64("number of the log before")?);
        let end = reader.u64("end of the log before")?;
        let flag = reader.clone();
        let synced = match reader.u8("flag of the log before")? {
            0 => false,
            1 => true,
            _ => return Err(flag.error("a flag is neither 0 nor 1")),
        };
        let at_base = reader.clone();
        let base = reader.u64("base sequence number of the log")?;
        // An empty log may begin behind the largest sequence number.
        if !(1..=SEQUENCE_MAX + 1).contains(&base) {
            return Err(at_base.error("the base is not a sequence number"));
        }
        reader.finish("bytes behind the log's header")?;
        let predecessor = Predecessor {
            number,
            end,
            synced,
        };
        if number != FileNumber(0) {
            return Ok(Self {
                predecessor: Some(predecessor),
                base,
            });
        }
        if end != 0 || synced {
            return Err(start.error("a previous log with an end and without a number"));
        }
        Ok(Self {
            predecessor: None,
            base,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(
            number in 1..u64::MAX, end: u64, synced: bool, base in 1..=SEQUENCE_MAX + 1,
        ) {
            let number = FileNumber(number);
            for predecessor in [None, Some(Predecessor { number, end, synced })] {
                let header = WalHeader { predecessor, base };
                let mut payload = Vec::new();
                header.encode(&mut payload);
                prop_assert_eq!(WalHeader::decode(&payload), Ok(header));
                payload.push(0);
                prop_assert!(WalHeader::decode(&payload).is_err());
                for length in 0..payload.len() - 1 {
                    prop_assert!(WalHeader::decode(&payload[..length]).is_err());
                }
            }
        }

        #[test]
        fn has_one_encoding(bytes in proptest::collection::vec(0..3u8, 26)) {
            if let Ok(header) = WalHeader::decode(&bytes) {
                let mut payload = Vec::new();
                header.encode(&mut payload);
                prop_assert_eq!(payload, bytes);
            }
        }
    }

    #[test]
    fn newer_versions_are_unsupported() {
        let mut payload = Vec::new();
        header(1).encode(&mut payload);
        payload[0] = VERSION + 1;
        assert!(WalHeader::decode(&payload).is_err_and(|error| error.unsupported));
    }

    fn header(base: SequenceNumber) -> WalHeader {
        WalHeader {
            predecessor: None,
            base,
        }
    }

    #[test]
    fn bases_are_sequence_numbers() {
        for (base, is_sound) in [
            (0, false),
            (1, true),
            (SEQUENCE_MAX, true),
            (SEQUENCE_MAX + 1, true),
            (SEQUENCE_MAX + 2, false),
            (u64::MAX, false),
        ] {
            let mut payload = Vec::new();
            header(base).encode(&mut payload);
            assert_eq!(WalHeader::decode(&payload).is_ok(), is_sound, "{base}");
        }
    }
}
