//! Layer 3: pure functions that decide what to do; no I/O.
