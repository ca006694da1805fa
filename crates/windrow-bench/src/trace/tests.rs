//! Trace files: what is read from them, and what is said of bad ones.

use std::io::{Cursor, Write as _};

use super::*;

fn trace(bytes: impl Into<Vec<u8>>) -> Trace {
    Trace::of(Path::new("trace"), Cursor::new(bytes.into())).unwrap()
}

fn read_all(mut trace: Trace) -> Result<Vec<(Asked, Vec<u8>)>> {
    let mut all = Vec::new();
    while let Some((asked, key)) = trace.next()? {
        all.push((asked, key.to_vec()));
    }
    Ok(all)
}

const LINES: &str = "# key operation size\n\
    user:1 put 100\nuser:1,GET,0\n\n\tuser:1\tdelete\r\nuser:0, scan, 20\nk seek 0";

fn expected() -> Vec<(Asked, Vec<u8>)> {
    vec![
        (Asked::Put(100), b"user:1".to_vec()),
        (Asked::Get, b"user:1".to_vec()),
        (Asked::Delete, b"user:1".to_vec()),
        (Asked::Scan(20), b"user:0".to_vec()),
        (Asked::Scan(0), b"k".to_vec()),
    ]
}

#[test]
fn lines_are_read_in_every_form() {
    assert_eq!(read_all(trace(LINES)).unwrap(), expected());
    assert!(read_all(trace("")).unwrap().is_empty());
    assert!(read_all(trace("# nothing\n\n")).unwrap().is_empty());
}

#[test]
fn compressed_files_are_read_by_their_first_bytes() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(LINES.as_bytes()).unwrap();
    assert_eq!(read_all(trace(gzip.finish().unwrap())).unwrap(), expected());

    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(LINES.as_bytes()).unwrap();
    assert_eq!(read_all(trace(lz4.finish().unwrap())).unwrap(), expected());

    let level = ruzstd::encoding::CompressionLevel::Uncompressed;
    let zstd = ruzstd::encoding::compress_to_vec(LINES.as_bytes(), level);
    assert_eq!(read_all(trace(zstd)).unwrap(), expected());
}

#[test]
fn damaged_compressed_files_are_errors() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for number in 0..10_000_u32 {
        writeln!(gzip, "key{number} get").unwrap();
    }
    let mut bytes = gzip.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    assert!(read_all(trace(bytes)).is_err());
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(&vec![b'x'; 100_000]).unwrap();
    let mut bytes = lz4.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    assert!(read_all(trace(bytes)).is_err());
}

#[test]
fn bad_lines_are_named() {
    let long = format!("{} get", "k".repeat(limits::KEY_BYTES_MAX + 1));
    let longer = "k".repeat(1 << 20);
    let huge = format!("k put {}", limits::VALUE_BYTES_MAX as u64 + 1);
    for (line, says) in [
        ("alone", "expected a key"),
        ("k put", "lacks the size"),
        ("k scan", "lacks the size"),
        ("k merge 5", "none of get"),
        ("k put many", "no number"),
        ("k put -1", "no number"),
        ("k get 99999999999999999999", "no number"),
        ("k put 1 2", "does not end"),
        (&huge, "larger than the limit"),
        (&long, "bytes"),
        (&longer, "longer than any key"),
        ("k \u{fc}ber 1", "none of get"),
    ] {
        let error = read_all(trace(format!("k get\n\n{line}\nk get\n"))).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), windrow::ErrorKind::InvalidArgument);
        assert!(text.contains("line 3") && text.contains(says), "{text}");
    }
}

#[test]
fn keys_may_be_any_bytes() {
    let lines = [0xff, 0x00, 0xfe, b' ', b'g', b'e', b't', b'\n'];
    let read = read_all(trace(lines)).unwrap();
    assert_eq!(read, [(Asked::Get, vec![0xff, 0x00, 0xfe])]);
}
