//! Windrow sim.
