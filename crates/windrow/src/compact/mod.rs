//! Layer 4: the jobs that flush and merge.
