//! What a compaction may install.

use super::{Claim, check_keys};
use crate::base::{FileNumber, SegmentId};
use crate::filter::FILTER_UNITS_MAX;
use crate::table::{FenceKeys, FileMeta, SegmentMeta, SegmentReferences};

fn table(smallest: &[u8], largest: &[u8]) -> FileMeta {
    let segment = SegmentMeta {
        id: SegmentId(8),
        offset: 0,
        length: 1000,
        entries: 2,
        tombstones: 0,
        keys: FenceKeys::new(smallest, largest),
        sequence_min: 1,
        sequence_max: 2,
        logical_bytes: 100,
        overwrites: 0,
        filter_units: [0; FILTER_UNITS_MAX],
        range_tombstones: 0,
        operands: 0,
        hidden_below: 0,
        expiring: None,
        footer_checksum: 0,
        references: SegmentReferences::default(),
    };
    FileMeta {
        number: FileNumber(7),
        sealed: false,
        external: false,
        segments: vec![segment].into(),
    }
}

#[test]
fn keys_beyond_the_claim_and_tables_out_of_order_are_refused() {
    let claim = Claim {
        level: 1,
        smallest: Box::from(*b"c"),
        largest: Box::from(*b"p"),
    };
    let check = |tables: &[FileMeta], grown: &[FileMeta]| check_keys(tables, grown, &claim);
    assert!(check(&[table(b"c", b"d"), table(b"e", b"p")], &[]).is_ok());
    assert!(check(&[table(b"b", b"d")], &[]).is_err());
    assert!(check(&[table(b"c", b"q")], &[]).is_err());
    assert!(check(&[], &[table(b"c", b"q")]).is_err());
    assert!(check(&[table(b"e", b"p"), table(b"c", b"d")], &[]).is_err());
}
