//! Layer 5: open, recovery, commits, scheduling.

mod commit_queue;
