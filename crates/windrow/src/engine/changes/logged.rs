//! A record of the log in the form of an [archive](crate::backup::archive): with values in the place of pointers, and nothing
//! left out that is there. So it has one entry for each sequence number, also those of the hidden keyspace of prepared
//! transactions and of keyspaces that do not exist any more.
//!
//! I1. What a dropped keyspace has taken along is named: a value in a value log, and what the keyspace was.
//!
//! Concurrency: none.

use super::committed::LogRecord;
use super::feed::ChangeFeed;
use super::look::Look;
use crate::backup::archive::RecordsDigest;
use crate::base::{KeyspaceId, PREPARED_KEYSPACE, Result, SequenceNumber};
use crate::codec::reader::DecodeError;
use crate::engine::Engine;
use crate::log::batch::{self, BatchReader, Numbered};
use crate::manifest::{ChangeEvent, Edit, ManifestState, Record};

/// A record of the log.
#[derive(Debug)]
pub(in crate::engine) struct Logged {
    pub(in crate::engine) last: SequenceNumber,
    /// The checksum of the record.
    pub(in crate::engine) record: u64,
    pub(in crate::engine) body: LoggedBody,
    /// The dropped keyspaces of which something is missing here.
    pub(in crate::engine) left_out: Vec<KeyspaceId>,
    /// What the keyspace of prepared transactions is, if the record writes to it, or creates a keyspace with a larger
    /// number: whoever applies the records creates keyspaces in the order of their numbers.
    pub(in crate::engine) prepared: Option<Edit>,
}

#[derive(Debug)]
pub(in crate::engine) enum LoggedBody {
    /// A payload without pointers.
    Batch(Vec<u8>),
    /// The event of a number, and what a new keyspace is. Empty if nothing has the number.
    Number(Edit),
}

impl Engine {
    /// The next record of `feed`, if it is visible.
    ///
    /// # Errors
    /// Those of the feed.
    pub(in crate::engine) fn next_logged(&self, feed: &mut ChangeFeed) -> Result<Option<Logged>> {
        self.next_record(feed, &mut |record, look| {
            self.logged(record, look).map(Some)
        })
    }

    /// The last sequence number and the checksum of the next record of `feed`, if it is visible.
    ///
    /// # Errors
    /// Those of the feed.
    pub(in crate::engine) fn next_record_checksum(
        &self,
        feed: &mut ChangeFeed,
    ) -> Result<Option<(SequenceNumber, u64)>> {
        self.next_record(feed, &mut |record, _| {
            let sum = RecordsDigest::of_record(record.first, record.payload);
            Ok(Some((record.last, sum)))
        })
    }

    fn logged(&self, record: LogRecord<'_>, look: &Look) -> Result<Logged> {
        let in_file = |error: DecodeError| error.in_file(record.name, record.offset);
        let mut unpacked = Vec::new();
        let reader = BatchReader::new(record.payload, record.first, &mut unpacked);
        let mut reader = reader.map_err(in_file)?;
        let mut logged = Logged {
            last: record.last,
            record: RecordsDigest::of_record(record.first, record.payload),
            body: LoggedBody::Number(Edit::default()),
            left_out: Vec::new(),
            prepared: None,
        };
        let mut payload = Vec::new();
        batch::put_count(&mut payload, reader.remaining());
        let keyspaces = self.keyspaces.load_full();
        let prepared = keyspaces.iter().find(|it| *it.name() == PREPARED_KEYSPACE);
        let define = |id| self.catalog.with_state(|state| definition(state, id));
        let define = |id| define(id).map(|records| Edit { records });
        while let Some(entry) = reader.next().map_err(in_file)? {
            if let Some(what) = batch::numbered(&entry) {
                if record.first < record.last {
                    batch::put_number(&mut payload, what);
                    continue;
                }
                if let Some(event) = look.changes.events.get(&entry.sequence) {
                    if let ChangeEvent::Created { keyspace, .. } = event
                        && let Some(prepared) = prepared.filter(|it| it.id() < *keyspace)
                    {
                        logged.prepared = define(prepared.id());
                    }
                    self.describe(entry.sequence, event, &mut logged);
                }
                return Ok(logged);
            }
            let keyspace = keyspaces.iter().find(|it| it.id() == entry.keyspace);
            let is_whole = match keyspace {
                Some(keyspace) => self.put_with_value(keyspace, &entry, &mut payload)?,
                None if entry.log_pointer().is_some() => false,
                None => {
                    let (kind, key, value) = (entry.kind, entry.key, entry.value);
                    batch::put_entry(&mut payload, entry.keyspace, kind, key, value);
                    true
                }
            };
            if !is_whole {
                batch::put_number(&mut payload, Numbered::Keyspaces);
                logged.leave_out(entry.keyspace);
            }
            if logged.prepared.is_none()
                && let Some(prepared) = prepared.filter(|it| it.id() == entry.keyspace)
            {
                logged.prepared = define(prepared.id());
            }
        }
        logged.body = LoggedBody::Batch(payload);
        Ok(logged)
    }

    /// Notes the event with the number `sequence`.
    fn describe(&self, sequence: SequenceNumber, event: &ChangeEvent, logged: &mut Logged) {
        let mut records = vec![Record::ChangeEvent {
            sequence,
            event: event.clone(),
        }];
        if let ChangeEvent::Created { keyspace, name } = event {
            match self
                .catalog
                .with_state(|state| definition(state, *keyspace))
            {
                None => logged.leave_out(*keyspace),
                Some(mut defined) => {
                    // It may have another name today.
                    for record in &mut defined {
                        if let Record::CreateKeyspace { name: today, .. } = record {
                            today.clone_from(name);
                        }
                    }
                    records.extend(defined);
                }
            }
        }
        logged.body = LoggedBody::Number(Edit { records });
    }
}

impl Logged {
    fn leave_out(&mut self, keyspace: KeyspaceId) {
        if !self.left_out.contains(&keyspace) {
            self.left_out.push(keyspace);
        }
    }
}

/// The records that make an empty keyspace with the options of keyspace `id`; `None` if that was dropped.
fn definition(state: &ManifestState, id: KeyspaceId) -> Option<Vec<Record>> {
    let keyspace = state.keyspaces.get(&id)?;
    let name = keyspace.name.clone();
    let options = keyspace.options.clone();
    let mut records = vec![
        Record::CreateKeyspace { id, name },
        Record::KeyspaceOptions {
            keyspace: id,
            options,
        },
    ];
    let operator = keyspace.merge_operator.clone();
    records.extend(operator.map(|name| Record::MergeOperator { keyspace: id, name }));
    Some(records)
}
