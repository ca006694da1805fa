//! The parts of tables, value files and discard lists that have a checksum: where they are, and how they are sealed again.

use super::bytes::{checksum, key_seed, seed, take, take_prefixed, take_varint};
use std::ops::Range;

/// A part of a file under one checksum.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    /// What the checksum is over.
    pub(super) covered: Range<usize>,
    /// Where the checksum is.
    sum_at: usize,
    seed: u64,
}

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitKind {
    DataBlock,
    Filter,
    Partition,
    Lists,
    Index,
    Properties,
    Footer,
    Value,
    Relocations,
    Garbage,
}

impl Unit {
    /// The checksum in `bytes`, those of the file.
    pub(super) fn sum(&self, bytes: &[u8]) -> [u8; 4] {
        [0, 1, 2, 3].map(|byte| bytes[self.sum_at + byte])
    }

    fn is_sound(&self, bytes: &[u8]) -> bool {
        let covered = bytes.get(self.covered.clone());
        let has_sum = bytes.len() >= self.sum_at + 4;
        has_sum && covered.is_some_and(|covered| checksum(self.seed, covered) == self.sum(bytes))
    }

    /// Makes it sound again.
    pub(super) fn seal(&self, bytes: &mut [u8]) {
        let sum = checksum(self.seed, &bytes[self.covered.clone()]);
        bytes[self.sum_at..self.sum_at + 4].copy_from_slice(&sum);
    }
}

const FOOTER_BYTES: usize = 164;
const MAGIC: &[u8; 8] = b"\x89WRTABLE";

/// The sound units of all segments of table `number`.
pub(super) fn table_units(number: u64, bytes: &[u8]) -> Vec<Unit> {
    let starts = bytes.windows(MAGIC.len()).enumerate();
    let footers = starts.filter(|(_, bytes)| *bytes == MAGIC);
    let mut units = Vec::new();
    for (at, _) in footers {
        for file in [number, 0] {
            units.extend(segment_units(file, bytes, at).unwrap_or_default());
        }
    }
    units.retain(|unit| unit.is_sound(bytes));
    units
}

/// The units of the segment whose footer is at `at`.
fn segment_units(file: u64, bytes: &[u8], at: usize) -> Option<Vec<Unit>> {
    let footer = bytes.get(at..at + FOOTER_BYTES)?;
    let word = |at: usize| -> Option<u64> {
        let field = footer.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*field))
    };
    let handle = |at: usize| -> Option<(u64, u64)> { Some((word(at)?, word(at + 8)?)) };
    let segment = word(24)?;
    let unit = |kind, offset: u64, length: u64| -> Option<Unit> {
        // A forged place may be beyond the file, and there is no end of them.
        let end = offset.checked_add(length)?;
        if end > bytes.len() as u64 {
            return None;
        }
        let start = usize::try_from(offset).ok()?;
        let sum_at = start.checked_add(usize::try_from(length).ok()?.checked_sub(4)?)?;
        Some(Unit {
            kind,
            covered: start..sum_at,
            sum_at,
            seed: seed(file, segment, offset),
        })
    };
    let mut units = vec![unit(UnitKind::Footer, at as u64, FOOTER_BYTES as u64)?];
    if !units[0].is_sound(bytes) {
        return None;
    }
    let (partitions, index, properties) = (handle(48)?, handle(64)?, handle(80)?);
    units.push(unit(UnitKind::Index, index.0, index.1)?);
    units.push(unit(UnitKind::Properties, properties.0, properties.1)?);
    let lists = partitions.0.checked_add(partitions.1)?;
    if lists < index.0 {
        units.push(unit(UnitKind::Lists, lists, index.0 - lists)?);
    }
    for number in 0..4 {
        let (mut offset, length) = handle(96 + 16 * number)?;
        let end = offset.checked_add(length)?;
        while offset < end {
            let piece_end = offset.checked_add(8 + 5 + 64)?;
            let piece_end = piece_end.checked_next_multiple_of(4096)?.min(end);
            units.push(unit(UnitKind::Filter, offset, piece_end - offset)?);
            offset = piece_end;
        }
    }
    let mut top = bytes.get(units[1].covered.clone())?;
    let (mut partition, mut block) = (partitions.0, word(32)?);
    for _ in 0..take_varint(&mut top)? {
        let stored = take_varint(&mut top)?;
        let blocks = take_varint(&mut top)?;
        take_varint(&mut top)?;
        take_prefixed(&mut top)?;
        let own = unit(UnitKind::Partition, partition, stored)?;
        let mut body = bytes.get(own.covered.clone())?;
        units.push(own);
        partition += stored;
        for _ in 0..blocks {
            let length = take_varint(&mut body)?;
            take_prefixed(&mut body)?;
            units.push(unit(UnitKind::DataBlock, block, length)?);
            block += length;
        }
    }
    Some(units)
}

/// The units of value file `number`: records of values, whose keys are among `keys` if they hold none, and blocks of
/// relocation tables.
pub(super) fn value_units(number: u64, bytes: &[u8], keys: &[Vec<u8>]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut offset = 0;
    while let Some(unit) = value_unit(number, bytes, offset, keys) {
        offset = unit.covered.end;
        units.push(unit);
    }
    units
}

fn value_unit(number: u64, bytes: &[u8], offset: usize, keys: &[Vec<u8>]) -> Option<Unit> {
    const RELOCATIONS: u8 = 64;
    let mut rest = bytes.get(offset + 4..)?;
    let before = rest.len();
    let place = seed(number, 0, offset as u64);
    let code = take(&mut rest, 1)?[0];
    let unit = |kind, left: usize, seed| Unit {
        kind,
        covered: offset + 4..offset + 4 + before - left,
        sum_at: offset,
        seed,
    };
    if code == RELOCATIONS {
        take(&mut rest, 8)?;
        let count = take(&mut rest, 2)?;
        let count = u16::from_le_bytes([count[0], count[1]]);
        take(&mut rest, 12 * u64::from(count))?;
        let unit = unit(UnitKind::Relocations, rest.len(), place);
        return unit.is_sound(bytes).then_some(unit);
    }
    let stored_key = take_prefixed(&mut rest)?;
    take_prefixed(&mut rest)?;
    let own = std::iter::once(stored_key).filter(|key| !key.is_empty());
    let candidates = own.chain(keys.iter().map(Vec::as_slice));
    let mut units = candidates.map(|key| unit(UnitKind::Value, rest.len(), place ^ key_seed(key)));
    units.find(|unit| unit.is_sound(bytes))
}

/// The chunks of discard list `number`.
pub(super) fn garbage_units(number: u64, bytes: &[u8]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut offset = 0;
    while let Some(header) = bytes.get(offset..).and_then(|rest| rest.first_chunk::<8>()) {
        let [.., a, b, c, d] = *header;
        let end = offset + 8 + u32::from_le_bytes([a, b, c, d]) as usize;
        let unit = Unit {
            kind: UnitKind::Garbage,
            covered: offset + 4..end,
            sum_at: offset,
            seed: seed(number, 0, offset as u64),
        };
        if !unit.is_sound(bytes) {
            break;
        }
        offset = end;
        units.push(unit);
    }
    units
}
