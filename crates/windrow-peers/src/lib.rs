//! Peers of Windrow.
