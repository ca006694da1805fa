//! Pieces of filter units: their places, and hostile bytes.

use super::*;
use crate::base::{FileNumber, SegmentId};
use crate::block::stored::seal;
use crate::codec::checksum::key_hash;
use crate::filter::{FilterBuilder, line_number};
use proptest::prelude::*;

fn place(offset: u64) -> Place {
    Place {
        file: FileNumber(3),
        segment: SegmentId(4),
        offset,
    }
}

fn hash(key: u32) -> u64 {
    key_hash(&key.to_le_bytes())
}

/// Unit `number` over `keys` keys.
fn unit(keys: u32, number: u8) -> Filter {
    let mut builder = FilterBuilder::default();
    (0..keys).for_each(|key| builder.add(hash(key)));
    builder.unit(number, 10.0).unwrap()
}

/// The stored pieces of `filter` from `start` of a file on.
fn stored(filter: &Filter, start: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = write_pieces(filter, start, |body| {
        let (at, place) = (bytes.len(), place(start + bytes.len() as u64));
        bytes.extend_from_slice(body);
        seal(&mut bytes, at, Compression::None, place);
        Ok::<_, ()>(start + bytes.len() as u64)
    });
    written.unwrap();
    bytes
}

fn handle(start: u64, bytes: &[u8]) -> Handle {
    Handle {
        offset: start,
        length: bytes.len() as u64,
    }
}

fn part(bytes: &[u8], start: u64, piece: Handle) -> &[u8] {
    let at = usize::try_from(piece.offset - start).unwrap();
    &bytes[at..at + usize::try_from(piece.length).unwrap()]
}

#[test]
fn pieces_end_at_page_boundaries_and_the_last_one_with_its_last_line() {
    let rows: [(u64, u32, &[u64]); 7] = [
        // start, keys, lengths of the pieces
        (0, 40, &[77]),
        (0, 3225, &[4045]),
        (0, 3226, &[4096, 77]),
        (4000, 40, &[77]),
        (4000, 100, &[96, 77]),
        // No line fits before the boundary, so this piece goes on to the next one.
        (4090, 40, &[77]),
        (4090, 3270, &[4102, 77]),
    ];
    for (start, keys, lengths) in rows {
        let bytes = stored(&unit(keys, 0), start);
        let layout = UnitLayout::new(handle(start, &bytes), 0).unwrap();
        let pieces = (0..layout.pieces()).map(|number| layout.piece(number));
        let found: Vec<u64> = pieces.map(|piece| piece.length).collect();
        assert_eq!(found, lengths, "{start} {keys}");
        assert_eq!(bytes.len() as u64, lengths.iter().sum::<u64>());
    }
}

#[test]
fn every_flipped_byte_is_found_in_its_piece() {
    let start = 9000;
    let bytes = stored(&unit(6000, 2), start);
    let layout = UnitLayout::new(handle(start, &bytes), 2).unwrap();
    assert_eq!(layout.pieces(), 3);
    assert!(layout.decode(&bytes, place(start)).is_ok());
    let mut damaged = bytes.clone();
    for at in 0..bytes.len() {
        damaged[at] ^= 0x10;
        let offset = start + at as u64;
        for number in 0..layout.pieces() {
            let piece = layout.piece(number);
            let is_hit = (piece.offset..piece.offset + piece.length).contains(&offset);
            let stored = part(&damaged, start, piece);
            let verified = layout.verify(number, stored, place(piece.offset));
            assert_eq!(verified.is_err(), is_hit, "{at} {number}");
            if is_hit {
                let error = layout.decode(&damaged, place(start)).unwrap_err();
                let offset = usize::try_from(piece.offset - start).unwrap();
                assert_eq!(error.offset, offset, "the error names the piece");
            }
        }
        damaged[at] = bytes[at];
    }
}

#[test]
fn a_sound_piece_elsewhere_is_damage() {
    let bytes = stored(&unit(12_000, 0), 0);
    let layout = UnitLayout::new(handle(0, &bytes), 0).unwrap();
    let (first, second) = (layout.piece(1), layout.piece(2));
    assert_eq!(first.length, second.length);
    let neighbour = part(&bytes, 0, second);
    assert!(layout.verify(1, neighbour, place(first.offset)).is_err());
    assert!(layout.verify(2, neighbour, place(second.offset)).is_ok());
    // A sound checksum does not prove that the piece belongs to the unit.
    let other = UnitLayout::new(handle(0, &bytes), 1).unwrap();
    assert!(other.verify(2, neighbour, place(second.offset)).is_err());
    let shorter = &bytes[..bytes.len() - LINE_BYTES];
    let other = UnitLayout::new(handle(0, shorter), 0).unwrap();
    assert!(other.verify(2, neighbour, place(second.offset)).is_err());
    let mut packed = neighbour[..neighbour.len() - TRAILER_BYTES].to_vec();
    seal(&mut packed, 0, Compression::Lz4, place(second.offset));
    assert!(layout.verify(2, &packed, place(second.offset)).is_err());
    let mut short = neighbour[..neighbour.len() - TRAILER_BYTES - 1].to_vec();
    seal(&mut short, 0, Compression::None, place(second.offset));
    assert!(layout.verify(2, &short, place(second.offset)).is_err());
}

#[test]
fn a_unit_at_the_end_of_all_offsets_has_pieces() {
    // The last page has no end, so no unit of it alone has one either.
    let page = u64::MAX - (PIECE_BYTES - 1);
    let last = Handle {
        offset: page,
        length: OVERHEAD_BYTES + LINE,
    };
    assert!(UnitLayout::new(last, 0).is_err());
    let end = page + OVERHEAD_BYTES + 2 * LINE;
    for (offset, lengths) in [
        (page - 4096, &[4096, 141][..]),
        (page - 8192, &[4096, 4096, 141]),
    ] {
        let length = end - offset;
        let layout = UnitLayout::new(Handle { offset, length }, 0).unwrap();
        let pieces = (0..layout.pieces()).map(|number| layout.piece(number));
        let found: Vec<u64> = pieces.map(|piece| piece.length).collect();
        assert_eq!(found, lengths);
    }
}

proptest! {
    // I1
    #[test]
    fn a_place_determines_the_lines_and_the_piece_of_each(
        start in 0..20_000_u64,
        keys in 1..20_000_u32,
        number in 0..4_u8,
    ) {
        let filter = unit(keys, number);
        let bytes = stored(&filter, start);
        let layout = UnitLayout::new(handle(start, &bytes), number.into()).unwrap();
        prop_assert_eq!(layout.lines() as usize, filter.lines().len());
        prop_assert_eq!(layout.unit(), handle(start, &bytes));
        let decoded = layout.decode(&bytes, place(start)).unwrap();
        prop_assert_eq!(decoded.shape(), filter.shape());
        let mut end = start;
        for piece in (0..layout.pieces()).map(|number| layout.piece(number)) {
            prop_assert_eq!(piece.offset, end);
            end = piece.offset + piece.length;
            let is_in_a_page = piece.offset / PIECE_BYTES == (end - 1) / PIECE_BYTES;
            let starts_at_an_end = PIECE_BYTES - piece.offset % PIECE_BYTES < OVERHEAD_BYTES + LINE;
            prop_assert!(is_in_a_page || starts_at_an_end, "{:?}", piece);
        }
        prop_assert_eq!(end, start + bytes.len() as u64);
        for key in (0..keys + 500).step_by(7) {
            let line = line_number(hash(key), number.into(), layout.lines());
            let (piece, position) = layout.find(line);
            let stored = part(&bytes, start, layout.piece(piece));
            let passes = layout.passes(stored, position, hash(key));
            prop_assert_eq!(passes, Some(filter.may_contain(hash(key))));
            prop_assert_eq!(passes, Some(decoded.may_contain(hash(key))));
            prop_assert!(passes == Some(true) || key >= keys);
        }
    }

    #[test]
    fn no_place_and_no_bytes_make_a_reader_panic(
        offset in prop_oneof![0..10_000_u64, any::<u64>()],
        length in prop_oneof![0..10_000_u64, any::<u64>()],
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        position in prop_oneof![0..64_usize, Just(1 << 50)],
    ) {
        let Ok(layout) = UnitLayout::new(Handle { offset, length }, 0) else {
            return Ok(());
        };
        prop_assert!(layout.lines() > 0);
        let last = layout.piece(layout.pieces() - 1);
        prop_assert_eq!(last.end(), Some(offset + length));
        let (piece, _) = layout.find(layout.lines() as usize - 1);
        prop_assert_eq!(piece, layout.pieces() - 1);
        let verified = layout.verify(0, &bytes, place(offset));
        prop_assert!(verified.is_err(), "random bytes have no checksum");
        layout.passes(&bytes, position, 7);
        drop(layout.decode(&bytes, place(offset)));
    }
}
