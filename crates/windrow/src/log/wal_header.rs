//! The first record of every WAL: which log came before it, and where that one ended.
//!
//! See "WAL" in `docs/format.md`.

use crate::base::FileNumber;
use crate::codec::Reader;
use crate::codec::reader::DecodeError;

/// The only version there is.
const VERSION: u8 = 1;

/// How the log before a WAL ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Predecessor {
    /// Its number.
    pub(crate) number: FileNumber,
    /// Its final length.
    pub(crate) end: u64,
    /// Whether it was durable up to its end when this WAL was created.
    pub(crate) synced: bool,
}

/// The payload of a WAL's first chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalHeader {
    /// The log before this one; `None` where there is none whose records still count.
    pub(crate) predecessor: Option<Predecessor>,
}

impl WalHeader {
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
    }

    /// Decodes a payload; only what [`encode`](Self::encode) writes is valid.
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
        reader.finish("bytes behind the log's header")?;
        let predecessor = Predecessor {
            number,
            end,
            synced,
        };
        if number != FileNumber(0) {
            return Ok(Self {
                predecessor: Some(predecessor),
            });
        }
        if end != 0 || synced {
            return Err(start.error("no log before, but an end of it"));
        }
        Ok(Self { predecessor: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(number in 1..u64::MAX, end: u64, synced: bool) {
            let number = FileNumber(number);
            for predecessor in [None, Some(Predecessor { number, end, synced })] {
                let header = WalHeader { predecessor };
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
        fn has_one_encoding(bytes in proptest::collection::vec(0..3u8, 18)) {
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
        WalHeader { predecessor: None }.encode(&mut payload);
        payload[0] = VERSION + 1;
        assert!(WalHeader::decode(&payload).is_err_and(|error| error.unsupported));
    }
}
