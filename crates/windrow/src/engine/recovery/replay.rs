//! The replay of the write-ahead logs after a crash or a clean close.
//!
//! The replay reads the logs in the order of their chain, each up to its recorded length, by the
//! decision table of `log/tail.rs`. History ends at the first place without a sound record, except at the recorded
//! length of a log. Later logs do not count, since they would leave a hole. If something proves that bytes beyond
//! that place were durable, they are not torn but lost, and that is damage. The proofs are:
//! - a sound chunk after the place, in the same log, that records a later sync;
//! - any sync mark in a later log, since logs are synced in order;
//! - the header of a later log, or the manifest: both record how far a log was durable.
//!
//! A record that points to a missing or damaged value ends history in the same way, since a value is
//! durable before the record that points to it.
//!
//! [`Recovery::UpToDamage`] ends history at such damage as well. What contradicts itself under a sound checksum, and what
//! cannot be read, stays an error.
//!
//! The replay changes nothing on disk.
//!
//! Concurrency: one thread, before the database is open.

use std::collections::BTreeMap;
use std::path::Path;

use crate::base::{Error, ErrorKind, FileNumber, Result, SequenceNumber};
use crate::codec::reader::DecodeError;
use crate::log::batch::{BatchReader, Entry};
use crate::log::{LogReader, TailAction, WalHeader};
use crate::manifest::names::FileName;
use crate::options::Recovery;
use crate::vfs::Vfs;

pub(in crate::engine) fn wal_name(number: FileNumber) -> String {
    FileName::Wal(number).to_string()
}

/// The logs as the manifest describes them.
#[derive(Debug)]
pub(crate) struct RecordedLogs {
    /// Every log that is needed, ascending.
    pub(crate) live: Vec<FileNumber>,
    /// The ends of logs that earlier recoveries and clean closes have recorded.
    pub(crate) ends: BTreeMap<FileNumber, u64>,
    /// How far the chain was durable when a flush recorded it.
    pub(crate) synced: Option<(FileNumber, u64)>,
}

/// A replayed log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayedLog {
    pub(crate) number: FileNumber,
    /// Where it ends.
    pub(crate) end: u64,
    /// It is known to be durable up to here. The rest may be in the page cache only.
    pub(crate) durable: u64,
    /// Whether any of its entries is still needed.
    pub(crate) is_needed: bool,
    /// The sequence number of its first entry, if it has one.
    pub(crate) first_sequence: SequenceNumber,
    /// The newest sequence number in it or before it.
    pub(crate) last_sequence: SequenceNumber,
}

/// What to do next about damage at which history may end.
const UP_TO_DAMAGE: &str = "restore a backup, save all that is sound in a new database by windrow repair, or open with \
                            Recovery::UpToDamage for the commits before the damage alone";

/// The history that a replay has read.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The logs in the order of their chain, up to the one in which history ends.
    pub(crate) logs: Vec<ReplayedLog>,
    /// The damage behind which durable commits are lost, if history ends there.
    pub(crate) damage: Option<Error>,
}

impl Replayed {
    /// History ends at `damage`, if `recovery` allows it.
    fn end_at(&mut self, damage: Error, recovery: Recovery) -> Result<()> {
        if recovery == Recovery::Strict || damage.kind() != ErrorKind::Corruption {
            return Err(damage.with_next_step(UP_TO_DAMAGE));
        }
        // What comes later follows from the first damage.
        self.damage.get_or_insert(damage);
        Ok(())
    }
}

/// The receiver of the history.
pub(crate) trait Target {
    /// Whether the value of `entry` exists, is in the entry itself, or is not needed.
    fn has_value(&mut self, entry: &Entry<'_>) -> Result<bool>;
    /// Applies an entry; `is_durable` says whether its value is known to be durable. Returns whether the
    /// entry is still needed.
    fn apply(&mut self, entry: Entry<'_>, is_durable: bool) -> Result<bool>;
}

/// Reads all logs and applies every entry of the history to `target`, in commit order.
///
/// # Errors
/// `Corruption` if durable records or values are lost or damaged, unless history may end there; `Io` from reading, which
/// proves nothing about the logs; the errors of `target`.
pub(crate) fn replay(
    vfs: &dyn Vfs,
    directory: &Path,
    recorded: &RecordedLogs,
    recovery: Recovery,
    target: &mut impl Target,
) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    let mut headers = Vec::new();
    for &number in &recorded.live {
        match read_header(vfs, directory, number) {
            Ok(header) => headers.push(header),
            Err(damage) => {
                replayed.end_at(damage, recovery)?;
                break;
            }
        }
    }
    for (index, (&number, &header)) in recorded.live.iter().zip(&headers).enumerate() {
        if let Some(previous) = replayed.logs.last() {
            let follows = if let Some(header) = header {
                let end = (previous.number, previous.end);
                check_predecessor(number, header, end, previous.last_sequence)
            } else if proof_beyond(vfs, directory, recorded, &headers, index - 1, previous.end)? {
                // The log itself may prove that its header was durable.
                Err(lost_record(number, 0))
            } else {
                break;
            };
            if let Err(damage) = follows {
                replayed.end_at(damage, recovery)?;
                break;
            }
        }
        let next_log = headers.get(index + 1).copied().flatten();
        let recorded_end = recorded.ends.get(&number).copied();
        let of_next_log = next_log.and_then(|header| header.predecessor);
        let recorded_length = recorded_end.or(of_next_log.map(|predecessor| predecessor.end));
        let name = wal_name(number);
        let mut reader = LogReader::open(vfs, directory, &name, number, recorded_length)?;
        // A log without a header has no records.
        let mut last_sequence = header.map_or(0, |header| header.base - 1);
        let first_sequence = last_sequence + 1;
        let mut is_needed = false;
        // The end is recorded in the manifest, and the sync in the next log's header, after the sync.
        let is_durable =
            recorded_end.is_some() || of_next_log.is_some_and(|predecessor| predecessor.synced);
        // The first record with a missing value. Later records show whether it was durable.
        let mut missing = None;
        while let Some(record) = reader.next()? {
            if record.offset > 0 && missing.is_none() {
                let batch = Batch {
                    payload: record.payload,
                    name: &name,
                    offset: record.payload_offset(),
                    is_durable,
                };
                match batch.apply(last_sequence, target)? {
                    Some((last, needs_batch)) => {
                        last_sequence = last;
                        is_needed |= needs_batch;
                    }
                    None => missing = Some(record.offset),
                }
            }
        }
        let end = reader.end()?;
        let stop = missing.unwrap_or(end.offset);
        let is_whole = end.recorded_length == Some(stop);
        let proof = !is_whole && proof_beyond(vfs, directory, recorded, &headers, index, stop)?;
        let is_complete = match end.action(proof) {
            _ if missing.is_some() => {
                if proof || end.evidence > stop {
                    replayed.end_at(lost_value(number, stop), recovery)?;
                }
                false
            }
            TailAction::NextLog => true,
            TailAction::EndOfHistory if !proof => false,
            _ => {
                replayed.end_at(lost_record(number, end.offset), recovery)?;
                false
            }
        };
        replayed.logs.push(ReplayedLog {
            number,
            end: stop,
            durable: if is_complete && is_durable {
                stop
            } else {
                end.evidence
            },
            is_needed,
            first_sequence,
            last_sequence,
        });
        if !is_complete {
            break;
        }
    }
    let reached = replayed.logs.last().map(|last| (last.number, last.end));
    if let Some(reached) = reached
        && recorded.synced.is_some_and(|synced| synced > reached)
    {
        replayed.end_at(lost_record(reached.0, reached.1), recovery)?;
    }
    Ok(replayed)
}

pub(in crate::engine) fn lost_record(number: FileNumber, offset: u64) -> Error {
    Error::corruption(
        &wal_name(number),
        offset,
        "a record that was durable is damaged or missing",
    )
}

pub(in crate::engine) fn lost_value(number: FileNumber, offset: u64) -> Error {
    Error::corruption(
        &wal_name(number),
        offset,
        "a value that it points to was durable and is damaged or missing",
    )
}

/// The header of a log. `None` if it has no sound header: the log was prepared and never begun, or its
/// bytes are lost.
pub(in crate::engine) fn read_header(
    vfs: &dyn Vfs,
    directory: &Path,
    number: FileNumber,
) -> Result<Option<WalHeader>> {
    let name = wal_name(number);
    let mut reader = LogReader::open(vfs, directory, &name, number, None)?;
    let Some(record) = reader.next()? else {
        return Ok(None);
    };
    let header = WalHeader::decode(record.payload)
        .map_err(|error| error.in_file(&name, record.payload_offset()))?;
    Ok(Some(header))
}

/// Checks that a log follows the one before it, which has ended at a log and an offset in it, with `last_sequence`.
pub(in crate::engine) fn check_predecessor(
    number: FileNumber,
    header: WalHeader,
    before: (FileNumber, u64),
    last_sequence: SequenceNumber,
) -> Result<()> {
    let named = header
        .predecessor
        .map(|predecessor| (predecessor.number, predecessor.end));
    if named != Some(before) {
        return Err(Error::corruption(
            &wal_name(number),
            0,
            format!(
                "it does not follow {} at offset {}",
                wal_name(before.0),
                before.1
            ),
        ));
    }
    if header.base != last_sequence + 1 {
        return Err(Error::corruption(
            &wal_name(number),
            0,
            format!("sequence number {} follows {last_sequence}", header.base),
        ));
    }
    Ok(())
}

/// Whether a log after the one at `index` proves that the chain was once durable beyond `end` of that
/// log.
pub(in crate::engine) fn proof_beyond(
    vfs: &dyn Vfs,
    directory: &Path,
    recorded: &RecordedLogs,
    headers: &[Option<WalHeader>],
    index: usize,
    end: u64,
) -> Result<bool> {
    let later = recorded.live.get(index + 1..headers.len());
    Ok(is_recorded_beyond(recorded, headers, index, end)
        || has_sync(vfs, directory, later.unwrap_or_default())?)
}

/// Whether the manifest or the header of a later log records that the chain was durable beyond `end` of the log at `index`.
pub(in crate::engine) fn is_recorded_beyond(
    recorded: &RecordedLogs,
    headers: &[Option<WalHeader>],
    index: usize,
    end: u64,
) -> bool {
    let position = (recorded.live[index], end);
    // An end is recorded only after everything before it is durable.
    let mut ends = recorded.ends.iter().map(|(&log, &end)| (log, end));
    let later = headers.iter().skip(index + 1).flatten();
    let mut predecessors = later.filter_map(|header| header.predecessor);
    ends.any(|end| end > position)
        || predecessors.any(|log| log.synced && (log.number, log.end) > position)
}

/// Whether one of `logs` has the mark of a sync, which proves that all logs before it were durable: they are synced in order.
pub(in crate::engine) fn has_sync(
    vfs: &dyn Vfs,
    directory: &Path,
    logs: &[FileNumber],
) -> Result<bool> {
    for &log in logs {
        let mut reader = LogReader::open(vfs, directory, &wal_name(log), log, None)?;
        while reader.next()?.is_some() {}
        if reader.end()?.evidence > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The payload of a record.
pub(in crate::engine) struct Batch<'a> {
    pub(in crate::engine) payload: &'a [u8],
    /// The log, and the offset of the payload in it.
    pub(in crate::engine) name: &'a str,
    pub(in crate::engine) offset: u64,
    /// Whether the record and its values are known to have been durable.
    pub(in crate::engine) is_durable: bool,
}

impl Batch<'_> {
    /// Applies the batch, whose sequence numbers follow `last_sequence`. Returns its last sequence number
    /// and whether any of its entries is still needed; `None` if a value is missing, with nothing applied.
    pub(in crate::engine) fn apply(
        &self,
        last_sequence: SequenceNumber,
        target: &mut impl Target,
    ) -> Result<Option<(SequenceNumber, bool)>> {
        let in_file = |error: DecodeError| error.in_file(self.name, self.offset);
        let mut unpacked = Vec::new();
        let mut batch =
            BatchReader::new(self.payload, last_sequence + 1, &mut unpacked).map_err(in_file)?;
        if !self.is_durable {
            let mut batch = batch.clone();
            while let Some(entry) = batch.next().map_err(in_file)? {
                if !target.has_value(&entry)? {
                    return Ok(None);
                }
            }
        }
        let mut last = last_sequence;
        let mut is_needed = false;
        while let Some(entry) = batch.next().map_err(in_file)? {
            last = entry.sequence;
            is_needed |= target.apply(entry, self.is_durable)?;
        }
        Ok(Some((last, is_needed)))
    }
}

#[cfg(test)]
mod tests;
