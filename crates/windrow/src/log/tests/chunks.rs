//! The two forms of chunks, and the synced offsets of long chunks.

use super::super::chunk::{Header, PAYLOAD_BYTES_MAX, SHORT_PAYLOAD_BYTES_MAX, complete};
use super::*;
use crate::codec::checksum::{checksum, seed};
use crate::codec::varint::put_varint;

fn path() -> std::path::PathBuf {
    directory().join(NAME)
}

/// The chunk at `offset` of the log with `length` bytes of payload.
fn chunk(length: usize, synced_up_to: Option<u64>, offset: u64) -> Vec<u8> {
    let mut buffer = vec![0; HEADER_BYTES];
    buffer.extend((0..length).map(|byte| byte.to_le_bytes()[0]));
    let payload_length = u32::try_from(length).unwrap();
    complete(&mut buffer, payload_length, synced_up_to, (NUMBER, offset)).to_vec()
}

/// The header at the front of `bytes`, if all of them are a sound chunk.
fn sound(bytes: &[u8], offset: u64) -> Option<Header> {
    let header = Header::decode(bytes, NUMBER, offset)?;
    let is_whole = header.chunk_bytes() == bytes.len();
    (is_whole && header.covers(bytes, NUMBER, offset)).then_some(header)
}

#[test]
fn headers_take_5_or_6_or_20_bytes() {
    let largest = SHORT_PAYLOAD_BYTES_MAX;
    assert_eq!(largest, 8191);
    for (length, synced_up_to, payload_at) in [
        (1, None, 5),
        (2, None, 5),
        (63, None, 5),
        (64, None, 6),
        (127, None, 6),
        (128, None, 6),
        (largest - 1, None, 6),
        (largest, None, 6),
        (0, Some(77), 20),
        (1, Some(0), 20),
        (63, Some(1000), 20),
        (64, Some(999), 20),
        (largest, Some(7), 20),
        (largest + 1, Some(7), 20),
        (300_000, Some(7), 20),
    ] {
        let bytes = chunk(length, synced_up_to, 1000);
        assert_eq!(bytes.len(), payload_at + length);
        let header = sound(&bytes, 1000).unwrap();
        assert_eq!(header.payload_at, payload_at, "{length}");
        assert_eq!(header.payload_bytes, length);
        assert_eq!(header.synced_up_to, synced_up_to);
        for (number, offset) in [(NUMBER, 1001), (FileNumber(13), 1000)] {
            let other = Header::decode(&bytes, number, offset);
            assert!(other.is_none_or(|header| !header.covers(&bytes, number, offset)));
        }
    }
}

// Chunk I2.
#[test]
fn the_synced_offset_of_a_chunk_is_never_beyond_the_chunk() {
    assert!(sound(&chunk(9, Some(1000), 1000), 1000).is_some());
    assert!(sound(&chunk(9, Some(1001), 1000), 1000).is_none());
}

// Chunk I3.
#[test]
fn damage_of_any_bit_of_a_chunk_is_detected() {
    for (length, synced_up_to) in [
        (1, None),
        (63, None),
        (64, None),
        (500, None),
        (0, Some(3)),
        (63, Some(3)),
        (64, Some(0)),
    ] {
        let bytes = chunk(length, synced_up_to, 1000);
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sound(&damaged, 1000), None, "bit {bit} of {length}");
        }
        for end in 0..bytes.len() {
            assert_eq!(sound(&bytes[..end], 1000), None, "{end} of {length}");
        }
    }
}

/// A short chunk at the start of the log with the head `head` and a valid checksum.
fn forged(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let covered = [head, payload].concat();
    let sum = checksum(seed(NUMBER.0, 0, 0), &covered);
    [&sum.to_le_bytes()[..], &covered].concat()
}

#[test]
fn a_short_chunk_has_one_form_and_is_neither_empty_nor_large() {
    let vfs = MemoryVfs::default();
    let mut head = Vec::new();
    let large = vec![7; SHORT_PAYLOAD_BYTES_MAX + 1];
    put_varint(&mut head, (large.len() as u64) << 1);
    for (bytes, is_sound) in [
        (forged(&[4], &[1, 2]), true),
        (forged(&[0x84, 0], &[1, 2]), false),
        (forged(&[0], &[]), false),
        (forged(&[0, 0, 0], &[]), false),
        // More than there is.
        (forged(&[6], &[1, 2]), false),
        (forged(&[0x80, 0x7f], &[1, 2]), false),
        (forged(&[0x80], &[]), false),
        (forged(&head, &large), false),
    ] {
        vfs.write(&path(), &bytes);
        let (records, end) = read(&vfs, None).unwrap();
        assert_eq!(!records.is_empty(), is_sound, "{bytes:?}");
        let sound_bytes = if is_sound { bytes.len() as u64 } else { 0 };
        assert_eq!((end.offset, end.evidence), (sound_bytes, 0));
    }
}

#[test]
fn a_forged_length_beyond_the_file_is_invalid() {
    let mut buffer = [0; HEADER_BYTES];
    complete(&mut buffer, PAYLOAD_BYTES_MAX, Some(0), (NUMBER, 0));
    let header = Header::decode(&buffer, NUMBER, 0).unwrap();
    assert_eq!(header.payload_bytes, (1 << 31) - 1);
    let vfs = MemoryVfs::default();
    vfs.write(&path(), &buffer);
    let (records, end) = read(&vfs, None).unwrap();
    assert!(records.is_empty());
    assert_eq!((end.offset, end.file_length), (0, HEADER_BYTES as u64));
}

/// A written chunk, and the durable length at its write.
#[derive(Debug, Clone, Copy)]
struct Written {
    offset: u64,
    end: u64,
    synced: u64,
    is_long: bool,
}

/// A log and its written chunks.
struct Log {
    vfs: MemoryVfs,
    writer: LogWriter,
    chunks: Vec<Written>,
}

impl Log {
    fn new() -> Self {
        let vfs = MemoryVfs::default();
        let writer = create(&vfs);
        let chunks = Vec::new();
        Self {
            vfs,
            writer,
            chunks,
        }
    }

    /// Appends a record; a marker if `length` is 0.
    fn append(&mut self, length: usize) {
        let offset = self.writer.end();
        let synced = self.writer.shared().synced();
        match length {
            0 => self.writer.append_marker().unwrap(),
            _ => self.writer.append(&vec![7; length]).unwrap(),
        }
        let end = self.writer.end();
        if end > offset {
            self.chunks.push(Written {
                offset,
                end,
                synced,
                is_long: end - offset == (HEADER_BYTES + length) as u64,
            });
        }
    }

    fn sync(&mut self) {
        sync(&self.writer);
    }

    fn bytes(&self) -> Vec<u8> {
        self.vfs.read(&path())
    }

    /// The end of the log after damage of one byte in each of these chunks.
    fn end_with_damage(&self, damaged: &[Written]) -> End {
        let mut bytes = self.bytes();
        for chunk in damaged {
            bytes[usize::try_from(chunk.end - 1).unwrap()] ^= 0x55;
            bytes[usize::try_from(chunk.offset).unwrap()] ^= 0x55;
        }
        self.end_of(&bytes)
    }

    fn end_of(&self, bytes: &[u8]) -> End {
        let sound = self.bytes();
        self.vfs.write(&path(), bytes);
        let (_, end) = read(&self.vfs, None).unwrap();
        self.vfs.write(&path(), &sound);
        end
    }

    fn long(&self) -> Vec<Written> {
        self.chunks
            .iter()
            .copied()
            .filter(|it| it.is_long)
            .collect()
    }
}

// Writer I4, and the argument in `tail`: the log proves the same syncs as if every chunk had a synced
// offset.
proptest! {
    #[test]
    fn long_chunks_prove_the_same_syncs_as_all_chunks_would(
        steps in proptest::collection::vec((0..4u8, 1..400usize), 1..60),
    ) {
        let mut log = Log::new();
        for (step, length) in steps {
            match step {
                0 => log.sync(),
                1 => log.append(0),
                _ => log.append(length),
            }
        }
        let bytes = log.bytes();
        for (index, chunk) in log.chunks.iter().enumerate() {
            let reported = |chunks: &[Written]| chunks.iter().map(|it| it.synced).max().unwrap_or(0);
            let cut = usize::try_from(chunk.end).unwrap();
            prop_assert_eq!(log.end_of(&bytes[..cut]).evidence, reported(&log.chunks[..=index]));
            let end = log.end_with_damage(&[*chunk]);
            prop_assert_eq!(end.offset, chunk.offset);
            let expected = if reported(&log.chunks[index + 1..]) > chunk.offset {
                TailAction::Corruption
            } else {
                TailAction::EndOfHistory
            };
            prop_assert_eq!(end.action(false), expected);
        }
    }
}

#[test]
fn the_first_chunk_and_the_first_behind_a_sync_or_a_marker_are_long() {
    let mut log = Log::new();
    log.append(10); // long
    log.append(10);
    log.sync();
    log.append(10); // long
    log.append(10);
    log.append(0);
    log.sync();
    log.append(0); // long
    log.append(10); // long
    log.append(10);
    log.append(SHORT_PAYLOAD_BYTES_MAX);
    log.append(SHORT_PAYLOAD_BYTES_MAX + 1); // long
    log.append(10); // long: much was written since
    let forms: Vec<_> = log.chunks.iter().map(|it| it.is_long).collect();
    let expected = [
        true, false, true, false, true, true, false, false, true, true,
    ];
    assert_eq!(forms, expected);
}

#[test]
fn long_chunks_repeat_soon_behind_a_sync_and_at_least_each_4_kib() {
    let mut log = Log::new();
    for _ in 0..2 {
        let from = log.long().len();
        while log.long().len() < from + 8 {
            log.append(10);
        }
        let long = &log.long()[from..];
        let gaps = long.windows(2).map(|pair| pair[1].offset - pair[0].offset);
        for (gap, least) in gaps.zip([512, 1024, 2048, 4096, 4096, 4096, 4096]) {
            assert!((least..least + 15).contains(&gap), "{gap} for {least}");
        }
        log.sync();
    }
}

/// Writes durable records and then unsynced records. Returns the last durable one and the long chunks
/// behind it.
fn unsynced_tail(log: &mut Log, bytes: u64) -> (Written, Vec<Written>) {
    for _ in 0..5 {
        log.append(30);
    }
    log.sync();
    let durable = *log.chunks.last().unwrap();
    while log.writer.end() < durable.end + bytes {
        log.append(30);
    }
    let mut long = log.long();
    long.retain(|chunk| chunk.offset >= durable.end);
    (durable, long)
}

#[test]
fn damage_of_the_first_chunk_with_a_synced_offset_leaves_its_repetitions() {
    let mut log = Log::new();
    let (durable, long) = unsynced_tail(&mut log, 2000);
    assert_eq!(long.len(), 3);
    assert_eq!(long[0].offset, durable.end);
    // Nothing durable is lost.
    for chunk in &long {
        let end = log.end_with_damage(&[*chunk]);
        assert_eq!(end.offset, chunk.offset);
        assert_eq!(end.action(false), TailAction::EndOfHistory);
    }
    // A durable record is lost, with some of the evidence.
    for (damaged, expected) in [
        (&long[..0], TailAction::Corruption),
        (&long[..1], TailAction::Corruption),
        (&long[..2], TailAction::Corruption),
        (&long[1..], TailAction::Corruption),
        // No other chunk has the synced offset.
        (&long[..], TailAction::EndOfHistory),
    ] {
        let damaged = [&[durable], damaged].concat();
        let end = log.end_with_damage(&damaged);
        assert_eq!(end.offset, durable.offset);
        assert_eq!(end.action(false), expected, "{damaged:?}");
    }
}

/// Damage of a sector that holds durable and unsynced bytes.
#[test]
fn a_lost_sector_is_detected_if_a_later_sector_was_written() {
    let mut log = Log::new();
    let (durable, _) = unsynced_tail(&mut log, 1200);
    let mut bytes = log.bytes();
    let start = usize::try_from(durable.offset).unwrap();
    bytes[start..start + 512].fill(0);
    let end = log.end_of(&bytes);
    assert_eq!(end.offset, durable.offset);
    assert_eq!(end.action(false), TailAction::Corruption);
}
