//! The archiving: from the changes behind the consumer's place to stretches in the store.
//!
//! 1. Find the consumer, and compare the changes behind its place with those that the store has already: an archiving may
//!    have ended before its acknowledgement. If the store has other changes there, or lacks some behind its newest backup,
//!    begin a new history.
//! 2. If the store has no backup of the history, or none behind a bulk load, make one.
//! 3. Write the changes as stretches. Acknowledge each when it is durable.
//!
//! I1. What is acknowledged is durable in the store.
//! I2. Every stretch continues the one before it in its history, by the same records.
//! I3. Behind a call, each later state is reached from a backup that exists, as far as the changes are archived.
//!
//! Concurrency: an archiving counts as a running job, so a close waits for it, and ends it early. The store is taken
//! meanwhile. Writers wait for the sync of the log that a change feed needs.

use std::time::Duration;

use super::{Archive, history_of};
use crate::backup::archive::{
    Archived, Histories, Item, Note, RecordsDigest, Stretch, StretchWriter, read,
};
use crate::backup::{ArchiveReport, BackupPhase, BackupStore, Backups, Meter, Objects, StoreInUse};
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, Result, SequenceNumber};
use crate::engine::Engine;
use crate::engine::changes::{ChangeFeed, Logged, LoggedBody};
use crate::manifest::{ChangeEvent, Record};

/// What to do next if the logs behind the end of the archive are damaged.
const NEW_HISTORY: &str =
    "remove the consumer of the archive; the next archiving begins with a backup";

/// What to do next if a history falls behind before its first backup is made.
const HOLD_MORE: &str = "set Options::change_retention higher, or write less while archiving";

/// What comes after a pass over the changes.
enum Next {
    Nothing,
    Backup,
}

impl Engine {
    /// Archives every change that is visible now.
    pub(crate) fn archive(&self, backups: &Backups) -> Result<ArchiveReport> {
        self.check_writable()?;
        self.check_logged()?;
        self.check_may_wait()?;
        let mut report = ArchiveReport::default();
        let (mut end, mut is_behind) = (None, false);
        // The first backup of a history, and one behind a bulk load.
        for _ in 0..=2 {
            match self.pass_over_changes(backups, &mut end, &mut report)? {
                Next::Nothing => return Ok(report),
                Next::Backup => {
                    report.backup = Some(self.back_up(backups)?);
                    is_behind |= self.is_archive_behind();
                }
            }
        }
        if is_behind || self.is_archive_behind() {
            let message =
                "more was written while a backup was made than a consumer of changes may hold";
            let error = Error::new(ErrorKind::FellBehind, message);
            return Err(error.with_next_step(HOLD_MORE));
        }
        let message = "the changes behind the end of the archive cannot be read from the logs";
        let error = Error::new(ErrorKind::Corruption, message);
        Err(error.with_next_step(NEW_HISTORY))
    }

    fn is_archive_behind(&self) -> bool {
        let consumers = self.consumers();
        consumers
            .iter()
            .any(|consumer| consumer.is_behind && history_of(&consumer.name).is_some())
    }

    fn pass_over_changes(
        &self,
        backups: &Backups,
        end: &mut Option<SequenceNumber>,
        report: &mut ArchiveReport,
    ) -> Result<Next> {
        let store = backups.take();
        let running = self.signal.begin_job().ok_or_else(Error::closed)?;
        let wanted = || self.check_cancelled();
        let passed = self.archive_to(&store, store.meter(&wanted), end, report);
        running.end_unchanged();
        passed
    }

    fn archive_to(
        &self,
        store: &StoreInUse<'_>,
        mut meter: Meter<'_>,
        end: &mut Option<SequenceNumber>,
        report: &mut ArchiveReport,
    ) -> Result<Next> {
        let objects = Objects::list(store.store)?;
        let (history, mut feed, backup) = self.continued(store, &objects)?;
        report.sequence = feed.position() - 1;
        let Some(backup) = backup else {
            return Ok(Next::Backup);
        };
        // Later changes are of the next call, so that this one ends.
        let end = *end.get_or_insert_with(|| self.visible.load(Ordering::Acquire));
        let moment = store.runtime().unix_time();
        meter.begin(BackupPhase::Archiving, 0);
        let mut run = Run {
            engine: self,
            store: store.store,
            history,
            moment,
            writer: None,
            has_prepared: false,
            report,
        };
        while feed.position() <= end {
            let first = feed.position();
            let Some(logged) = self.next_logged(&mut feed)? else {
                break;
            };
            if logged.adds_tables() && logged.last > backup {
                // I3. The stretch ends before them, and the backup has them.
                run.end_stretch()?;
                return Ok(Next::Backup);
            }
            run.add(first, logged, &mut meter)?;
        }
        run.end_stretch()?;
        Ok(Next::Nothing)
    }

    /// The history that goes on in `store`, the changes behind what that has, and the newest backup there.
    fn continued(
        &self,
        store: &StoreInUse<'_>,
        objects: &Objects,
    ) -> Result<(u128, ChangeFeed, Option<SequenceNumber>)> {
        let known = self
            .catalog
            .with_state(|state| Archive::find(&state.changes));
        if let Some(archive) = known {
            let archived = Archived::find(store.store, objects, archive.history);
            if let Some(feed) = self.continuation(archive, archived, store, objects)? {
                return Ok((archive.history, feed, archived.backup));
            }
        }
        for name in self.consumers().into_iter().map(|consumer| consumer.name) {
            if history_of(&name).is_some() {
                self.remove_consumer(&name)?;
            }
        }
        let [high, low] = [(); 2].map(|()| self.options.runtime.random());
        let history = (u128::from(high) << 64) | u128::from(low);
        let consumer = Archive::consumer(history);
        self.open_consumer(&consumer)?;
        Ok((history, self.consumer_changes(&consumer)?, None))
    }

    /// The changes behind those that `store` has of `archive`. `None` if it lacks some, or has others. What it has already is
    /// acknowledged with the next stretch: only then it is known to be durable.
    fn continuation(
        &self,
        archive: Archive,
        archived: Archived,
        store: &StoreInUse<'_>,
        objects: &Objects,
    ) -> Result<Option<ChangeFeed>> {
        let Archive { history, place } = archive;
        let has_place = match (archived.end, archived.backup) {
            (Some(end), _) => place <= end,
            (None, Some(backup)) => place <= backup,
            (None, None) => true,
        };
        if !has_place || archived.has_gap {
            return Ok(None);
        }
        let mut feed = match self.consumer_changes(&Archive::consumer(history)) {
            Err(error) if error.kind() == ErrorKind::FellBehind => return Ok(None),
            outcome => outcome?,
        };
        let all = Histories::new(objects);
        for &name in all.of(history).iter().filter(|name| name.last > place) {
            let stretch = read(store.store, name)?;
            // One that lacks a piece is not continued: its changes are in the next backup.
            if stretch.check_whole(objects).is_err() || !self.has_records(&mut feed, &stretch)? {
                return Ok(None);
            }
        }
        Ok(Some(feed))
    }

    /// Whether the next records of `feed` are those of `stretch`. It is behind them then.
    fn has_records(&self, feed: &mut ChangeFeed, stretch: &Stretch) -> Result<bool> {
        let mut digest = RecordsDigest::default();
        if feed.position() != stretch.name.first {
            return Ok(false);
        }
        while feed.position() <= stretch.name.last {
            self.check_cancelled()?;
            let Some((_, record)) = self.next_record_checksum(feed)? else {
                return Ok(false);
            };
            digest.add(record);
        }
        Ok(feed.position() - 1 == stretch.name.last && digest.finish() == stretch.digest)
    }
}

/// Stretches on their way to a store.
struct Run<'a> {
    engine: &'a Engine,
    store: &'a dyn BackupStore,
    history: u128,
    moment: Duration,
    writer: Option<StretchWriter<'a>>,
    /// Whether the stretch says what the keyspace of prepared transactions is.
    has_prepared: bool,
    report: &'a mut ArchiveReport,
}

impl Run<'_> {
    /// Adds a record whose first sequence number is `first`.
    fn add(&mut self, first: SequenceNumber, logged: Logged, meter: &mut Meter<'_>) -> Result<()> {
        let (store, history, moment) = (self.store, self.history, self.moment);
        let writer = self
            .writer
            .get_or_insert_with(|| StretchWriter::new(store, history, first, moment));
        assert_eq!(writer.next(), first, "a stretch has no gap");
        let last = logged.last;
        for keyspace in &logged.left_out {
            writer.leave_out(*keyspace, last);
        }
        if let Some(note) = logged.note() {
            writer.note(note);
        }
        let mut bytes = 0;
        if let Some(prepared) = logged.prepared.filter(|_| !self.has_prepared) {
            bytes += writer.add(&Item::Keyspace(prepared), None)?;
            self.has_prepared = true;
        }
        let record = logged.record;
        bytes += match logged.body {
            LoggedBody::Batch(payload) => writer.add_batch(record, payload, last)?,
            LoggedBody::Number(edit) => writer.add(&Item::Numbered { record, edit }, Some(last))?,
        };
        meter.expect(bytes);
        meter.pass(bytes)?;
        if writer.is_full() {
            self.end_stretch()?;
        }
        Ok(())
    }

    /// Makes what was added durable, then acknowledges it (I1).
    fn end_stretch(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        self.has_prepared = false;
        let (last, bytes) = writer.finish()?;
        self.report.stretches += 1;
        self.report.copied_bytes += bytes;
        self.report.sequence = last;
        let consumer = Archive::consumer(self.history);
        self.engine.acknowledge(&consumer, last)
    }
}

impl Logged {
    fn event(&self) -> Option<&ChangeEvent> {
        match &self.body {
            LoggedBody::Batch(_) => None,
            LoggedBody::Number(edit) => edit.records.iter().find_map(|record| match record {
                Record::ChangeEvent { event, .. } => Some(event),
                _ => None,
            }),
        }
    }

    fn adds_tables(&self) -> bool {
        matches!(self.event(), Some(ChangeEvent::TablesAdded(_)))
    }

    fn note(&self) -> Option<Note> {
        match self.event()? {
            ChangeEvent::TablesAdded(_) => Some(Note::TablesAdded(self.last)),
            ChangeEvent::Dropped { keyspace, .. } => Some(Note::Dropped {
                keyspace: *keyspace,
                sequence: self.last,
            }),
            ChangeEvent::Created { .. } | ChangeEvent::Renamed { .. } => None,
        }
    }
}
