//! A progress bar for each phase of a call for backups.
//!
//! Concurrency: the call moves the bars on its thread.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use windrow::backup::{BackupPhase, BackupProgress, Backups};

use crate::progress;

/// The bar of the present phase.
#[derive(Debug, Clone, Default)]
pub(super) struct Bars(Arc<Mutex<Option<(BackupPhase, ProgressBar)>>>);

impl Bars {
    fn show(&self, progress: BackupProgress) {
        let mut bar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bar
            .as_ref()
            .is_none_or(|(phase, _)| *phase != progress.phase)
            && let Some((_, ended)) = bar.replace((progress.phase, begin(progress)))
        {
            ended.finish_and_clear();
        }
        if let Some((_, bar)) = &*bar {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        }
    }

    /// Removes the last bar.
    pub(super) fn finish(&self) {
        let mut bar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ended)) = bar.take() {
            ended.finish_and_clear();
        }
    }
}

fn begin(progress: BackupProgress) -> ProgressBar {
    let what = match progress.phase {
        BackupPhase::Copying => "copying",
        BackupPhase::Verifying => "verifying",
        BackupPhase::Archiving => "archiving",
        BackupPhase::Applying => "applying",
        _ => "restoring",
    };
    progress::bytes(Some(progress.total), what)
}

/// `backups` whose calls show their progress.
pub(super) fn with_bars(backups: Backups, bars: &Bars) -> Backups {
    let bars = bars.clone();
    backups.with_progress(move |progress| bars.show(progress))
}
