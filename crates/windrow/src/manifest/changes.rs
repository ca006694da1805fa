//! What the manifest records for consumers of the change feed: their places, the logs that are kept for them alone, and the
//! events that have no entries in a log. Pure.
//!
//! I1. A consumer that has not fallen behind holds every change behind its place: the logs, the value logs that they
//!     point to ([`settled`](ChangeState::settled)), and the events.
//! I2. After each edit, no log and no event is kept that no consumer holds.
//! I3. The sequence numbers of kept logs ascend with the numbers of the files, without an overlap.

use std::collections::BTreeMap;

use crate::base::key::SEQUENCE_MAX;
use crate::base::{FileNumber, KeyspaceId, SequenceNumber};

use super::change_records::{ChangeEvent, ConsumerState, KeptLog};
use super::contradiction::{Contradiction, require};
use super::edit::Record;

/// The part of the manifest's state that serves the change feed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChangeState {
    pub(crate) consumers: BTreeMap<String, ConsumerState>,
    pub(crate) kept_logs: BTreeMap<FileNumber, KeptLog>,
    pub(crate) events: BTreeMap<SequenceNumber, ChangeEvent>,
}

impl ChangeState {
    /// Consumers hold all changes from this sequence number on; `None` if no consumer holds any.
    pub(crate) fn held_from(&self) -> Option<SequenceNumber> {
        let held = self.consumers.values();
        held.filter_map(ConsumerState::holds_from).min()
    }

    /// The newest sequence number whose values nothing but tables needs, if all entries up to `flushed` are in tables.
    pub(crate) fn settled(&self, flushed: SequenceNumber) -> SequenceNumber {
        self.held_from()
            .map_or(flushed, |from| flushed.min(from - 1))
    }

    /// The largest sequence number that it knows to be allocated.
    pub(super) fn last_sequence(&self) -> SequenceNumber {
        let acknowledged = self.consumers.values().map(|it| it.acknowledged);
        let kept = self.kept_logs.values().map(|log| log.last);
        let events = self.events.keys().copied();
        acknowledged.chain(kept).chain(events).max().unwrap_or(0)
    }

    /// The names that keyspaces had after the change `sequence`, if they have `names` now.
    pub(crate) fn names_at(
        &self,
        sequence: SequenceNumber,
        mut names: BTreeMap<KeyspaceId, String>,
    ) -> BTreeMap<KeyspaceId, String> {
        for event in self.events.range(sequence + 1..).rev().map(|it| it.1) {
            if let ChangeEvent::Renamed { keyspace, from, to } = event {
                let other = names
                    .iter()
                    .find(|(id, name)| *id != keyspace && *name == from);
                if let Some(other) = other.map(|(&id, _)| id) {
                    names.insert(other, to.clone());
                }
                if let Some(name) = names.get_mut(keyspace) {
                    name.clone_from(from);
                }
            }
        }
        names
    }

    pub(super) fn set_consumer(
        &mut self,
        name: &str,
        consumer: ConsumerState,
    ) -> Result<(), Contradiction> {
        let known = self.consumers.insert(name.to_owned(), consumer);
        let goes_on = known.is_none_or(|known| {
            known.acknowledged <= consumer.acknowledged && (!known.is_behind || consumer.is_behind)
        });
        require(goes_on, || format!("consumer {name} goes back"))
    }

    pub(super) fn remove_consumer(&mut self, name: &str) -> Result<(), Contradiction> {
        let removed = self.consumers.remove(name);
        require(removed.is_some(), || format!("there is no consumer {name}"))
    }

    pub(super) fn keep_log(
        &mut self,
        number: FileNumber,
        log: KeptLog,
    ) -> Result<(), Contradiction> {
        let before = self.kept_logs.last_key_value();
        let follows =
            before.is_none_or(|(&known, before)| known < number && before.last < log.first);
        require(follows, || {
            format!("kept log {number} does not follow the ones before")
        })?; // I3
        self.kept_logs.insert(number, log);
        Ok(())
    }

    pub(super) fn add_event(
        &mut self,
        sequence: SequenceNumber,
        event: &ChangeEvent,
    ) -> Result<(), Contradiction> {
        let known = self.events.insert(sequence, event.clone());
        require(known.is_none(), || {
            format!("two events have the sequence number {sequence}")
        })
    }

    /// Ends history at `last`: later sequence numbers are used again for other commits. Consumers that have passed it, and
    /// all of them if a change of keyspaces has lost its number, fall behind.
    pub(super) fn cut_behind(&mut self, last: SequenceNumber) {
        let lost_events = !self.events.split_off(&(last + 1)).is_empty();
        for consumer in self.consumers.values_mut() {
            consumer.is_behind |= lost_events || consumer.acknowledged > last;
            consumer.acknowledged = consumer.acknowledged.min(last);
        }
        self.remove_unheld();
    }

    /// Removes what no consumer holds (I2).
    pub(super) fn remove_unheld(&mut self) {
        let from = self.held_from().unwrap_or(SEQUENCE_MAX + 1);
        self.kept_logs.retain(|_, log| log.last >= from);
        self.events = self.events.split_off(&from);
    }

    /// Appends the records that make this state.
    pub(super) fn snapshot(&self, records: &mut Vec<Record>) {
        records.extend(
            self.consumers
                .iter()
                .map(|(name, &state)| Record::Consumer {
                    name: name.clone(),
                    state,
                }),
        );
        records.extend(
            self.kept_logs
                .iter()
                .map(|(&number, &log)| Record::KeepLog { number, log }),
        );
        records.extend(
            self.events
                .iter()
                .map(|(&sequence, event)| Record::ChangeEvent {
                    sequence,
                    event: event.clone(),
                }),
        );
    }
}
