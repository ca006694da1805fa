//! Windrow bench.
