//! An iteration over copies of entries from both ends, by two cursors that move towards each other.
//!
//! Concurrency: owned by one thread.

use crate::base::{Error, ErrorKind, Result};

/// A key and its value, as copies.
pub type Entry = (Vec<u8>, Vec<u8>);

/// The moves of a cursor.
pub(super) trait Steps {
    fn seek_to_first(&mut self) -> Result<bool>;
    fn seek_to_last(&mut self) -> Result<bool>;
    fn next(&mut self) -> Result<bool>;
    fn prev(&mut self) -> Result<bool>;
    /// The key of the entry; `None` if the cursor is at no entry.
    fn key(&self) -> Option<&[u8]>;
    fn entry(&self) -> Result<Entry>;
}

/// Both ends of an iteration. Each cursor is opened at the first step from its end.
#[derive(Debug)]
pub(super) struct Ends<C> {
    front: Option<C>,
    back: Option<C>,
    /// The error that ended the iteration.
    failed: Option<Error>,
}

impl<C> Default for Ends<C> {
    fn default() -> Self {
        Self {
            front: None,
            back: None,
            failed: None,
        }
    }
}

impl<C: Steps> Ends<C> {
    /// The next entry from the front; `open` opens a cursor over the range.
    pub(super) fn next(&mut self, open: impl FnOnce() -> Result<C>) -> Option<Result<Entry>> {
        self.take(|ends| ends.step_front(open))
    }

    /// The next entry from the back.
    pub(super) fn next_back(&mut self, open: impl FnOnce() -> Result<C>) -> Option<Result<Entry>> {
        self.take(|ends| ends.step_back(open))
    }

    /// Takes `step`, or repeats the error that has ended the iteration. Operands that cannot be folded are an error of
    /// one key, and end nothing.
    fn take(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<Option<Entry>>,
    ) -> Option<Result<Entry>> {
        if let Some(error) = &self.failed {
            return Some(Err(error.duplicate()));
        }
        let entry = step(self);
        let failed = entry.as_ref().err();
        let failed = failed.filter(|error| error.kind() != ErrorKind::Merge);
        self.failed = failed.map(Error::duplicate);
        entry.transpose()
    }

    fn step_front(&mut self, open: impl FnOnce() -> Result<C>) -> Result<Option<Entry>> {
        let found = if let Some(front) = &mut self.front {
            front.next()?
        } else {
            self.front.insert(open()?).seek_to_first()?
        };
        match &self.front {
            Some(front) if found && !self.has_met() => front.entry().map(Some),
            _ => Ok(None),
        }
    }

    fn step_back(&mut self, open: impl FnOnce() -> Result<C>) -> Result<Option<Entry>> {
        let found = if let Some(back) = &mut self.back {
            back.prev()?
        } else {
            self.back.insert(open()?).seek_to_last()?
        };
        match &self.back {
            Some(back) if found && !self.has_met() => back.entry().map(Some),
            _ => Ok(None),
        }
    }

    /// Whether both ends have reached the same entry, so that no entry is left between them.
    fn has_met(&self) -> bool {
        match (&self.front, &self.back) {
            (Some(front), Some(back)) => match (front.key(), back.key()) {
                (Some(front), Some(back)) => front >= back,
                _ => true,
            },
            _ => false,
        }
    }
}
