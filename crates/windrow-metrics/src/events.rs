//! The events of a database, as counts and times.
//!
//! Concurrency: many threads call the listener at once. It has no state; the recorder counts.

use metrics::{Key, Label, Recorder, Unit, with_recorder};
use windrow::{Event, EventListener, EventValue};

use crate::METADATA;
use crate::labels::OwnLabels;

const EVENTS: &str = "windrow_events_total";
const TIMES: &str = "windrow_event_seconds";

/// The fields that are labels: those that are labels of statistics. Others, such as errors and names of files, have ever new
/// texts, and each would be one more metric for the recorder.
const LABELS: [&str; 5] = ["keyspace", "level", "job", "purpose", "cause"];

/// A listener that passes events on to the recorder of the facade `metrics`:
///
/// - The counter `windrow_events_total` counts the events, with the [name](Event::name) as the label `event`, and the
///   [fields](Event::fields) `keyspace`, `level`, `job`, `purpose` and `cause` as labels.
/// - The histogram `windrow_event_seconds` has the `duration` of those that have one, with the same labels.
///
/// The sums of the other fields are in the statistics. A listener of the program can call
/// [`on_event`](EventListener::on_event) of this one:
///
/// ```
/// use std::sync::Arc;
/// use windrow::{Event, EventListener, Options};
/// use windrow_metrics::EventPublisher;
///
/// let publisher = EventPublisher::new().with_label("database", "shop");
/// let options = Options::default().with_listener(Arc::new(move |event: &Event| {
///     publisher.on_event(event);
///     if let Event::DamageFound { damage, .. } = event {
///         eprintln!("{damage}");
///     }
/// }));
/// ```
#[derive(Debug, Default)]
pub struct EventPublisher {
    labels: OwnLabels,
}

impl EventPublisher {
    /// A listener without labels of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives all events the label `name` with this text. Several databases of a program need one, for example `database`.
    #[must_use]
    pub fn with_label(mut self, name: &str, text: &str) -> Self {
        self.labels.add(name, text);
        self
    }

    /// The labels of `event`.
    fn labels(&self, event: &Event) -> Vec<Label> {
        let fields = event.fields();
        let fields = fields.iter().filter(|(name, _)| LABELS.contains(name));
        let fields: Vec<_> = fields.map(|(name, value)| (*name, plain(value))).collect();
        let fields = fields.iter().map(|(name, text)| (*name, text.as_str()));
        self.labels
            .and([("event", event.name())].into_iter().chain(fields))
    }

    fn pass(&self, event: &Event, recorder: &dyn Recorder) {
        if matches!(event, Event::Opened { .. }) {
            describe(recorder);
        }
        let labels = self.labels(event);
        let key = Key::from_parts(EVENTS, labels.clone());
        recorder.register_counter(&key, &METADATA).increment(1);
        for (_, value) in event.fields() {
            if let EventValue::Time(time) = value {
                let key = Key::from_parts(TIMES, labels.clone());
                let histogram = recorder.register_histogram(&key, &METADATA);
                histogram.record(time.as_secs_f64());
            }
        }
    }
}

impl EventListener for EventPublisher {
    fn on_event(&self, event: &Event) {
        with_recorder(|recorder| self.pass(event, recorder));
    }
}

/// The value without quotes.
fn plain(value: &EventValue<'_>) -> String {
    match value {
        EventValue::Text(text) => (*text).to_owned(),
        other => other.to_string(),
    }
}

fn describe(recorder: &dyn Recorder) {
    let help = "Events of the database.";
    recorder.describe_counter(EVENTS.into(), Some(Unit::Count), help.into());
    let help = "How long it took what these events are the end of.";
    recorder.describe_histogram(TIMES.into(), Some(Unit::Seconds), help.into());
}
