//! `docs/format.md` shows the written bytes of value files, a pointer, a GC output and a discard list.

use super::*;
use crate::value::{DiscardListWriter, GcOutputWriter, RecordReader, discard_list_name};

/// Bytes as the document shows them.
fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| {
        let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n    ")
}

/// The list that names the first of two values of a log, and the GC output that holds the second.
fn gc_result(entries: &[Owned; 2]) -> [(&'static str, Vec<u8>); 2] {
    let vfs = MemoryVfs::default();
    let (log, pointers) = write(&vfs, NUMBER, Keys::InRecords, entries);
    let mut reader = RecordReader::open(&vfs, Path::new(""), &log).unwrap();
    let gc_output = FileNumber(NUMBER.0 + 1);
    let mut writer = GcOutputWriter::create(&vfs, Path::new(""), gc_output).unwrap();
    let place = &pointers[1];
    let offset = writer
        .copy(reader.footprint(), &entries[1].key, place, |_| Ok(()))
        .unwrap();
    let moves = [(place.offset, offset)];
    writer.add_table(NUMBER, log.length, &moves).unwrap();
    writer.finish().unwrap();
    let list = FileNumber(NUMBER.0 + 2);
    let mut writer = DiscardListWriter::create(&vfs, Path::new(""), list).unwrap();
    writer.add(NUMBER, pointers[0].offset).unwrap();
    writer.finish().unwrap();
    let list = vfs.file(Path::new(&discard_list_name(list)));
    let list = list.bytes.lock().clone();
    [
        ("GC output", bytes(&vfs, gc_output)),
        ("discard list", list),
    ]
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
    parts.extend(gc_result(&entries));
    let untrue: Vec<String> = parts
        .iter()
        .map(|(what, bytes)| (what, hex(bytes)))
        .filter(|(_, shown)| !document.contains(shown))
        .map(|(what, shown)| format!("the {what} is now\n    {shown}"))
        .collect();
    assert!(untrue.is_empty(), "{}", untrue.join("\n"));
}
