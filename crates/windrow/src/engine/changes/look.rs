//! What a feed knows of the database beside the logs: how far it may read, what keyspaces were called, and whether its
//! consumer still holds what comes next.
//!
//! Concurrency: a look never changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, KeyspaceId, Result, SequenceNumber};
use crate::engine::Engine;
use crate::engine::admin::is_hidden;
use crate::manifest::ChangeState;

/// The names of keyspaces.
pub(super) type Names = BTreeMap<KeyspaceId, String>;

/// What was visible at a moment.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Everything up to here is visible and durable.
    pub(super) through: SequenceNumber,
    /// The keyspaces of users.
    names: Arc<Names>,
    /// The names before an event, and its sequence number: the last ones that were asked for.
    names_before: Option<(SequenceNumber, Arc<Names>)>,
    /// At that moment or later.
    pub(super) changes: ChangeState,
}

impl Look {
    /// The names of keyspaces after the change `sequence`.
    pub(super) fn names_at(&mut self, sequence: SequenceNumber) -> Arc<Names> {
        let mut events = self.changes.events.range(sequence + 1..);
        let Some((&next, _)) = events.next() else {
            return Arc::clone(&self.names);
        };
        match &self.names_before {
            Some((event, names)) if *event == next => Arc::clone(names),
            _ => {
                let names = self.changes.names_at(sequence, Names::clone(&self.names));
                let (_, names) = self.names_before.insert((next, Arc::new(names)));
                Arc::clone(names)
            }
        }
    }

    /// Whether consumers hold `sequence`, with all events from there on.
    pub(super) fn holds(&self, sequence: SequenceNumber) -> bool {
        let from = self.changes.held_from();
        from.is_some_and(|from| from <= sequence)
    }
}

impl Engine {
    /// Looks at what is visible, and makes it durable, for a feed whose next change is `next`.
    ///
    /// # Errors
    /// `FellBehind` or `NotFound` if `consumer`, to which the feed belongs, does not hold all changes from `next` on:
    /// events and names would be missing without a trace. Those of a sync.
    pub(super) fn look_at_changes(
        &self,
        consumer: Option<&str>,
        next: SequenceNumber,
    ) -> Result<Look> {
        // First: the names and events of everything up to here are in the state.
        let through = self.visible.load(Ordering::Acquire);
        self.sync_logs()?;
        self.given_out.fetch_max(through, Ordering::AcqRel);
        self.catalog.with_state(|state| {
            if let Some(consumer) = consumer {
                check_holds(consumer, &state.changes, next)?;
            }
            let names = state.keyspaces.iter();
            let names = names.map(|(&id, keyspace)| (id, keyspace.name.clone()));
            Ok(Look {
                through,
                names: Arc::new(names.filter(|(_, name)| !is_hidden(name)).collect()),
                names_before: None,
                changes: state.changes.clone(),
            })
        })
    }
}

/// Checks that the consumer `name` holds every change from `next` on.
pub(super) fn check_holds(name: &str, changes: &ChangeState, next: SequenceNumber) -> Result<()> {
    let known = changes.consumers.get(name);
    let known = known.ok_or_else(|| no_consumer(name))?;
    if known.is_behind {
        return Err(fell_behind(name));
    }
    if known.acknowledged >= next {
        let message = format!(
            "consumer \"{name}\" has acknowledged everything up to sequence number {}, and these changes are at {next}: take \
             new ones from the consumer",
            known.acknowledged
        );
        return Err(Error::new(ErrorKind::FellBehind, message));
    }
    Ok(())
}

pub(super) fn fell_behind(name: &str) -> Error {
    let message = format!(
        "consumer \"{name}\" has fallen behind, and its next changes are not kept any more: remove it and create it anew, copy \
         a snapshot, and go on with the changes behind it"
    );
    Error::new(ErrorKind::FellBehind, message)
}

pub(super) fn no_consumer(name: &str) -> Error {
    let message = format!("there is no consumer \"{name}\"");
    Error::new(ErrorKind::NotFound, message)
}
