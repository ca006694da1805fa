//! The figures of a page: a picture, its explanation, and its numbers as tables.

mod bars;
mod experiment_plot;
mod figure;
mod latency;
mod levels;
mod overview;
mod series;

pub(super) use bars::{amplification, throughput};
pub(super) use experiment_plot::experiment_plot;
pub(super) use figure::{Figure, Table, write_command};
pub(super) use latency::{latency, latency_by_kind};
pub(super) use levels::levels;
pub(super) use overview::{overview, ratio};
pub(super) use series::series;
