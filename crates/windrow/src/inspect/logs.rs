//! The two kinds of logs, chunk by chunk.

use std::ops::Range;
use std::slice;

use super::tables::{entry, expiring_record, reference};
use super::{File, Record, Report};
use crate::base::{Error, FileNumber, KeyspaceId, Kind, Result, SequenceNumber};
use crate::codec::reader::DecodeError;
use crate::log::batch::BatchReader;
use crate::log::{self, HEADER_BYTES, LogReader, TailAction, WalHeader};
use crate::manifest::{ChangeEvent, Edit, Record as Change};
use crate::table::SegmentMeta;
use crate::value::ValueFileMeta;

/// Shows a write-ahead log up to its last sound chunk. Its recorded length is elsewhere.
pub(super) fn wal(file: &File<'_>, number: FileNumber, report: &mut Report<'_>) -> Result<()> {
    // The next sequence number; unknown behind an unreadable header.
    let mut next = None;
    chunks(file, number, report, |chunk, report| {
        if chunk.offset == 0 {
            next = Some(wal_header(file, chunk, report)?);
            return Ok(());
        }
        match next.take() {
            Some(base) => batch(file, chunk, base, &mut next, report),
            None => report.show(&framed("batch", chunk)),
        }
    })?;
    Ok(())
}

/// Shows a manifest, which may not be the current one.
pub(super) fn manifest(file: &File<'_>, number: FileNumber, report: &mut Report<'_>) -> Result<()> {
    let edits = chunks(file, number, report, |chunk, report| {
        edit(file, chunk, report)
    })?;
    if edits == 0 {
        let missing = Error::corruption(file.name, 0, "the snapshot is missing");
        report.sound::<()>(Err(missing))?;
    }
    Ok(())
}

/// Shows the records and the end of a log; returns the number of records.
fn chunks(
    file: &File<'_>,
    number: FileNumber,
    report: &mut Report<'_>,
    mut show: impl FnMut(&log::Record<'_>, &mut Report<'_>) -> Result<()>,
) -> Result<u64> {
    file.open()?;
    let mut reader = LogReader::open(file.vfs, file.directory, file.name, number, None)?;
    let mut records = 0;
    let mut position = 0;
    while let Some(chunk) = reader.next()? {
        markers(position..chunk.offset, report)?;
        let shown = show(&chunk, report);
        report.sound(shown)?;
        position = chunk.end;
        records += 1;
    }
    let end = reader.end()?;
    markers(position..end.offset, report)?;
    report.show(
        &Record::new("end")
            .number("offset", end.offset)
            .number("synced_up_to", end.evidence)
            .number("bytes_behind", end.file_length - end.offset),
    )?;
    if end.action(false) == TailAction::Corruption {
        let what = "a record that was durable is damaged or missing";
        report.sound::<()>(Err(Error::corruption(file.name, end.offset, what)))?;
    }
    Ok(records)
}

/// Shows the sync markers of `range`. Nothing else is between two records, or behind the last one.
fn markers(range: Range<u64>, report: &mut Report<'_>) -> Result<()> {
    for offset in range.step_by(HEADER_BYTES) {
        report.show(&Record::new("sync_marker").number("offset", offset))?;
    }
    Ok(())
}

/// The error of a payload of `chunk` that cannot be decoded.
fn in_chunk<'a>(
    file: &'a File<'_>,
    chunk: &log::Record<'_>,
) -> impl Fn(DecodeError) -> Error + use<'a> {
    let payload_offset = chunk.payload_offset();
    move |error| error.in_file(file.name, payload_offset)
}

/// Returns the sequence number of the first entry.
fn wal_header(
    file: &File<'_>,
    chunk: &log::Record<'_>,
    report: &mut Report<'_>,
) -> Result<SequenceNumber> {
    let header = WalHeader::decode(chunk.payload).map_err(in_chunk(file, chunk))?;
    let mut record = Record::new("wal_header")
        .number("offset", chunk.offset)
        .number("sequence", header.base);
    if let Some(predecessor) = header.predecessor {
        record = record
            .number("predecessor", predecessor.number.0)
            .number("predecessor_end", predecessor.end)
            .text("synced", if predecessor.synced { "yes" } else { "no" });
    }
    report.show(&record)?;
    Ok(header.base)
}

/// Sets the next sequence number if it is known, even if some entries cannot be read.
fn batch(
    file: &File<'_>,
    chunk: &log::Record<'_>,
    base: SequenceNumber,
    next: &mut Option<SequenceNumber>,
    report: &mut Report<'_>,
) -> Result<()> {
    let in_chunk = in_chunk(file, chunk);
    let mut unpacked = Vec::new();
    let mut batch = BatchReader::new(chunk.payload, base, &mut unpacked).map_err(&in_chunk)?;
    *next = Some(base + u64::from(batch.remaining()));
    report.show(
        &framed("batch", chunk)
            .number("sequence", batch.sequence())
            .number("entries", u64::from(batch.remaining())),
    )?;
    while let Some(found) = batch.next().map_err(&in_chunk)? {
        let mut record = entry(found.kind, found.sequence, found.key, found.value);
        if found.kind == Kind::RangeTombstone {
            record = record.bytes("end", found.value);
        }
        report.show(&keyspace(record, found.keyspace).at_depth(1))?;
    }
    Ok(())
}

/// A record of a log and its place.
fn framed(name: &'static str, chunk: &log::Record<'_>) -> Record<'static> {
    let record = Record::new(name)
        .number("offset", chunk.offset)
        .number("end", chunk.end);
    match chunk.synced_up_to {
        Some(synced) => record.number("synced_up_to", synced),
        None => record,
    }
}

fn edit(file: &File<'_>, chunk: &log::Record<'_>, report: &mut Report<'_>) -> Result<()> {
    let edit = Edit::decode(chunk.payload).map_err(in_chunk(file, chunk))?;
    report.show(&framed("edit", chunk).number("records", edit.records.len() as u64))?;
    changes(&edit, report)
}

/// Shows the records of an edit.
pub(super) fn changes(edit: &Edit, report: &mut Report<'_>) -> Result<()> {
    for record in &edit.records {
        report.show(&change(record).at_depth(1))?;
        match record {
            Change::AddFile { file, .. } => segments(&file.segments, report)?,
            Change::AddSegment { segment, .. } => segments(slice::from_ref(segment), report)?,
            Change::KeyspaceOptions { options, .. } => {
                for (name, text) in options {
                    let option = Record::new("option").at_depth(2);
                    report.show(&option.text("name", name).text("value", text))?;
                }
            }
            Change::Totals(totals) | Change::KeyspaceTotals { totals, .. } => {
                for (counter, total) in totals {
                    let shown = Record::new("total").at_depth(2);
                    report.show(&shown.number("counter", *counter).number("total", *total))?;
                }
            }
            Change::CountReferences { changes, .. } => {
                for change in changes {
                    let [entries, bytes] = [change.entries, change.bytes].map(|it| it.to_string());
                    let shown = Record::new("reference_change").at_depth(2);
                    let shown = shown.number("file", change.file.0);
                    report.show(&shown.text("entries", &entries).text("bytes", &bytes))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn change(record: &Change) -> Record<'_> {
    match record {
        Change::FormatVersion => Record::new("format_version").number("version", 1),
        Change::NextId(id) => Record::new("next_id").number("id", *id),
        Change::CreateKeyspace { id, name } => {
            keyspace(Record::new("create_keyspace"), *id).text("name", name)
        }
        Change::AddFile {
            keyspace: id,
            level,
            file,
        } => keyspace(Record::new("add_file"), *id)
            .number("level", u64::from(*level))
            .number("file", file.number.0)
            .text("sealed", if file.sealed { "yes" } else { "no" })
            .text("external", if file.external { "yes" } else { "no" }),
        Change::RemoveFile {
            keyspace: id,
            level,
            number,
        } => keyspace(Record::new("remove_file"), *id)
            .number("level", u64::from(*level))
            .number("file", number.0),
        Change::AddSegment {
            keyspace: id,
            level,
            number,
            ..
        } => keyspace(Record::new("add_segment"), *id)
            .number("level", u64::from(*level))
            .number("file", number.0),
        Change::AddTransientLog { keyspace: id, file } => {
            value_file(keyspace(Record::new("add_transient_log"), *id), file)
        }
        Change::AddValueLog {
            keyspace: id,
            number,
        } => keyspace(Record::new("add_value_log"), *id).number("file", number.0),
        Change::ValueLogAt { keyspace: id, file } => {
            value_file(keyspace(Record::new("value_log_at"), *id), file)
        }
        Change::SealValueLog {
            keyspace: id,
            file,
            last_sequence,
        } => value_file(keyspace(Record::new("seal_value_log"), *id), file)
            .number("last_sequence", *last_sequence),
        Change::AddGcOutput { keyspace: id, file } => {
            value_file(keyspace(Record::new("add_gc_output"), *id), file)
        }
        Change::Relocate {
            keyspace: id,
            table,
        } => keyspace(Record::new("relocate"), *id)
            .number("origin", table.origin.0)
            .number("origin_bytes", table.origin_bytes)
            .number("gc_output", table.gc_output.0)
            .number("offset", table.offset)
            .number("entries", table.entries),
        Change::AddDiscardList { keyspace: id, list } => {
            keyspace(Record::new("add_discard_list"), *id)
                .number("list", list.number.0)
                .number("length", list.length)
                .number("values", list.counts.values().sum())
        }
        Change::TakeDiscardList {
            keyspace: id,
            list,
            files,
        } => keyspace(Record::new("take_discard_list"), *id)
            .number("list", list.0)
            .number("value_files", files.len() as u64),
        Change::CountReferences {
            keyspace: id,
            changes,
        } => keyspace(Record::new("count_references"), *id)
            .number("value_files", changes.len() as u64),
        Change::LevelCount {
            keyspace: id,
            count,
        } => keyspace(Record::new("level_count"), *id).number("levels", u64::from(*count)),
        Change::Flushed {
            keyspace: id,
            sequence,
        } => keyspace(Record::new("flushed"), *id).number("sequence", *sequence),
        Change::AddLog(number) => Record::new("add_log").number("log", number.0),
        Change::OldestLog(number) => Record::new("oldest_log").number("log", number.0),
        Change::LogEnd { number, offset } => Record::new("log_end")
            .number("log", number.0)
            .number("end", *offset),
        Change::LogSynced { number, offset } => Record::new("log_synced")
            .number("log", number.0)
            .number("up_to", *offset),
        Change::KeyspaceOptions { keyspace: id, .. } => {
            keyspace(Record::new("keyspace_options"), *id)
        }
        Change::MergeOperator { keyspace: id, name } => {
            keyspace(Record::new("merge_operator"), *id).text("name", name)
        }
        Change::ExpiredBy(moment) => Record::new("expired_by").number("unix_milliseconds", *moment),
        Change::Totals(_) => Record::new("totals"),
        Change::KeyspaceTotals { keyspace: id, .. } => {
            keyspace(Record::new("keyspace_totals"), *id)
        }
        Change::DropKeyspace(id) => keyspace(Record::new("drop_keyspace"), *id),
        Change::RenameKeyspace { keyspace: id, name } => {
            keyspace(Record::new("rename_keyspace"), *id).text("name", name)
        }
        Change::Used {
            keyspace: id,
            sequence,
        } => keyspace(Record::new("used"), *id).number("sequence", *sequence),
        Change::Consumer { name, state } => Record::new("consumer")
            .text("name", name)
            .number("acknowledged", state.acknowledged)
            .number("unix_milliseconds", state.moment)
            .text("behind", if state.is_behind { "yes" } else { "no" }),
        Change::RemoveConsumer(name) => Record::new("remove_consumer").text("name", name),
        Change::KeepLog { number, log } => Record::new("keep_log")
            .number("log", number.0)
            .number("length", log.length)
            .number("first_sequence", log.first)
            .number("last_sequence", log.last),
        Change::Unlogged => Record::new("unlogged"),
        Change::ChangeEvent { sequence, event } => change_event(
            Record::new("change_event").number("sequence", *sequence),
            event,
        ),
    }
}

fn change_event<'a>(record: Record<'a>, event: &'a ChangeEvent) -> Record<'a> {
    match event {
        ChangeEvent::Created { keyspace: id, name } => keyspace(record, *id).text("created", name),
        ChangeEvent::Dropped { keyspace: id, name } => keyspace(record, *id).text("dropped", name),
        ChangeEvent::Renamed {
            keyspace: id,
            from,
            to,
        } => keyspace(record, *id).text("from", from).text("to", to),
        ChangeEvent::TablesAdded(keyspaces) => {
            record.number("keyspaces_with_new_tables", keyspaces.len() as u64)
        }
    }
}

fn segments(segments: &[SegmentMeta], report: &mut Report<'_>) -> Result<()> {
    for segment in segments {
        report.show(
            &Record::new("segment")
                .at_depth(2)
                .number("id", segment.id.0)
                .number("offset", segment.offset)
                .number("length", segment.length)
                .number("entries", segment.entries)
                .number("tombstones", segment.tombstones)
                .number("range_tombstones", segment.range_tombstones.into())
                .number("operands", segment.operands)
                .number("hidden_below", segment.hidden_below.into())
                .bytes("smallest", segment.smallest())
                .bytes("largest", segment.largest())
                .number("sequence_min", segment.sequence_min)
                .number("sequence_max", segment.sequence_max)
                .number("logical_bytes", segment.logical_bytes)
                .number("overwrites", segment.overwrites)
                .number("filter_bytes", segment.filter_bytes())
                .number("footer_checksum", u64::from(segment.footer_checksum)),
        )?;
        if let Some(expiring) = &segment.expiring {
            report.show(&expiring_record(expiring).at_depth(3))?;
        }
        for (file, referred) in segment.references.transient() {
            report.show(&reference(file, referred).at_depth(3))?;
        }
        if let Some(logs) = segment.references.logs() {
            report.show(
                &Record::new("log_references")
                    .at_depth(3)
                    .number("entries", logs.sums.referred.entries)
                    .number("bytes", logs.sums.referred.bytes)
                    .number("smallest_file", logs.sums.smallest.0)
                    .number("largest_file", logs.sums.largest.0)
                    .number("generation", logs.generation.0),
            )?;
        }
    }
    Ok(())
}

fn value_file<'a>(record: Record<'a>, file: &ValueFileMeta) -> Record<'a> {
    record
        .number("file", file.number.0)
        .number("length", file.length)
        .number("entries", file.entries)
        .number("value_bytes", file.value_bytes)
}

fn keyspace(record: Record<'_>, id: KeyspaceId) -> Record<'_> {
    record.number("keyspace", u64::from(id.0))
}
