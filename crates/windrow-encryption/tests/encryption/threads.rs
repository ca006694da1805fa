//! Readers beside a writer that writes the last cell again and again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow::vfs::{OpenMode, OsVfs, Vfs, read_exact_at, write_all_at};
use windrow_encryption::{EncryptedVfs, KeyRing};

use crate::key;

const BYTES: u64 = 300_000;

#[test]
fn what_was_written_can_be_read_beside_appends() {
    let folder = tempfile::tempdir().unwrap();
    let keys = Arc::new(KeyRing::new("first", key(1)));
    // The second one stands for another process: it has no lock in common with the first.
    let [vfs, other] =
        [(); 2].map(|()| EncryptedVfs::new(Arc::new(OsVfs), Arc::<KeyRing>::clone(&keys)));
    let path = folder.path().join("file");
    let file = vfs.create(&path).unwrap();
    let written = AtomicU64::new(0);
    let byte_at = |place: u64| (place * 31 % 251) as u8;
    let read = |vfs: &EncryptedVfs, path: &Path| {
        let file = vfs.open(path, OpenMode::Read).unwrap();
        loop {
            let end = written.load(Ordering::Acquire);
            let start = end.saturating_sub(700);
            let mut bytes = vec![0; (end - start) as usize];
            read_exact_at(&*file, &mut bytes, start).unwrap();
            for (place, byte) in (start..).zip(bytes) {
                assert_eq!(byte, byte_at(place), "{place} of {end}");
            }
            if end >= BYTES {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| read(&vfs, &path));
        scope.spawn(|| read(&other, &path));
        let mut place = 0;
        while place < BYTES {
            let end = place + 1 + place % 53;
            let bytes: Vec<u8> = (place..end).map(byte_at).collect();
            write_all_at(&*file, &bytes, place).unwrap();
            written.store(end, Ordering::Release);
            place = end;
        }
    });
}
