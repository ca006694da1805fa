//! Scenarios on the simulated disk. Each module examines one part of the engine.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![cfg_attr(
    not(shuttle),
    expect(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "the tests' own threads, listeners and observers need no model"
    )
)]

mod appends;
mod archives;
mod backups;
mod changes;
mod checkpoint;
mod closing;
mod common;
mod compaction_filters;
mod damaged_files;
mod dropping;
mod filters;
mod full_disk;
mod hooked_disk;
mod ingestion;
#[cfg(not(any(loom, shuttle)))]
mod interleavings;
mod job_log;
mod lifetime;
mod live_options;
mod mapped_reads;
mod no_space;
mod opens;
mod options;
mod page_cache;
mod points;
mod poisoning;
mod read_folds;
mod read_only;
mod repair;
mod replicas;
mod scrubs;
mod secondaries;
mod small_files;
mod stalls;
mod up_to_damage;
mod value_logs;
