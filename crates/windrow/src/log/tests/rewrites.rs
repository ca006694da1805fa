//! Rewrites of logs before their sync.

use super::*;
use crate::log::memory::Fault;
use crate::vfs::Vfs;

/// Makes the log of [`sample`] durable from `durable` on.
fn rewrite_sample(vfs: &MemoryVfs, durable: u64, end: u64) -> Result<()> {
    rewrite(vfs, directory(), NAME, NUMBER, durable, end)
}

#[test]
fn all_bytes_that_may_not_be_durable_are_rewritten() {
    // I2
    let vfs = MemoryVfs::default();
    let (bytes, records, marker) = sample(&vfs);
    let end = bytes.len() as u64;
    // As if the bytes had never reached the device.
    for (durable, expected) in [(0, 1), (records[2].0, 1), (marker, 1), (end, 0)] {
        vfs.take_log();
        rewrite_sample(&vfs, durable, end).unwrap();
        let log = vfs.take_log();
        let writes = log.iter().filter(|step| **step == Operation::Write).count();
        assert_eq!(writes, expected, "from {durable}");
        assert_eq!(log.last(), Some(&Operation::Sync));
        assert_eq!(vfs.read(&directory().join(NAME)), bytes);
    }
}

#[test]
fn a_long_log_is_written_in_parts() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    for length in [100_000, 300_000, 700_000, 1, 200_000] {
        writer.append(&vec![7; length]).unwrap();
    }
    let path = directory().join(NAME);
    let bytes = vfs.read(&path);
    vfs.sync_dir(directory()).unwrap();
    vfs.take_log();
    rewrite_sample(&vfs, 0, writer.end()).unwrap();
    assert!(
        vfs.take_log()
            .iter()
            .filter(|step| **step == Operation::Write)
            .count()
            >= 3
    );
    assert_eq!(vfs.read(&path), bytes);
    vfs.crash();
    assert_eq!(vfs.read(&path), bytes);
}

#[test]
fn a_failure_changes_no_byte() {
    // I1
    let path = directory().join(NAME);
    for lasting in [false, true] {
        for after in 0.. {
            let vfs = MemoryVfs::default();
            let (bytes, _, _) = sample(&vfs);
            vfs.move_in_pieces(100);
            vfs.take_log();
            vfs.inject(Fault {
                operation: None,
                after,
                lasting,
                error: io::ErrorKind::Other,
            });
            let outcome = rewrite_sample(&vfs, 0, bytes.len() as u64);
            assert_eq!(vfs.read(&path), bytes);
            if outcome.is_ok() {
                assert!(after > 5);
                break;
            }
            assert_eq!(kind(outcome), ErrorKind::Io);
        }
    }
}

#[test]
fn lost_bytes_are_an_error() {
    let vfs = MemoryVfs::default();
    let (bytes, records, _) = sample(&vfs);
    let path = directory().join(NAME);
    let end = bytes.len() as u64;
    for (keep, flip) in [(records[3].0, false), (end, true)] {
        let mut changed = bytes[..usize::try_from(keep).unwrap()].to_vec();
        if flip {
            changed[usize::try_from(records[2].0).unwrap() + 3] ^= 1;
        }
        vfs.write(&path, &changed);
        assert_eq!(kind(rewrite_sample(&vfs, 0, end)), ErrorKind::Io);
        assert_eq!(vfs.read(&path), changed);
    }
}
