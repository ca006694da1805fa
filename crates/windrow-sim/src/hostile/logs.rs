//! Logs as rows of payloads, which are written again with sound chunks; and the records of edits.

use super::bytes::{
    change, checksum, number, put_prefixed, put_varint, seed, take, take_prefixed, take_varint,
};
use super::choices::Choices;

/// The bytes of the header of a long chunk.
const HEADER_BYTES: usize = 20;

/// The largest payload of a short chunk.
const SHORT_PAYLOAD_BYTES_MAX: usize = 8191;

/// A chunk of a log.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) payload: Vec<u8>,
    /// In a long chunk: how far before its offset the log was synced.
    unsynced: Option<u64>,
}

/// A log.
#[derive(Debug, Clone)]
pub(super) struct Log {
    number: u64,
    pub(super) chunks: Vec<Chunk>,
    /// What follows the last sound chunk.
    rest: Vec<u8>,
}

impl Log {
    /// Log `number` with one payload.
    pub(super) fn of_one(number: u64, payload: Vec<u8>) -> Self {
        let chunk = Chunk {
            payload,
            unsynced: Some(0),
        };
        Self {
            number,
            chunks: vec![chunk],
            rest: Vec::new(),
        }
    }

    /// Reads log `number`.
    pub(super) fn read(number: u64, bytes: &[u8]) -> Self {
        let mut log = Self {
            number,
            chunks: Vec::new(),
            rest: Vec::new(),
        };
        let mut offset = 0;
        while let Some((chunk, length)) = Chunk::read(number, offset as u64, &bytes[offset..]) {
            log.chunks.push(chunk);
            offset += length;
        }
        log.rest = bytes[offset..].to_vec();
        log
    }

    /// The bytes of the log, and where each of its chunks ends.
    pub(super) fn write(&self) -> (Vec<u8>, Vec<u64>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for chunk in &self.chunks {
            chunk.write(self.number, &mut bytes);
            ends.push(bytes.len() as u64);
        }
        bytes.extend_from_slice(&self.rest);
        (bytes, ends)
    }

    /// Changes a payload, or which chunks there are.
    pub(super) fn change(&mut self, choices: &mut Choices<'_>) {
        if self.chunks.is_empty() {
            return;
        }
        let at = choices.below(self.chunks.len());
        match choices.below(12) {
            0 => drop(self.chunks.remove(at)),
            1 => {
                let times = 1 + choices.below(40);
                let repeated = vec![self.chunks[at].clone(); times];
                self.chunks.splice(at..at, repeated);
            }
            2 => {
                let other = choices.below(self.chunks.len());
                self.chunks.swap(at, other);
            }
            3 => {
                let unsynced = number(choices);
                self.chunks[at].unsynced = choices.is_one_in(2).then_some(unsynced);
            }
            4 => self.rest = (0..choices.below(64)).map(|_| choices.byte()).collect(),
            _ => change(&mut self.chunks[at].payload, choices),
        }
    }
}

impl Chunk {
    /// The sound chunk at the front of `bytes`, which are at `offset` of log `number`, and its length.
    fn read(number: u64, offset: u64, bytes: &[u8]) -> Option<(Self, usize)> {
        let seed = seed(number, 0, offset);
        let (sum, mut rest) = bytes.split_first_chunk::<4>()?;
        if rest.first()? & 1 == 0 {
            let covered = rest;
            let length = take_varint(&mut rest)? / 2;
            let payload = take(&mut rest, length)?.to_vec();
            let covered = &covered[..covered.len() - rest.len()];
            let is_sound = *sum == checksum(seed, covered) && !payload.is_empty();
            let chunk = Self {
                payload,
                unsynced: None,
            };
            return is_sound.then_some((chunk, 4 + covered.len()));
        }
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let field = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let synced = u64::from_le_bytes(*header.last_chunk()?);
        let mut rest = &bytes[HEADER_BYTES..];
        let payload = take(&mut rest, u64::from(field(4) / 2))?.to_vec();
        let is_sound = *sum == checksum(seed, &header[4..])
            && header[8..12] == checksum(seed, &payload)
            && synced <= offset;
        let length = HEADER_BYTES + payload.len();
        let chunk = Self {
            payload,
            unsynced: Some(offset - synced.min(offset)),
        };
        is_sound.then_some((chunk, length))
    }

    /// Appends it to `bytes`, those of log `number` before it.
    fn write(&self, number: u64, bytes: &mut Vec<u8>) {
        let offset = bytes.len() as u64;
        let seed = seed(number, 0, offset);
        let payload = &self.payload;
        let is_short = (1..=SHORT_PAYLOAD_BYTES_MAX).contains(&payload.len());
        if self.unsynced.is_none() && is_short {
            let mut covered = Vec::new();
            put_varint(&mut covered, 2 * payload.len() as u64);
            covered.extend_from_slice(payload);
            bytes.extend_from_slice(&checksum(seed, &covered));
            bytes.extend_from_slice(&covered);
            return;
        }
        let length = u32::try_from(2 * payload.len() + 1).unwrap_or(1);
        let synced = offset.saturating_sub(self.unsynced.unwrap_or(u64::MAX));
        let mut header = length.to_le_bytes().to_vec();
        header.extend_from_slice(&checksum(seed, payload));
        header.extend_from_slice(&synced.to_le_bytes());
        bytes.extend_from_slice(&checksum(seed, &header));
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(payload);
    }
}

/// A record of an edit: a tag and a body.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) tag: u64,
    pub(super) body: Vec<u8>,
}

/// The records of an edit; `None` if it is none.
pub(super) fn read_edit(mut payload: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while !payload.is_empty() {
        let tag = take_varint(&mut payload)?;
        let body = take_prefixed(&mut payload)?.to_vec();
        records.push(Record { tag, body });
    }
    Some(records)
}

/// The bytes of an edit.
pub(super) fn write_edit(records: &[Record]) -> Vec<u8> {
    let mut payload = Vec::new();
    for record in records {
        put_varint(&mut payload, record.tag);
        put_prefixed(&mut payload, &record.body);
    }
    payload
}

/// Changes a record, or which records there are.
pub(super) fn change_edit(records: &mut Vec<Record>, choices: &mut Choices<'_>) {
    if records.is_empty() {
        return;
    }
    let at = choices.below(records.len());
    match choices.below(12) {
        0 => drop(records.remove(at)),
        1 => {
            let times = 1 + choices.below(3);
            let repeated = vec![records[at].clone(); times];
            records.splice(at..at, repeated);
        }
        2 => {
            let other = choices.below(records.len());
            records.swap(at, other);
        }
        3 => records[at].tag = 1 + choices.below(40) as u64,
        _ => change(&mut records[at].body, choices),
    }
}
