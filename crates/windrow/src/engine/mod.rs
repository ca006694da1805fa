//! Layer 5: open, recovery, commits, scheduling.
