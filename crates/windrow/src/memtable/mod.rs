//! Layer 2: the concurrent sorted map in memory.
