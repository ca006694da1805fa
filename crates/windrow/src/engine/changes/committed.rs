//! A batch of the log as users have written it: with values in the place of pointers, and without what is not theirs.
//!
//! Left out are the entries of keyspaces that do not exist any more, as a drop removes its part of earlier batches, and
//! those of the hidden keyspace of prepared transactions, whose commit is a batch of its own.
//!
//! Concurrency: none.

use std::sync::Arc;

use super::look::Look;
use crate::base::expiry::EXPIRY_BYTES;
use crate::base::{Error, ErrorKind, KeyspaceId, Kind, Result, SequenceNumber};
use crate::engine::{Engine, KeyspaceCore};
use crate::log::batch::{self, BatchReader, Entry, Numbered};
use crate::manifest::ChangeEvent;

/// One batch, or several that were committed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommittedBatch {
    /// The sequence numbers of its first and its last write, also if these are left out.
    pub(crate) first: SequenceNumber,
    pub(crate) last: SequenceNumber,
    pub(crate) count: u32,
    /// As in the log. No value is a pointer.
    pub(crate) entries: Vec<u8>,
    /// The keyspaces, each once, with the names that they had then.
    pub(crate) names: Vec<(KeyspaceId, Arc<str>)>,
}

/// What a feed gives out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommittedChange {
    Batch(CommittedBatch),
    Created(SequenceNumber, String),
    Dropped(SequenceNumber, String),
    Renamed {
        sequence: SequenceNumber,
        from: String,
        to: String,
    },
    /// The names of the keyspaces; none if they are not known.
    TablesAdded(SequenceNumber, Vec<String>),
}

/// A record of the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogRecord<'a> {
    pub(super) payload: &'a [u8],
    pub(super) first: SequenceNumber,
    pub(super) last: SequenceNumber,
    /// The log, and the offset of the payload in it.
    pub(super) name: &'a str,
    pub(super) offset: u64,
}

impl Engine {
    /// The change that `record` is; `None` if nothing of it is left.
    pub(super) fn committed(
        &self,
        record: LogRecord<'_>,
        look: &mut Look,
    ) -> Result<Option<CommittedChange>> {
        let in_file =
            |error: crate::codec::reader::DecodeError| error.in_file(record.name, record.offset);
        let mut unpacked = Vec::new();
        let reader = BatchReader::new(record.payload, record.first, &mut unpacked);
        let mut reader = reader.map_err(in_file)?;
        let mut change = CommittedBatch {
            first: record.first,
            last: record.last,
            count: 0,
            entries: Vec::new(),
            names: Vec::new(),
        };
        let names = look.names_at(record.last);
        while let Some(entry) = reader.next().map_err(in_file)? {
            if let Some(what) = batch::numbered(&entry) {
                if record.first == record.last {
                    return numbered(what, entry.sequence, look);
                }
                // A restore has put it in the place of an entry that was lost with its keyspace.
                continue;
            }
            if let Some(name) = names.get(&entry.keyspace)
                && self.put_committed(&entry, &mut change.entries)?
            {
                change.count += 1;
                if !change.names.iter().any(|(id, _)| *id == entry.keyspace) {
                    change.names.push((entry.keyspace, Arc::from(&**name)));
                }
            }
        }
        Ok((change.count > 0).then_some(CommittedChange::Batch(change)))
    }

    /// Appends `entry` to `entries`, with its value. Returns whether its keyspace exists still.
    fn put_committed(&self, entry: &Entry<'_>, entries: &mut Vec<u8>) -> Result<bool> {
        let keyspaces = self.keyspaces.load();
        match keyspaces.iter().find(|it| it.id() == entry.keyspace) {
            Some(keyspace) => self.put_with_value(keyspace, entry, entries),
            None => Ok(false),
        }
    }

    /// Appends `entry` of `keyspace` to `entries`, with its value. Returns false if the value is gone with the keyspace.
    pub(super) fn put_with_value(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        entry: &Entry<'_>,
        entries: &mut Vec<u8>,
    ) -> Result<bool> {
        let Some(pointer) = entry.log_pointer() else {
            batch::put_entry(entries, entry.keyspace, entry.kind, entry.key, entry.value);
            return Ok(true);
        };
        let state = keyspace.state_full();
        let mut value = Vec::new();
        let read = self
            .value_reader(&state.version)
            .read_into(entry.key, pointer, &mut value);
        match read {
            Ok(()) => {}
            Err(_) if keyspace.is_dropped() => return Ok(false),
            // Nobody holds its value log now, whoever did at the look.
            Err(error)
                if error.kind() == ErrorKind::Corruption && !self.is_held(entry.sequence) =>
            {
                return Err(not_kept(entry.sequence));
            }
            Err(error) => return Err(error),
        }
        let kind = match entry.kind {
            Kind::ExpiringValueLogPointer => {
                value.splice(..0, entry.value[..EXPIRY_BYTES].iter().copied());
                Kind::ExpiringValue
            }
            _ => Kind::Value,
        };
        batch::put_entry(entries, entry.keyspace, kind, entry.key, &value);
        Ok(true)
    }

    /// Whether consumers hold `sequence` at present.
    fn is_held(&self, sequence: SequenceNumber) -> bool {
        let from = self.catalog.with_state(|state| state.changes.held_from());
        from.is_some_and(|from| from <= sequence)
    }
}

/// What has taken `sequence` without entries; `None` if that has failed, or if nothing of it is left. If no consumer holds
/// it, nobody knows.
fn numbered(
    what: Numbered,
    sequence: SequenceNumber,
    look: &mut Look,
) -> Result<Option<CommittedChange>> {
    let names = look.names_at(sequence);
    let Some(event) = look.changes.events.get(&sequence) else {
        return match what {
            _ if look.holds(sequence) => Ok(None),
            Numbered::Tables => Ok(Some(CommittedChange::TablesAdded(sequence, Vec::new()))),
            // A reader that leaves it out would go on with wrong names.
            Numbered::Keyspaces => Err(not_kept(sequence)),
        };
    };
    Ok(Some(match event {
        ChangeEvent::Created { name, .. } => CommittedChange::Created(sequence, name.clone()),
        ChangeEvent::Dropped { name, .. } => CommittedChange::Dropped(sequence, name.clone()),
        ChangeEvent::Renamed { from, to, .. } => CommittedChange::Renamed {
            sequence,
            from: from.clone(),
            to: to.clone(),
        },
        ChangeEvent::TablesAdded(keyspaces) => {
            let names = keyspaces
                .iter()
                .filter_map(|keyspace| names.get(keyspace).cloned());
            let names: Vec<String> = names.collect();
            if names.is_empty() {
                return Ok(None);
            }
            CommittedChange::TablesAdded(sequence, names)
        }
    }))
}

/// The error of a feed whose next change, `sequence`, is gone.
pub(super) fn not_kept(sequence: SequenceNumber) -> Error {
    let message = format!(
        "the change with sequence number {sequence} is not kept any more: copy a snapshot, and go on with the changes \
         behind it"
    );
    Error::new(ErrorKind::FellBehind, message)
}
