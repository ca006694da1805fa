//! Relocation tables: the old and new offsets of the values that garbage collection moved out of a value
//! log. A table is at the end of the GC output. See "Value files" in `docs/format.md`.
//!
//! If a GC output is collected, garbage collection composes its tables with the new offsets. So every old
//! pointer resolves in one step. Until a compaction rewrites the pointer, a read searches the blocks of the
//! table.
//!
//! Invariants:
//! - I1. The old offsets of a table ascend.
//! - I2. A block that fails its checksum is never used. An offset that is not in the table is damage: each
//!   remaining pointer leads to one entry.
//!
//! Concurrency: none; bytes in, bytes out.

use crate::base::{Error, FileNumber, Result};
use crate::codec::Reader;
use crate::codec::checksum::{checksum, seed};
use crate::codec::reader::DecodeError;

use super::meta::file_name;
use super::pointer::ValuePointer;

/// The place of a table, and the value log that it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RelocationTable {
    /// The value log that pointers name.
    pub(crate) origin: FileNumber,
    /// Its length.
    pub(crate) origin_bytes: u64,
    /// The value file that holds its values now, and the table.
    pub(crate) gc_output: FileNumber,
    /// The offset of the table in `gc_output`.
    pub(crate) offset: u64,
    pub(crate) entries: u64,
}

/// The old and the new offset of one record.
pub(crate) type Move = (u64, u64);

/// Stands instead of a compression code, and distinguishes a block from a record.
pub(super) const BLOCK_CODE: u8 = 0x40;

/// Checksum, code, origin, number of entries.
pub(super) const HEADER_BYTES: usize = 4 + 1 + 8 + 2;

/// Two offsets of six bytes.
const ENTRY_BYTES: usize = 12;

/// The entries of a full block. All blocks of a table except the last are full.
pub(super) const BLOCK_ENTRIES: usize = 340;

/// The longest block.
pub(super) const BLOCK_BYTES: usize = HEADER_BYTES + BLOCK_ENTRIES * ENTRY_BYTES;

/// Every offset is below it.
pub(crate) const OFFSET_MAX: u64 = 1 << 48;

impl RelocationTable {
    /// The bytes of all blocks.
    pub(crate) fn bytes(&self) -> u64 {
        let full = self.entries / BLOCK_ENTRIES as u64;
        let rest = self.entries % BLOCK_ENTRIES as u64;
        let last = match rest {
            0 => 0,
            entries => HEADER_BYTES as u64 + entries * ENTRY_BYTES as u64,
        };
        full * BLOCK_BYTES as u64 + last
    }

    /// Where the table ends; `None` beyond what a file can have.
    pub(crate) fn end(&self) -> Option<u64> {
        // The origin cannot have had more, and nothing overflows below.
        if self.entries > OFFSET_MAX {
            return None;
        }
        let end = self.offset.checked_add(self.bytes())?;
        (end < OFFSET_MAX).then_some(end)
    }

    fn blocks(&self) -> u64 {
        self.entries.div_ceil(BLOCK_ENTRIES as u64)
    }

    /// The number of entries of block `index`, and its offset.
    fn block(&self, index: u64) -> (usize, u64) {
        let before = index * BLOCK_ENTRIES as u64;
        let entries = (self.entries - before).min(BLOCK_ENTRIES as u64);
        let offset = self.offset + index * BLOCK_BYTES as u64;
        (usize::try_from(entries).unwrap_or(BLOCK_ENTRIES), offset)
    }

    /// The new offset of the record at `old`. `read` fills a buffer from an offset of the GC output.
    ///
    /// Offsets are spread evenly, so interpolation alternates with bisection.
    fn find(&self, old: u64, mut read: impl FnMut(&mut [u8], u64) -> Result<()>) -> Result<u64> {
        let mut buffer = [0; BLOCK_BYTES];
        let (mut first, mut end) = (0, self.blocks());
        let (mut low, mut high) = (0, self.origin_bytes);
        let mut halves = false;
        while first < end {
            let index = if halves || high <= low {
                first + (end - first) / 2
            } else {
                let part = old.saturating_sub(low) as f64 / (high - low) as f64;
                first + proportion(part, end - first)
            };
            halves = !halves;
            let (entries, offset) = self.block(index);
            let bytes = &mut buffer[..HEADER_BYTES + entries * ENTRY_BYTES];
            read(bytes, offset)?;
            let block = self.open(bytes, offset)?;
            if old < block.old(0) {
                (end, high) = (index, block.old(0));
            } else if block.old(entries - 1) < old {
                (first, low) = (index + 1, block.old(entries - 1));
            } else {
                return block.find(old).ok_or_else(|| self.missing(offset));
            }
        }
        Err(self.missing(self.offset))
    }

    #[cold]
    fn missing(&self, offset: u64) -> Error {
        let what = format!(
            "a pointer leads to a record of value file {} that garbage collection did not find",
            self.origin
        );
        Error::corruption(&file_name(self.gc_output), offset, what)
    }

    /// The new pointer to the value of `pointer`. `read` fills a buffer from an offset of the GC output.
    ///
    /// # Errors
    /// `Corruption` of the table (I2); those of `read`.
    pub(super) fn relocate(
        &self,
        pointer: &ValuePointer,
        read: impl FnMut(&mut [u8], u64) -> Result<()>,
    ) -> Result<ValuePointer> {
        Ok(ValuePointer {
            file: self.gc_output,
            offset: self.find(pointer.offset, read)?,
            ..*pointer
        })
    }

    /// Passes every entry to `take`, ascending. `read` as for [`relocate`](Self::relocate).
    pub(crate) fn each(
        &self,
        mut read: impl FnMut(&mut [u8], u64) -> Result<()>,
        mut take: impl FnMut(Move),
    ) -> Result<()> {
        let mut buffer = [0; BLOCK_BYTES];
        for index in 0..self.blocks() {
            let (entries, offset) = self.block(index);
            let bytes = &mut buffer[..HEADER_BYTES + entries * ENTRY_BYTES];
            read(bytes, offset)?;
            let block = self.open(bytes, offset)?;
            block.iter().for_each(&mut take);
        }
        Ok(())
    }

    /// Decodes `bytes`, the block at `offset` of the GC output (I2).
    fn open<'a>(&self, bytes: &'a [u8], offset: u64) -> Result<Block<'a>> {
        Block::open(bytes, self, offset)
            .map_err(|error| error.in_file(&file_name(self.gc_output), offset))
    }
}

/// `part` of `count`, rounded down and below `count`.
fn proportion(part: f64, count: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part is not negative, and the cast saturates"
    )]
    let whole = (part * count as f64) as u64;
    whole.min(count - 1)
}

/// A block that passed its checks.
pub(super) struct Block<'a> {
    entries: &'a [[u8; ENTRY_BYTES]],
}

impl<'a> Block<'a> {
    /// Decodes `bytes`, the block of `table` at `offset` of its file (I2).
    fn open(
        bytes: &'a [u8],
        table: &RelocationTable,
        offset: u64,
    ) -> std::result::Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (origin, block) = Self::read(&mut reader, table.gc_output, offset)?;
        if origin != table.origin {
            return Err(Reader::new(bytes).error("a relocation table of another value log"));
        }
        reader.finish("bytes follow a block of a relocation table")?;
        Ok(block)
    }

    /// Reads the block at `offset` of `file`, and the value log that it is for.
    pub(super) fn read(
        reader: &mut Reader<'a>,
        file: FileNumber,
        offset: u64,
    ) -> std::result::Result<(FileNumber, Self), DecodeError> {
        let start = reader.clone();
        let sum = reader.u32("a block of a relocation table is cut off")?;
        let summed = reader.rest();
        let code = reader.u8("a block of a relocation table is cut off")?;
        let origin = FileNumber(reader.u64("a block of a relocation table is cut off")?);
        let count: [u8; 2] = reader.array("a block of a relocation table is cut off")?;
        let count = usize::from(u16::from_le_bytes(count));
        if code != BLOCK_CODE || !(1..=BLOCK_ENTRIES).contains(&count) {
            return Err(start.error("a block of a relocation table is malformed"));
        }
        let bytes = reader.bytes(
            count * ENTRY_BYTES,
            "a block of a relocation table is cut off",
        )?;
        let summed = &summed[..HEADER_BYTES - 4 + bytes.len()];
        if checksum(seed(file.0, 0, offset), summed) != sum {
            return Err(start.error("a block of a relocation table fails its checksum"));
        }
        let (entries, _) = bytes.as_chunks();
        Ok((origin, Self { entries }))
    }

    fn old(&self, index: usize) -> u64 {
        number(&self.entries[index][..6])
    }

    /// The entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = Move> {
        let pair = |entry: &[u8; ENTRY_BYTES]| (number(&entry[..6]), number(&entry[6..]));
        self.entries.iter().map(pair)
    }

    fn find(&self, old: u64) -> Option<u64> {
        let position = self
            .entries
            .binary_search_by_key(&old, |entry| number(&entry[..6]));
        Some(number(&self.entries[position.ok()?][6..]))
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..6].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// A block of a table that no pointer leads to.
#[derive(Debug)]
pub(crate) struct FoundMoves {
    pub(crate) origin: FileNumber,
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

/// The block at the front of `bytes`, at `offset` of `file`; `None` if something else is there.
pub(crate) fn find_moves(
    bytes: &[u8],
    (file, offset): (FileNumber, u64),
) -> Option<std::result::Result<FoundMoves, DecodeError>> {
    if bytes.get(4) != Some(&BLOCK_CODE) {
        return None;
    }
    let mut reader = Reader::new(bytes);
    let block = Block::read(&mut reader, file, offset);
    Some(block.map(|(origin, block)| FoundMoves {
        origin,
        entries: block.entries.len(),
        bytes: reader.position(),
    }))
}

/// Replaces `block` by the encoded `moves`, at `offset` of `file`, for pointers into `origin`.
pub(super) fn encode_block(
    block: &mut Vec<u8>,
    (file, offset): (FileNumber, u64),
    origin: FileNumber,
    moves: &[Move],
) {
    debug_assert!((1..=BLOCK_ENTRIES).contains(&moves.len()));
    debug_assert!(moves.is_sorted());
    block.clear();
    block.extend_from_slice(&[0; 4]);
    block.push(BLOCK_CODE);
    block.extend_from_slice(&origin.0.to_le_bytes());
    let count = u16::try_from(moves.len()).unwrap_or(u16::MAX);
    block.extend_from_slice(&count.to_le_bytes());
    for (old, new) in moves {
        debug_assert!(*old < OFFSET_MAX && *new < OFFSET_MAX);
        block.extend_from_slice(&old.to_le_bytes()[..6]);
        block.extend_from_slice(&new.to_le_bytes()[..6]);
    }
    let sum = checksum(seed(file.0, 0, offset), &block[4..]);
    block[..4].copy_from_slice(&sum.to_le_bytes());
}
