//! Named consumers of changes: where they are, and what is kept for them.
//!
//! The place of a consumer is a record of the manifest, and an acknowledgement is one durable edit. It comes after a sync
//! of the logs, so no place is behind the end of what survives a power failure. A lost acknowledgement only lets a consumer
//! see changes again.
//!
//! A log that recovery no longer needs is kept by the same edit that says so, if a consumer holds any of its entries. What
//! is kept is bounded afterwards: a [policy](crate::policy) says which consumers hold too much, and one more edit lets them
//! fall behind. So all edits by which less is held are here, and each of them also gives readers the value files that are
//! left.
//!
//! Concurrency: a consumer is created between two commits and while no keyspace changes. So each keyspace change and each
//! ingestion is either before its place or has an event.

use std::cell::RefCell;
use std::time::Duration;

use super::feed::ChangeFeed;
use super::look::{fell_behind, no_consumer};
use crate::base::expiry::moment_reached;
use crate::base::limits::KEYSPACE_NAME_BYTES_MAX;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, FileNumber, Moment, Result, SequenceNumber};
use crate::engine::Engine;
use crate::events::Event;
use crate::log::batch::Numbered;
use crate::manifest::names::FileName;
use crate::manifest::{ChangeEvent, ConsumerState, ManifestState, Record, ValueFileKind};
use crate::policy::{ConsumerPlace, HeldBytes, falls_behind};
use crate::runtime::Runtime;

/// A consumer of changes, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ConsumerStats {
    /// Its name.
    pub name: String,
    /// It has done with every change up to this sequence number.
    pub acknowledged: SequenceNumber,
    /// Whether it has fallen behind: it holds nothing, and changes behind its place may be gone.
    pub is_behind: bool,
    /// Bytes on disk that it holds and nothing but consumers needs.
    pub held_bytes: u64,
}

impl Engine {
    /// The place of the consumer `name`. A new one begins behind the newest write.
    pub(crate) fn open_consumer(&self, name: &str) -> Result<SequenceNumber> {
        check_name(name)?;
        self.check_open()?;
        self.check_logged()?;
        let creating = self.begin_creating();
        self.check_open()?;
        let known = self.consumer(name);
        let place = match known {
            Some(known) => Ok(known.acknowledged),
            None => self.between_commits(|newest| {
                let state = ConsumerState {
                    acknowledged: newest,
                    moment: self.present(),
                    is_behind: false,
                };
                let name = name.to_owned();
                let records = vec![Record::Consumer { name, state }];
                // It holds nothing yet, so this frees nothing, and has no claim to the reserve.
                self.catalog.commit(|_| records, |_| ())?;
                Ok(state.acknowledged)
            }),
        };
        drop(creating);
        place
    }

    /// The changes behind the place of the consumer `name`.
    pub(crate) fn consumer_changes(&self, name: &str) -> Result<ChangeFeed> {
        let known = self.consumer(name).ok_or_else(|| no_consumer(name))?;
        if known.is_behind {
            return Err(fell_behind(name));
        }
        self.changes(known.acknowledged + 1, Some(name))
    }

    /// Records that the consumer `name` has done with every change up to `sequence`.
    pub(crate) fn acknowledge(&self, name: &str, sequence: SequenceNumber) -> Result<()> {
        self.check_writable()?;
        let newest = self.visible.load(Ordering::Acquire);
        if sequence > newest {
            return Err(Error::invalid_argument(format!(
                "consumer {name} acknowledges sequence number {sequence}: the newest write has {newest}"
            )));
        }
        // The changes may be durable in the consumer's store already: they must not be lost here. What a feed has given out
        // is durable.
        if sequence > self.given_out.load(Ordering::Acquire) {
            self.sync_logs()?;
        }
        let moment = self.present();
        let refused = RefCell::new(None);
        let committed = self.commit_consumers(|manifest| {
            let known = manifest.changes.consumers.get(name);
            match acknowledged(name, known, sequence, moment) {
                Ok(record) => vec![record],
                Err(error) => {
                    *refused.borrow_mut() = Some(error);
                    Vec::new()
                }
            }
        });
        self.note_reserve();
        committed?;
        refused.into_inner().map_or(Ok(()), Err)
    }

    /// Forgets the consumer `name` and what it holds.
    pub(crate) fn remove_consumer(&self, name: &str) -> Result<()> {
        self.check_writable()?;
        self.check_may_wait()?;
        let creating = self.begin_creating();
        if self.consumer(name).is_none() {
            return Err(no_consumer(name));
        }
        let removed = self.commit_consumers(|_| vec![Record::RemoveConsumer(name.to_owned())]);
        drop(creating);
        self.note_reserve();
        removed
    }

    /// All consumers, by name.
    pub(crate) fn consumers(&self) -> Vec<ConsumerStats> {
        self.catalog.with_state(|state| {
            let held = held_bytes(state, self.present());
            let stats = |(name, consumer): (&String, &ConsumerState)| {
                let own = held
                    .iter()
                    .filter(|it| !consumer.is_behind && it.last > consumer.acknowledged);
                ConsumerStats {
                    name: name.clone(),
                    acknowledged: consumer.acknowledged,
                    is_behind: consumer.is_behind,
                    held_bytes: own.map(|it| it.bytes).sum(),
                }
            };
            state.changes.consumers.iter().map(stats).collect()
        })
    }

    /// The place of the consumer `name`.
    pub(crate) fn consumer_place(&self, name: &str) -> Result<SequenceNumber> {
        let known = self.consumer(name).ok_or_else(|| no_consumer(name))?;
        Ok(known.acknowledged)
    }

    fn present(&self) -> Moment {
        present(&*self.options.runtime)
    }

    fn consumer(&self, name: &str) -> Option<ConsumerState> {
        self.catalog
            .with_state(|state| state.changes.consumers.get(name).copied())
    }

    /// The records that make the logs before `first` unnecessary to recovery, and keep those that consumers hold. No log is
    /// kept before it is durable, so one that is not stays with recovery.
    pub(in crate::engine) fn oldest_log_records(
        &self,
        first: FileNumber,
        state: &ManifestState,
    ) -> Vec<Record> {
        let (mut records, mut first) = (Vec::new(), first);
        if let Some(from) = state.changes.held_from() {
            first = first.min(self.chain.first_not_durable().unwrap_or(first));
            if state.logs.first().is_none_or(|&oldest| first <= oldest) {
                return records;
            }
            let logs = self.chain.entries_before(first, from, self.present());
            let logs = logs.into_iter();
            // The edit of another thread may keep a log already, which leaves the chain only afterwards.
            let kept = logs.filter(|(number, _)| state.logs.contains(number));
            let keep = |(number, log)| Record::KeepLog { number, log };
            records.extend(kept.map(keep));
        }
        records.push(Record::OldestLog(first));
        records
    }

    /// Whether a log that recovery does not need stays. After a failed edit the state in memory may be ahead of that on disk,
    /// which may still name the log. So every log of a poisoned database stays: the failure poisons it before the state can be
    /// read.
    pub(in crate::engine) fn is_kept(&self, log: FileNumber) -> bool {
        self.catalog
            .with_state(|state| self.poison.is_set() || state.changes.kept_logs.contains_key(&log))
    }

    /// Lets consumers fall behind that hold too much. An error changes nothing; the next flush tries again.
    pub(in crate::engine) fn bound_consumers(&self) -> Result<()> {
        let now = self.present();
        let is_any = |state: &ManifestState| !self.fallen_behind(state, now).is_empty();
        if !self.catalog.with_state(is_any) {
            return Ok(());
        }
        let names = RefCell::new(Vec::new());
        let bounded = self.commit_consumers(|state| {
            let records = self.fallen_behind(state, now);
            *names.borrow_mut() = records.iter().filter_map(consumer_name).collect();
            records
        });
        self.note_reserve();
        bounded?;
        for consumer in names.into_inner() {
            self.observer
                .notify(|| Event::ConsumerFellBehind { consumer });
        }
        Ok(())
    }

    fn fallen_behind(&self, state: &ManifestState, now: Moment) -> Vec<Record> {
        if state.changes.held_from().is_none() {
            return Vec::new();
        }
        let held = held_bytes(state, now);
        let falls = |consumer: &ConsumerState| {
            let place = ConsumerPlace {
                acknowledged: consumer.acknowledged,
                silent: Duration::from_millis(now.saturating_sub(consumer.moment)),
            };
            !consumer.is_behind && falls_behind(place, &held, self.options.change_retention)
        };
        let consumers = state.changes.consumers.iter();
        let behind = consumers.filter(|(_, consumer)| falls(consumer));
        let record = |(name, &consumer): (&String, &ConsumerState)| Record::Consumer {
            name: name.clone(),
            state: ConsumerState {
                is_behind: true,
                ..consumer
            },
        };
        behind.map(record).collect()
    }

    /// Commits an edit by which consumers hold less, and removes what none of them holds any more. On a full disk it uses the
    /// reserve.
    fn commit_consumers(&self, build: impl Fn(&ManifestState) -> Vec<Record>) -> Result<()> {
        let kept = RefCell::new(Vec::new());
        let build = |state: &ManifestState| {
            *kept.borrow_mut() = state.changes.kept_logs.keys().copied().collect();
            build(state)
        };
        let committed = self.with_reserve(|| {
            self.catalog.commit(build, |state| {
                let logs = &state.changes.kept_logs;
                kept.borrow_mut().retain(|log| !logs.contains_key(log));
                for keyspace in self.keyspaces.load().iter() {
                    if keyspace.state().version.value_sums().logs.logs > 0 {
                        self.set_value_files(keyspace, state);
                    }
                }
            })
        });
        committed?;
        for log in kept.into_inner() {
            self.remove_file(FileName::Wal(log));
        }
        self.remove_obsolete();
        // Garbage that nobody holds may be collected now.
        self.signal.notify();
        Ok(())
    }

    /// Commits `records` of a change of keyspaces, and calls `install`. If consumers hold anything, the change gets a
    /// sequence number, and `event` says there what it was.
    ///
    /// The caller holds `creating`.
    pub(in crate::engine) fn commit_keyspace_change<R>(
        &self,
        mut records: Vec<Record>,
        event: Option<ChangeEvent>,
        install: impl FnOnce(&ManifestState) -> R,
    ) -> Result<R> {
        let held = self.catalog.with_state(|state| state.changes.held_from());
        let Some(event) = event.filter(|_| held.is_some()) else {
            return self.catalog.commit(|_| records, install);
        };
        self.commit_numbered(
            Numbered::Keyspaces,
            |_| Ok(()),
            |(), sequence| {
                records.push(Record::ChangeEvent { sequence, event });
                self.catalog.commit(|_| records, install)
            },
        )
    }
}

/// The moment by the clock of the system. Readers' clock would not go back behind a look at it.
pub(in crate::engine) fn present(runtime: &dyn Runtime) -> Moment {
    moment_reached(runtime.unix_time())
}

fn consumer_name(record: &Record) -> Option<String> {
    match record {
        Record::Consumer { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// The record of an acknowledgement.
fn acknowledged(
    name: &str,
    known: Option<&ConsumerState>,
    sequence: SequenceNumber,
    moment: Moment,
) -> Result<Record> {
    let known = known.ok_or_else(|| no_consumer(name))?;
    if known.is_behind {
        return Err(fell_behind(name));
    }
    Ok(Record::Consumer {
        name: name.to_owned(),
        state: ConsumerState {
            // Of threads that share the consumer, another one may have come first.
            acknowledged: sequence.max(known.acknowledged),
            // Not the latest ever: a clock may have been wrong.
            moment,
            is_behind: false,
        },
    })
}

/// What nothing but consumers needs: logs, and garbage in value logs that entries of these logs point to.
fn held_bytes(state: &ManifestState, now: Moment) -> Vec<HeldBytes> {
    let logs = state.changes.kept_logs.values().map(|log| HeldBytes {
        last: log.last,
        bytes: log.length,
        kept: Duration::from_millis(now.saturating_sub(log.moment)),
    });
    let values = state.keyspaces.values().flat_map(|keyspace| {
        keyspace
            .values
            .files
            .values()
            .filter_map(|it| match it.kind {
                ValueFileKind::SealedLog { last_sequence }
                    if last_sequence <= keyspace.flushed && last_sequence > keyspace.settled =>
                {
                    Some(HeldBytes {
                        last: last_sequence,
                        bytes: it.file.length.saturating_sub(it.referred.bytes),
                        // The logs that point to them are kept as well, now or soon.
                        kept: Duration::ZERO,
                    })
                }
                _ => None,
            })
    });
    logs.chain(values).collect()
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > KEYSPACE_NAME_BYTES_MAX {
        return Err(Error::invalid_argument(format!(
            "a consumer's name has 1 to {KEYSPACE_NAME_BYTES_MAX} bytes, not {}",
            name.len()
        )));
    }
    Ok(())
}
