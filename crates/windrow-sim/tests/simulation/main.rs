//! The simulation of loads (`windrow::simulation`) against the engine and against itself.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod engine;
mod large_loads;
mod other_writes;
mod special_writes;
