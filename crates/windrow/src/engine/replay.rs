//! Reading the write-ahead logs back after a crash or a clean close.
//!
//! The logs are read in the order of their chain, each up to the length at which it was closed, by
//! the decision table of [`log`](crate::log). History ends at the first place where a log that was
//! still open has no sound record; whatever any later log holds does not count, since it would leave
//! a hole. Where something proves that bytes beyond that place were durable once, they are not torn
//! but lost, and that is damage:
//! - a sound chunk behind the place, in the same log, that speaks of a later sync;
//! - any sync mark in a later log, since logs are synced in order;
//! - the header of a later log, or the manifest, which say how far a log was durable.
//!
//! Reading changes nothing on disk.

use std::collections::BTreeMap;
use std::path::Path;

use crate::base::{Error, FileNumber, Result, SequenceNumber};
use crate::log::batch::{BatchReader, Entry};
use crate::log::{HEADER_BYTES, LogReader, TailAction, WalHeader};
use crate::manifest::names::FileName;
use crate::vfs::Vfs;

fn wal_name(number: FileNumber) -> String {
    FileName::Wal(number).to_string()
}

/// What the manifest says of the logs.
#[derive(Debug)]
pub(crate) struct RecordedLogs {
    /// Every log that is needed, ascending.
    pub(crate) live: Vec<FileNumber>,
    /// Where earlier recoveries and clean closes ended a log.
    pub(crate) ends: BTreeMap<FileNumber, u64>,
    /// How far the chain was durable when a flush recorded it.
    pub(crate) synced: Option<(FileNumber, u64)>,
}

/// A log that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayedLog {
    pub(crate) number: FileNumber,
    /// Where it ends.
    pub(crate) end: u64,
    /// Up to where it is known to be durable. What lies behind may be in memory only.
    pub(crate) durable: u64,
    /// Whether any of its entries is still needed.
    pub(crate) is_needed: bool,
    /// The newest sequence number in it or before it.
    pub(crate) last_sequence: SequenceNumber,
}

/// Reads all logs and hands every entry of the history to `apply`, in commit order; `apply` says
/// whether the entry is still needed.
///
/// # Errors
/// `Corruption` where durable records are lost or damaged; `Io` from reading, which proves nothing
/// about the logs; the errors of `apply`.
pub(crate) fn replay(
    vfs: &dyn Vfs,
    directory: &Path,
    recorded: &RecordedLogs,
    mut apply: impl FnMut(Entry<'_>) -> Result<bool>,
) -> Result<Vec<ReplayedLog>> {
    let headers = recorded
        .live
        .iter()
        .map(|&number| read_header(vfs, directory, number))
        .collect::<Result<Vec<_>>>()?;
    let mut replayed: Vec<ReplayedLog> = Vec::new();
    for (index, &number) in recorded.live.iter().enumerate() {
        if headers[index].is_none()
            && let Some(previous) = replayed.last()
        {
            // The log itself may prove that its header was durable.
            if proof_beyond(vfs, directory, recorded, &headers, index - 1, previous.end)? {
                return Err(lost_record(number, 0));
            }
            break;
        }
        check_predecessor(number, headers[index], replayed.last())?;
        let successor = headers.get(index + 1).copied().flatten();
        let recorded_end = recorded.ends.get(&number).copied();
        let of_successor = successor.and_then(|header| header.predecessor);
        let recorded_length = recorded_end.or(of_successor.map(|predecessor| predecessor.end));
        let name = wal_name(number);
        let mut reader = LogReader::open(vfs, directory, &name, number, recorded_length)?;
        let mut last_sequence = replayed.last().map_or(0, |log| log.last_sequence);
        let mut is_needed = false;
        while let Some(record) = reader.next()? {
            if record.offset > 0 {
                let base = record.offset + HEADER_BYTES as u64;
                let (last, needs_batch) =
                    apply_batch(record.payload, last_sequence, &name, base, &mut apply)?;
                last_sequence = last;
                is_needed |= needs_batch;
            }
        }
        let end = reader.end()?;
        let is_whole = end.recorded_length == Some(end.offset);
        let proof =
            !is_whole && proof_beyond(vfs, directory, recorded, &headers, index, end.offset)?;
        let is_complete = match end.action(proof) {
            TailAction::NextLog => true,
            TailAction::EndOfHistory if !proof => false,
            _ => return Err(lost_record(number, end.offset)),
        };
        // An end is recorded in the manifest, and a sync noted by a successor, after the sync.
        let is_durable =
            recorded_end.is_some() || of_successor.is_some_and(|predecessor| predecessor.synced);
        replayed.push(ReplayedLog {
            number,
            end: end.offset,
            durable: if is_complete && is_durable {
                end.offset
            } else {
                end.evidence
            },
            is_needed,
            last_sequence,
        });
        if !is_complete {
            break;
        }
    }
    if let Some(last) = replayed.last()
        && recorded
            .synced
            .is_some_and(|synced| synced > (last.number, last.end))
    {
        return Err(lost_record(last.number, last.end));
    }
    Ok(replayed)
}

fn lost_record(number: FileNumber, offset: u64) -> Error {
    Error::corruption(
        &wal_name(number),
        offset,
        "a record that was durable is damaged or missing",
    )
}

/// The header of a log, or `None` where nothing sound stands at its front: it was prepared and
/// never begun, or what was written to it is lost.
pub(super) fn read_header(
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
        .map_err(|error| error.in_file(&name, HEADER_BYTES as u64))?;
    Ok(Some(header))
}

/// Checks that a log follows the one that was replayed before it.
fn check_predecessor(
    number: FileNumber,
    header: Option<WalHeader>,
    previous: Option<&ReplayedLog>,
) -> Result<()> {
    let (Some(header), Some(previous)) = (header, previous) else {
        return Ok(());
    };
    let named = header
        .predecessor
        .map(|predecessor| (predecessor.number, predecessor.end));
    if named == Some((previous.number, previous.end)) {
        return Ok(());
    }
    Err(Error::corruption(
        &wal_name(number),
        0,
        format!(
            "it does not follow {} at offset {}",
            wal_name(previous.number),
            previous.end
        ),
    ))
}

/// Whether a log behind the one at `index` proves that more of the chain than `end` of that log
/// was durable once.
fn proof_beyond(
    vfs: &dyn Vfs,
    directory: &Path,
    recorded: &RecordedLogs,
    headers: &[Option<WalHeader>],
    index: usize,
    end: u64,
) -> Result<bool> {
    let position = (recorded.live[index], end);
    // An end was recorded only once everything before it was durable.
    if recorded
        .ends
        .iter()
        .any(|(&log, &end)| (log, end) > position)
    {
        return Ok(true);
    }
    for (later, header) in recorded.live.iter().zip(headers).skip(index + 1) {
        let by_header = header
            .and_then(|header| header.predecessor)
            .is_some_and(|predecessor| {
                predecessor.synced && (predecessor.number, predecessor.end) > position
            });
        if by_header {
            return Ok(true);
        }
        let mut reader = LogReader::open(vfs, directory, &wal_name(*later), *later, None)?;
        while reader.next()?.is_some() {}
        if reader.end()?.evidence > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Applies one batch, whose sequence numbers must follow `last_sequence`; returns its last one, and
/// whether any of its entries is still needed.
fn apply_batch(
    payload: &[u8],
    last_sequence: SequenceNumber,
    name: &str,
    base: u64,
    apply: &mut impl FnMut(Entry<'_>) -> Result<bool>,
) -> Result<(SequenceNumber, bool)> {
    let in_file = |error: crate::codec::reader::DecodeError| error.in_file(name, base);
    let mut batch = BatchReader::new(payload).map_err(in_file)?;
    let mut last = last_sequence;
    if last > 0 && batch.sequence() != last + 1 {
        return Err(Error::corruption(
            name,
            base,
            format!("sequence number {} follows {last}", batch.sequence()),
        ));
    }
    let mut is_needed = false;
    while let Some(entry) = batch.next().map_err(in_file)? {
        last = entry.sequence;
        is_needed |= apply(entry)?;
    }
    Ok((last, is_needed))
}
