//! Tests of the replay: the order of sequence numbers, and where history ends.

use super::{RecordedLogs, Replayed, Target, replay, wal_name};
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Kind, Result, SequenceNumber};
use crate::log::batch::{self, Entry};
use crate::log::memory::MemoryVfs;
use crate::log::{LogWriter, Predecessor, WalHeader};
use crate::options::Recovery;
use std::path::{Path, PathBuf};

const FIRST: FileNumber = FileNumber(4);
const SECOND: FileNumber = FileNumber(6);

/// The sequence numbers of the applied entries.
#[derive(Default)]
struct Applied(Vec<SequenceNumber>);

impl Target for Applied {
    fn has_value(&mut self, _: &Entry<'_>) -> Result<bool> {
        Ok(true)
    }

    fn apply(&mut self, entry: Entry<'_>, _: bool) -> Result<bool> {
        self.0.push(entry.sequence);
        Ok(true)
    }
}

/// Two logs.
struct Logs {
    vfs: MemoryVfs,
    /// Where the batches of the first one begin.
    places: Vec<u64>,
}

/// Two logs: the first has a batch of two entries and one of one entry, the second a batch of one. Their first sequence
/// numbers are `bases`. `synced`: the first one was durable before the second one began.
fn logs(bases: [SequenceNumber; 2], synced: bool) -> Result<Logs> {
    let vfs = MemoryVfs::default();
    let mut places = Vec::new();
    let mut predecessor = None;
    for (number, base, counts) in [(FIRST, bases[0], &[2, 1][..]), (SECOND, bases[1], &[1])] {
        let mut log = LogWriter::create(&vfs, directory(), &wal_name(number), number, None)?;
        WalHeader { predecessor, base }.encode(log.begin());
        log.commit()?;
        for &count in counts {
            if number == FIRST {
                places.push(log.end());
            }
            let record = log.begin();
            batch::put_count(record, count);
            for _ in 0..count {
                batch::put_entry(record, KeyspaceId(1), Kind::Value, b"key", b"value");
            }
            log.commit()?;
        }
        predecessor = Some(Predecessor {
            number,
            end: log.end(),
            synced,
        });
    }
    Ok(Logs { vfs, places })
}

fn directory() -> &'static Path {
    Path::new("db")
}

fn path(log: FileNumber) -> PathBuf {
    directory().join(wal_name(log))
}

impl Logs {
    fn replay(&self, recovery: Recovery) -> Result<(Vec<SequenceNumber>, Replayed)> {
        let recorded = RecordedLogs {
            live: vec![FIRST, SECOND],
            ends: [].into(),
            synced: None,
        };
        let mut applied = Applied::default();
        let replayed = replay(&self.vfs, directory(), &recorded, recovery, &mut applied)?;
        Ok((applied.0, replayed))
    }

    /// Flips a bit of `log` at `offset`.
    fn flip(&self, log: FileNumber, offset: u64) {
        let mut bytes = self.vfs.read(&path(log));
        bytes[usize::try_from(offset).unwrap()] ^= 1;
        self.vfs.write(&path(log), &bytes);
    }

    fn length(&self, log: FileNumber) -> u64 {
        self.vfs.read(&path(log)).len() as u64
    }

    /// A strict replay reports damage, and one up to the damage applies what is before it.
    fn check_cut(&self, before: &[SequenceNumber], (damaged, at): (FileNumber, u64)) {
        let error: Error = self.replay(Recovery::Strict).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("UpToDamage"), "{error}");
        let (applied, replayed) = self.replay(Recovery::UpToDamage).unwrap();
        assert_eq!(applied, before);
        let damage = replayed.damage.unwrap();
        assert_eq!(damage.file(), Some(Path::new(&wal_name(damaged))));
        assert_eq!(damage.offset(), Some(at));
        let last = replayed.logs.last().map_or(0, |log| log.last_sequence);
        assert_eq!(last, before.last().copied().unwrap_or(0));
    }
}

#[test]
fn sequence_numbers_continue_from_the_base_of_the_first_log() {
    for base in [1, 1000] {
        let logs = logs([base, base + 3], false).unwrap();
        let (applied, replayed) = logs.replay(Recovery::Strict).unwrap();
        assert_eq!(applied, [base, base + 1, base + 2, base + 3]);
        let last = replayed.logs.iter().map(|log| log.last_sequence);
        assert_eq!(last.collect::<Vec<_>>(), [base + 2, base + 3]);
    }
}

#[test]
fn a_log_with_another_sequence_number_is_corruption() {
    for second in [1, 2, 3, 5, 1000] {
        let logs = logs([1, second], false).unwrap();
        let error = logs.replay(Recovery::Strict).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("000006.wal"), "{error}");
    }
}

#[test]
fn history_may_end_at_each_damaged_byte() {
    let sound = logs([1, 4], true).unwrap();
    let records = [
        (sound.places[0], &[][..]),
        (sound.places[1], &[1, 2]),
        (sound.length(FIRST), &[1, 2, 3]),
    ];
    for (index, &(end, _)) in records.iter().enumerate().skip(1) {
        let (begin, before) = records[index - 1];
        for offset in begin..end {
            let logs = logs([1, 4], true).unwrap();
            logs.flip(FIRST, offset);
            logs.check_cut(before, (FIRST, begin));
        }
    }
}

#[test]
fn history_may_end_before_a_log_that_is_missing_or_has_no_header() {
    // The first log ends where the second one said, if nothing says so any more: at its last record.
    let without = logs([1, 4], true).unwrap();
    without.vfs.remove_file(&path(SECOND));
    without.check_cut(&[1, 2, 3], (SECOND, 0));
    let without = logs([1, 4], true).unwrap();
    without.vfs.remove_file(&path(FIRST));
    without.check_cut(&[], (FIRST, 0));
}

#[test]
fn what_was_not_durable_is_no_damage() {
    let logs = logs([1, 4], false).unwrap();
    logs.flip(FIRST, logs.places[1]);
    for recovery in [Recovery::Strict, Recovery::UpToDamage] {
        let (applied, replayed) = logs.replay(recovery).unwrap();
        assert_eq!(applied, [1, 2]);
        assert!(replayed.damage.is_none());
    }
}

#[test]
fn a_log_that_cannot_be_read_ends_no_history() {
    use crate::log::memory::Operation;
    for after in 0..4 {
        let logs = logs([1, 4], true).unwrap();
        let io = std::io::ErrorKind::Other;
        logs.vfs.fail_once(Operation::Read, after, io);
        let error = logs.replay(Recovery::UpToDamage).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }
}
