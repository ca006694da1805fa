//! What tries to break Windrow: a simulated disk, a runtime without threads, and a model of what
//! the database must contain.
//!
//! A seed fixes everything: the history, the points where background work runs, what a crash
//! leaves, what goes wrong.

#![expect(
    clippy::disallowed_types,
    reason = "the locks of the engine's facade are the engine's own"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by a panic"
)]

pub mod disk;
pub mod history;
pub mod model;
pub mod programmes;
mod random;
mod runtime;
pub mod session;
pub mod settings;

pub use disk::{CrashPolicy, Image, SimDisk};
pub use model::Model;
pub use random::{Random, combine};
pub use runtime::SteppedRuntime;
