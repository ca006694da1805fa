//! Ctrl-C during a load: the process ends, and says how many entries are stored.
//!
//! I1. The count in the message is exact: a batch that is being written is finished and counted first.
//!
//! Concurrency: the thread of the signal and the load use one count. Each holds the lock of the count
//! while it writes a batch, or ends the process.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use serde_json::Map;
use windrow::{Error, Result};

use crate::outcome::INTERRUPTED;
use crate::output::{complain, show_error_object};
use crate::tables::plural;

/// How many entries are stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Stored(Arc<Mutex<u64>>);

impl Stored {
    /// Runs `write`, and counts `entries` if it succeeds.
    pub(super) fn add(&self, entries: u64, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write()?;
        *stored += entries;
        Ok(())
    }

    pub(super) fn entries(&self) -> u64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process at Ctrl-C from now on.
pub(super) fn catch(stored: &Stored, bar: &ProgressBar, json: bool) -> Result<()> {
    let (stored, bar) = (stored.clone(), bar.clone());
    handle(move || {
        // Held to the end, so that no further batch is written. I1
        let entries = stored.0.lock().unwrap_or_else(PoisonError::into_inner);
        bar.finish_and_clear();
        let stored = plural(*entries, "entry");
        let message = format!("interrupted; {stored} stored, the first ones of the source");
        end(&message, Some(*entries), json);
    })
}

/// The same for a load that is one commit.
pub(super) fn catch_whole(bar: &ProgressBar, json: bool) -> Result<()> {
    let bar = bar.clone();
    handle(move || {
        bar.finish_and_clear();
        // The commit may be under way.
        let message =
            "interrupted before the end of a load that is stored as a whole or not at all";
        end(message, None, json);
    })
}

fn handle(at_interrupt: impl FnMut() + Send + 'static) -> Result<()> {
    ctrlc::set_handler(at_interrupt).map_err(|error| {
        let error = io::Error::other(error);
        Error::io("catch", Path::new("Ctrl-C"), error)
    })
}

/// Says what is stored, and ends the process. The database needs no close: what is acknowledged survives
/// the end of the process.
#[expect(
    clippy::exit,
    reason = "the load may wait for standard input, which nothing else interrupts"
)]
fn end(message: &str, entries: Option<u64>, json: bool) {
    if json {
        let mut fields = Map::new();
        fields.insert("kind".into(), "Interrupted".into());
        fields.insert("message".into(), message.into());
        if let Some(entries) = entries {
            fields.insert("entries".into(), entries.into());
        }
        show_error_object(&fields);
    } else {
        complain(format_args!("windrow: {message}"));
    }
    std::process::exit(INTERRUPTED);
}
