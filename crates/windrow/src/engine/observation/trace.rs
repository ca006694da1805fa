//! Events and jobs for the crate `tracing`, with the target `windrow`.
//!
//! An event has the fields of [`Event::fields`]; a time is in seconds. Each job and each open is a span, and what happens in
//! it is within that span. The failure of a job comes after it.
//!
//! Concurrency: a span is entered on the thread of its job.

use std::path::Path;

use tracing::span::EnteredSpan;
use tracing::{Level, info_span};

use crate::events::{Event, EventValue};

/// Emits an event with the fields that any event has; those that this one lacks are empty.
macro_rules! emit {
    ($level:expr, $event:expr, texts: $($text:ident)*, numbers: $($number:ident)*) => {{
        let fields = $event.fields();
        let of = |wanted: &str| fields.iter().find(|(name, _)| *name == wanted).map(|(_, it)| *it);
        tracing::event!(
            target: "windrow",
            $level,
            event = $event.name(),
            $($text = of(stringify!($text)).and_then(text),)*
            $($number = of(stringify!($number)).and_then(number),)*
            is_new = of("is_new").and_then(flag),
            duration = of("duration").and_then(seconds),
            "{}",
            $event
        );
    }};
    ($level:expr, $event:expr) => {
        emit!($level, $event,
            texts: keyspace purpose job cause consumer error file damage,
            numbers: level files entries entries_dropped entries_judged entries_changed values_dropped
                logs log_bytes bytes bytes_read bytes_written bytes_appended backup last_sequence)
    };
}

/// Passes `event` to the subscriber.
pub(super) fn note(event: &Event) {
    match event {
        Event::JobFailed { .. } | Event::Poisoned { .. } | Event::DamageFound { .. } => {
            emit!(Level::ERROR, event)
        }
        Event::NoSpace | Event::ConsumerFellBehind { .. } | Event::HistoryCut { .. } => {
            emit!(Level::WARN, event)
        }
        Event::StallBegan { .. } | Event::StallEnded { .. } => emit!(Level::DEBUG, event),
        _ => emit!(Level::INFO, event),
    }
}

fn text(value: EventValue<'_>) -> Option<&str> {
    match value {
        EventValue::Text(text) => Some(text),
        _ => None,
    }
}

fn number(value: EventValue<'_>) -> Option<u64> {
    match value {
        EventValue::Number(number) => Some(number),
        _ => None,
    }
}

fn flag(value: EventValue<'_>) -> Option<bool> {
    match value {
        EventValue::Flag(flag) => Some(flag),
        _ => None,
    }
}

fn seconds(value: EventValue<'_>) -> Option<f64> {
    match value {
        EventValue::Time(time) => Some(time.as_secs_f64()),
        _ => None,
    }
}

/// The span of the job that `began` describes.
pub(super) fn job_span(began: &Event) -> Option<EnteredSpan> {
    let span = match began {
        Event::FlushBegan { keyspace, .. } => info_span!(target: "windrow", "flush", keyspace),
        Event::CompactionBegan {
            keyspace,
            level,
            purpose,
            ..
        } => info_span!(target: "windrow", "compaction", keyspace, level, purpose),
        Event::GarbageCollectionBegan { keyspace, .. } => {
            info_span!(target: "windrow", "garbage_collection", keyspace)
        }
        _ => return None,
    };
    Some(span.entered())
}

/// The span of an open, recovery included.
pub(in crate::engine) fn open_span(directory: &Path) -> EnteredSpan {
    info_span!(target: "windrow", "open", path = %directory.display()).entered()
}
