//! `docs/format.md` shows a table as it is written.

use super::super::{FOOTER_BYTES, Footer, Handle};
use super::*;
use crate::block::stored::Place;

/// Two versions of one key and a second key, in a file of one block.
fn example() -> Vec<Owned> {
    vec![
        Owned::new(b"apple", 300, None),
        Owned::new(b"apple", 7, Some(b"red")),
        Owned::new(b"apricot", 9, Some(b"soft")),
    ]
}

/// Bytes as the document shows them.
fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| {
        let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n    ")
}

#[test]
fn the_format_document_shows_a_true_table() {
    let document = include_str!("../../../../../docs/format.md");
    let (meta, bytes) = write(&example(), &plain());
    let end = bytes.len() - FOOTER_BYTES;
    let place = Place {
        file: NUMBER,
        segment: SEGMENT,
        offset: end as u64,
    };
    let footer = Footer::decode(&bytes[end..], place, &meta.segments[0]).unwrap();
    let part = |handle: Handle| {
        let start = usize::try_from(handle.offset).unwrap();
        &bytes[start..start + usize::try_from(handle.length).unwrap()]
    };
    let parts = [
        ("data block", part(footer.data())),
        ("filter unit", part(footer.filters[0])),
        ("index partition", part(footer.partitions)),
        ("top-level index", part(footer.index)),
        ("properties block", part(footer.properties)),
        ("footer", &bytes[end..]),
    ];
    let untrue: Vec<String> = parts
        .iter()
        .map(|(what, bytes)| (what, hex(bytes)))
        .filter(|(_, shown)| !document.contains(shown))
        .map(|(what, shown)| format!("the {what} is now\n    {shown}"))
        .collect();
    assert!(untrue.is_empty(), "{}", untrue.join("\n"));
}
