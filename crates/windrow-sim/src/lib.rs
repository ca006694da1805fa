//! The means to break Windrow: a simulated disk, a runtime without threads, a model of what the
//! database must contain, and stress tests.
//!
//! On the simulated disk a seed fixes everything: the history, the points at which background work runs,
//! what a crash leaves, and the faults. The stress tests `bank`, `kill` and `soak` use threads and the real
//! file system.

#![expect(
    clippy::disallowed_types,
    reason = "the locks of the engine's facade belong to the engine"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by a panic"
)]

pub mod contract;
pub mod disk;
pub mod filtered;
pub mod histories;
pub mod history;
pub mod hostile;
pub mod model;
mod random;
mod runtime;
pub mod session;
pub mod settings;
pub mod stress;

pub use disk::{CrashPolicy, Image, SimDisk};
pub use model::Model;
pub use random::{Random, combine};
pub use runtime::SteppedRuntime;
pub use settings::unobserved;
