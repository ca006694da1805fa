//! `docs/format.md` shows a value file and a pointer as they are written.

use super::*;

/// Bytes as the document shows them.
fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).map(|line| {
        let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n    ")
}

#[test]
fn the_format_document_shows_true_value_files() {
    let document = include_str!("../../../../../docs/format.md");
    let owned = |key: &[u8], value: &[u8], compression| Owned {
        key: key.to_vec(),
        value: value.to_vec(),
        compression,
    };
    let entries = [
        owned(b"apple", b"red", Compression::None),
        owned(b"apricot", &[b'-'; 300], Compression::Lz4),
    ];
    let mut parts = Vec::new();
    for keys in [Keys::InTables, Keys::InRecords] {
        let vfs = MemoryVfs::default();
        let (_, pointers) = write(&vfs, NUMBER, keys, &entries);
        let mut pointer = Vec::new();
        pointers[1].encode(&mut pointer);
        parts.push(("file", bytes(&vfs, NUMBER)));
        parts.push(("pointer", pointer));
    }
    let untrue: Vec<String> = parts
        .iter()
        .map(|(what, bytes)| (what, hex(bytes)))
        .filter(|(_, shown)| !document.contains(shown))
        .map(|(what, shown)| format!("the {what} is now\n    {shown}"))
        .collect();
    assert!(untrue.is_empty(), "{}", untrue.join("\n"));
}
