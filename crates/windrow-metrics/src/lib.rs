//! Statistics and events of [Windrow](windrow) for the recorder that a program has installed for the facade [metrics].
//!
//! A [`StatsPublisher`] passes [`Stats`](windrow::Stats) on, under the names of
//! [`to_prometheus`](windrow::Stats::to_prometheus). The program says when: the crate has no thread and no clock. An
//! [`EventPublisher`] is a listener that counts events.
//!
//! ```
//! # fn main() -> windrow::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! use std::sync::Arc;
//! use windrow::{Db, Options};
//! use windrow_metrics::{EventPublisher, StatsPublisher};
//!
//! let options = Options::default().with_listener(Arc::new(EventPublisher::new()));
//! let db = Db::open(folder, options)?;
//! let mut publisher = StatsPublisher::new();
//! // From time to time:
//! publisher.publish(&db.stats());
//! # db.close()
//! # }
//! ```

mod events;
mod labels;
mod stats;

pub use events::EventPublisher;
pub use stats::StatsPublisher;

use metrics::{Level, Metadata};

/// What the recorder learns of the place that a metric comes from.
const METADATA: Metadata<'static> = Metadata::new("windrow", Level::INFO, Some(module_path!()));
