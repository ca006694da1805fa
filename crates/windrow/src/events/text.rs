//! Events as names and fields, and as text.
//!
//! The name of an event and those of its fields are those of the enumeration, so that the text, the serialised form, and
//! what `tracing` gets agree.
//!
//! Concurrency: none; no state.

use std::fmt;

use super::{Event, EventValue};

/// The fields of an event, in their order.
type Fields<'a> = Vec<(&'static str, EventValue<'a>)>;

impl From<u64> for EventValue<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for EventValue<'_> {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<bool> for EventValue<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<std::time::Duration> for EventValue<'_> {
    fn from(time: std::time::Duration) -> Self {
        Self::Time(time)
    }
}

impl<'a> From<&'a str> for EventValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for EventValue<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

/// The fields of these names, whose variables have the same names.
macro_rules! fields {
    ($($name:ident),*) => {
        vec![$((stringify!($name), EventValue::from(*$name))),*]
    };
}

/// The field of a text that may be missing.
fn text<'a>(
    name: &'static str,
    text: Option<&'a String>,
) -> Option<(&'static str, EventValue<'a>)> {
    text.map(|text| (name, EventValue::from(text)))
}

impl Event {
    /// Its name: `flush_ended` for [`FlushEnded`](Self::FlushEnded), for example.
    pub fn name(&self) -> &'static str {
        match self {
            Self::HistoryCut { .. } => "history_cut",
            Self::Opened { .. } => "opened",
            Self::Closed { .. } => "closed",
            Self::FlushBegan { .. } => "flush_began",
            Self::FlushEnded { .. } => "flush_ended",
            Self::CompactionBegan { .. } => "compaction_began",
            Self::CompactionEnded { .. } => "compaction_ended",
            Self::FileMoved { .. } => "file_moved",
            Self::ExpiredFilesDropped { .. } => "expired_files_dropped",
            Self::GarbageCollectionBegan { .. } => "garbage_collection_began",
            Self::GarbageCollectionEnded { .. } => "garbage_collection_ended",
            Self::JobFailed { .. } => "job_failed",
            Self::Poisoned { .. } => "poisoned",
            Self::StallBegan { .. } => "stall_began",
            Self::StallEnded { .. } => "stall_ended",
            Self::ConsumerFellBehind { .. } => "consumer_fell_behind",
            Self::DamageFound { .. } => "damage_found",
            Self::NoSpace => "no_space",
            Self::SpaceResumed => "space_resumed",
        }
    }

    /// Its fields, with their names. A field without a value is left out.
    pub fn fields(&self) -> Vec<(&'static str, EventValue<'_>)> {
        match self {
            Self::HistoryCut {
                damage,
                last_sequence,
            } => vec![
                ("damage", damage.into()),
                ("last_sequence", (*last_sequence).into()),
            ],
            Self::Opened {
                is_new,
                logs,
                log_bytes,
                entries,
                duration,
            } => fields![is_new, logs, log_bytes, entries, duration],
            Self::Closed { error, duration } => {
                let mut all = fields![duration];
                all.extend(text("error", error.as_ref()));
                all
            }
            Self::FlushBegan { keyspace, entries } => of_keyspace(keyspace, fields![entries]),
            Self::FlushEnded {
                keyspace,
                entries,
                entries_dropped,
                bytes_written,
                duration,
            } => {
                let all = fields![entries, entries_dropped, bytes_written, duration];
                of_keyspace(keyspace, all)
            }
            Self::CompactionBegan {
                keyspace,
                level,
                purpose,
                files,
                bytes,
            } => of_keyspace(keyspace, fields![level, purpose, files, bytes]),
            Self::CompactionEnded { keyspace, .. } => of_keyspace(keyspace, self.compaction()),
            Self::FileMoved {
                keyspace,
                level,
                bytes,
            } => of_keyspace(keyspace, fields![level, bytes]),
            Self::ExpiredFilesDropped {
                keyspace,
                level,
                files,
                bytes,
                entries_dropped,
            } => of_keyspace(keyspace, fields![level, files, bytes, entries_dropped]),
            Self::GarbageCollectionBegan {
                keyspace,
                files,
                bytes,
            } => of_keyspace(keyspace, fields![files, bytes]),
            Self::GarbageCollectionEnded {
                keyspace,
                files,
                bytes_read,
                bytes_written,
                values_dropped,
                duration,
            } => {
                let all = fields![files, bytes_read, bytes_written, values_dropped, duration];
                of_keyspace(keyspace, all)
            }
            Self::JobFailed {
                job,
                keyspace,
                error,
            } => {
                let mut all = fields![job];
                all.extend(text("keyspace", keyspace.as_ref()));
                all.extend(text("error", Some(error)));
                all
            }
            Self::Poisoned { error } => vec![("error", error.into())],
            Self::StallBegan { cause } => fields![cause],
            Self::StallEnded { cause, duration } => fields![cause, duration],
            Self::ConsumerFellBehind { consumer } => vec![("consumer", consumer.into())],
            Self::DamageFound {
                file,
                damage,
                backup,
            } => {
                let mut all = vec![("file", file.into()), ("damage", damage.into())];
                all.extend(backup.map(|number| ("backup", number.into())));
                all
            }
            Self::NoSpace | Self::SpaceResumed => Vec::new(),
        }
    }

    /// The fields of a compaction that has ended, without its keyspace.
    fn compaction(&self) -> Fields<'_> {
        let Self::CompactionEnded {
            keyspace: _,
            level,
            bytes_read,
            bytes_written,
            bytes_appended,
            purpose,
            entries_dropped,
            entries_judged,
            entries_changed,
            duration,
        } = self
        else {
            return Vec::new();
        };
        fields![
            level,
            purpose,
            bytes_read,
            bytes_written,
            bytes_appended,
            entries_dropped,
            entries_judged,
            entries_changed,
            duration
        ]
    }
}

/// `others` behind the keyspace.
fn of_keyspace<'a>(keyspace: &'a String, mut others: Fields<'a>) -> Fields<'a> {
    others.insert(0, ("keyspace", keyspace.into()));
    others
}

/// The name, and each field as `name=value`. A text is in quotes and escaped as in JSON. A time is in seconds.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for (name, value) in self.fields() {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for EventValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Time(time) => write!(f, "{:.6}", time.as_secs_f64()),
            Self::Text(text) => write_quoted(f, text),
        }
    }
}

/// Writes `text` in quotes, as a string of JSON.
fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            control if control.is_control() => write!(f, "\\u{:04x}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::time::Duration;

    use super::{Event, EventValue};

    #[test]
    fn an_event_is_a_line_with_its_name_and_fields() {
        let event = Event::FlushEnded {
            keyspace: "a \"b\"\\\n\u{1}\u{85}\u{f6}".to_owned(),
            entries: 7,
            entries_dropped: 0,
            bytes_written: 4096,
            duration: Duration::from_micros(1_500_001),
        };
        let expected = "flush_ended keyspace=\"a \\\"b\\\"\\\\\\n\\u0001\\u0085\u{f6}\" entries=7 \
                        entries_dropped=0 bytes_written=4096 duration=1.500001";
        assert_eq!(event.to_string(), expected);
        assert_eq!(Event::NoSpace.to_string(), "no_space");
        let closed = |error: Option<&str>| Event::Closed {
            error: error.map(str::to_owned),
            duration: Duration::ZERO,
        };
        assert_eq!(closed(None).to_string(), "closed duration=0.000000");
        let failed = closed(Some("no space"));
        assert_eq!(failed.fields()[1], ("error", EventValue::Text("no space")));
    }
}
