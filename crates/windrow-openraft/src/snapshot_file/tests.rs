//! Snapshots that are damaged or lie.

use std::io::{self, Read};

use openraft::declare_raft_types;

use super::*;

declare_raft_types!(
    Types: D = u64, R = u64, SnapshotData = tokio::fs::File,
);

/// A snapshot up to its first entry.
fn beginning() -> Vec<u8> {
    let meta = encode(&Meta::<Types>::default()).unwrap();
    [&MAGIC[..], VERSION, &length(&meta).unwrap(), &meta].concat()
}

fn error(bytes: impl Read) -> Error {
    let path = Path::new("folder/snapshot");
    verify::<Types>(bytes, path).unwrap_err()
}

#[test]
fn another_version_is_not_supported() {
    let mut bytes = beginning();
    bytes[7] = b'2';
    assert_eq!(error(&bytes[..]).kind(), ErrorKind::Unsupported);
}

#[test]
fn damage_is_reported_with_its_file_and_offset() {
    let bytes = beginning();
    let error = error(&bytes[..]);
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let message = error.to_string();
    let wanted = format!(
        "folder/snapshot is damaged at offset {}: it is too short; ",
        bytes.len()
    );
    assert!(message.starts_with(&wanted), "{message}");
}

/// A file without an end that notes when somebody reads more than a little of it.
struct Endless<'a> {
    read: &'a mut u64,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        *self.read += buffer.len() as u64;
        assert!(*self.read < 1 << 20, "it is read on and on");
        buffer.fill(1);
        Ok(buffer.len())
    }
}

#[test]
fn a_length_above_the_limits_of_the_database_is_damage_at_once() {
    let bytes = |lengths: &[usize]| {
        let lengths = lengths.iter().map(|length| u32::try_from(*length).unwrap());
        let lengths: Vec<_> = lengths.flat_map(u32::to_le_bytes).collect();
        [beginning(), lengths].concat()
    };
    let too_long_meta = [&MAGIC[..], VERSION, &[255; 4]].concat();
    for bytes in [
        bytes(&[KEY_BYTES_MAX + 1]),
        bytes(&[1, VALUE_BYTES_MAX + 1]),
        too_long_meta,
    ] {
        let mut read = 0;
        let file = bytes.chain(Endless { read: &mut read });
        assert_eq!(error(file).kind(), ErrorKind::Corruption);
    }
}
