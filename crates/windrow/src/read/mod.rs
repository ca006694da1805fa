//! Layer 4: point reads, merging cursors, visibility.
