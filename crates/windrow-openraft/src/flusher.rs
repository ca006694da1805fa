//! Syncs for appends.
//!
//! Invariants:
//! - I1: A callback is called after a sync that began when its entries were written.
//! - I2: There is one sync at a time. All appends that come meanwhile share the next one.
//!
//! Concurrency: one task of tokio. It ends when the log store is dropped.

use std::io;

use openraft::RaftTypeConfig;
use openraft::storage::LogFlushed;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use windrow::{Db, Error, ErrorKind, Result};

use crate::blocking::blocking;

/// The task that syncs. It lives as long as this.
#[derive(Debug)]
pub(crate) struct Flusher<C: RaftTypeConfig> {
    written: UnboundedSender<Flush<C>>,
}

/// A callback, and the database that has its entries. So a task without work keeps no database open.
struct Flush<C: RaftTypeConfig> {
    db: Db,
    callback: LogFlushed<C>,
}

impl<C: RaftTypeConfig> Flusher<C> {
    /// Starts the task.
    pub(crate) fn start() -> Self {
        let (written, mut waiting) = unbounded_channel::<Flush<C>>();
        tokio::spawn(async move {
            while let Some(Flush { db, callback }) = waiting.recv().await {
                let mut group = vec![callback];
                while let Ok(next) = waiting.try_recv() {
                    group.push(next.callback);
                }
                let synced = blocking(move || db.persist()).await;
                for callback in group {
                    let outcome = synced.as_ref().map(|&()| ());
                    let outcome = outcome.map_err(|error| io::Error::other(error.to_string()));
                    callback.log_io_completed(outcome);
                }
            }
        });
        Self { written }
    }

    /// Calls `callback` when everything is durable that `db` has by now.
    pub(crate) fn flush(&self, db: &Db, callback: LogFlushed<C>) -> Result<()> {
        let db = db.clone();
        let sent = self.written.send(Flush { db, callback });
        sent.map_err(|_| {
            let message = "the task that syncs the log has ended";
            Error::new(ErrorKind::Closed, message)
        })
    }
}
