//! Trace files: their operations, and the errors of invalid ones.

use std::io::{Cursor, Write as _};

use super::*;

fn trace(bytes: impl Into<Vec<u8>>) -> Trace {
    Trace::of(Path::new("trace"), Cursor::new(bytes.into())).unwrap()
}

fn read_all(mut trace: Trace) -> Result<Vec<(TraceOp, Vec<u8>)>> {
    let mut all = Vec::new();
    while let Some((asked, key)) = trace.next()? {
        all.push((asked, key.to_vec()));
    }
    Ok(all)
}

const LINES: &str = "# key operation size\n\
    user:1 put 100\nuser:1,GET,0\n\n\tuser:1\tdelete\r\nuser:0, scan, 20\nk seek 0";

fn expected() -> Vec<(TraceOp, Vec<u8>)> {
    vec![
        (TraceOp::Put(100), b"user:1".to_vec()),
        (TraceOp::Get, b"user:1".to_vec()),
        (TraceOp::Delete, b"user:1".to_vec()),
        (TraceOp::Scan(20), b"user:0".to_vec()),
        (TraceOp::Scan(0), b"k".to_vec()),
    ]
}

#[test]
fn lines_are_read_in_every_form() {
    assert_eq!(read_all(trace(LINES)).unwrap(), expected());
    assert!(read_all(trace("")).unwrap().is_empty());
    assert!(read_all(trace("# nothing\n\n")).unwrap().is_empty());
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(content).unwrap();
    gzip.finish().unwrap()
}

/// A frame of content of odd length is one of small blocks.
fn lz4(content: &[u8]) -> Vec<u8> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let (size, mode) = match content.len() % 2 {
        0 => (BlockSize::Max4MB, BlockMode::Linked),
        _ => (BlockSize::Max64KB, BlockMode::Independent),
    };
    let info = FrameInfo::new().block_size(size).block_mode(mode);
    let info = info.content_checksum(true);
    let mut lz4 = FrameEncoder::with_frame_info(info, Vec::new());
    lz4.write_all(content).unwrap();
    lz4.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

/// A skippable frame; pzstd writes these before others.
fn skipped(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap();
    [
        &0x184d_2a50_u32.to_le_bytes(),
        &length.to_le_bytes(),
        content,
    ]
    .concat()
}

type Compress = fn(&[u8]) -> Vec<u8>;
/// The formats, and whether other frames may stand between theirs.
const FORMATS: [(Compress, bool); 3] = [(gzip, false), (zstd, true), (lz4, true)];

#[test]
fn compressed_files_are_read_by_their_first_bytes() {
    for (compress, _) in FORMATS {
        assert_eq!(
            read_all(trace(compress(LINES.as_bytes()))).unwrap(),
            expected()
        );
        assert!(read_all(trace(compress(b""))).unwrap().is_empty());
    }
}

#[test]
fn frames_of_all_kinds_may_follow_each_other() {
    // A line may begin in one frame and end in the next.
    let (start, end) = LINES.as_bytes().split_at(30);
    let parts = [
        skipped(b"a"),
        lz4(start),
        skipped(b""),
        skipped(&[b'x'; 300]),
        lz4(b""),
        zstd(end),
        zstd(b"\nk get"),
        skipped(b"end"),
    ];
    let mut more = expected();
    more.push((TraceOp::Get, b"k".to_vec()));
    assert_eq!(read_all(trace(parts.concat())).unwrap(), more);
    // For any size of a read from the file.
    let slow = BufReader::with_capacity(3, Cursor::new(parts.concat()));
    let slow = buffered(Frames::new(slow));
    let bytes: Vec<u8> = slow.bytes().map(|byte| byte.unwrap()).collect();
    assert_eq!(bytes, [LINES.as_bytes(), b"\nk get"].concat());
}

#[test]
fn files_that_were_cut_are_errors_wherever_that_was() {
    // Enough lines for several blocks in a part.
    let lines = |range: std::ops::Range<u32>| -> Vec<u8> {
        let lines = range.map(|number| format!("{:x} put {number}\n", number * 7919));
        lines.collect::<String>().into_bytes()
    };
    for (compress, has_frames) in FORMATS {
        let mut parts = vec![
            compress(&lines(0..300)),
            compress(&lines(300..555)),
            compress(b""),
        ];
        if has_frames {
            parts.insert(0, skipped(b"header"));
            parts.insert(2, skipped(b""));
        }
        let whole = parts.concat();
        let ends: Vec<usize> = (0..=parts.len())
            .map(|count| parts[..count].concat().len())
            .collect();
        for cut in 0..=whole.len() {
            let read = read_all(trace(&whole[..cut]));
            assert_eq!(read.is_ok(), ends.contains(&cut), "{cut} of {ends:?}");
        }
        assert_eq!(read_all(trace(whole.clone())).unwrap().len(), 555);
        // Other bytes after the parts are an error.
        assert!(read_all(trace([&whole, &b"k get\n"[..]].concat())).is_err());
    }
    // Between two blocks of a frame, too.
    let mut long = lines(0..20_000);
    long.resize(long.len() | 1, b'\n');
    let long = lz4(&long);
    let first = u32::from_le_bytes(long[7..11].try_into().unwrap()) as usize;
    assert!(11 + first < long.len() - 8);
    assert!(read_all(trace(&long[..11 + first])).is_err());
}

#[test]
fn damaged_compressed_files_are_errors() {
    for (compress, _) in FORMATS {
        let mut bytes = compress(LINES.as_bytes());
        let place = bytes.len() / 2;
        bytes[place] ^= 1;
        assert!(read_all(trace(bytes)).is_err());
    }
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
    assert_eq!(read, [(TraceOp::Get, vec![0xff, 0x00, 0xfe])]);
}
