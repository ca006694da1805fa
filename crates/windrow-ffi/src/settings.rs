//! Options by their names, for languages that pass them as names and values.
//!
//! The names are those of the fields of [`Options`] and [`KeyspaceOptions`], durations are seconds, and choices are words.
//!
//! Concurrency: no state.

use std::time::Duration;

use windrow::{
    BlockSource, Compression, Durability, Error, FilterAllocation, Isolation, KeyspaceOptions,
    MediumInPlace, MediumOrder, Options, Preset, Recovery, Result, SegmentLimit,
};

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Setting<'a> {
    /// Yes or no.
    Flag(bool),
    /// A whole number, for example of bytes.
    Whole(u64),
    /// A number that may have a fraction, for example of seconds.
    Real(f64),
    /// A word, for example `sync`.
    Word(&'a str),
}

impl Setting<'_> {
    fn flag(self) -> Result<bool> {
        match self {
            Self::Flag(flag) => Ok(flag),
            _ => Err(self.unfit("true or false")),
        }
    }

    fn whole(self) -> Result<u64> {
        match self {
            Self::Whole(number) => Ok(number),
            _ => Err(self.unfit("a whole number from 0")),
        }
    }

    fn size(self) -> Result<usize> {
        let number = self.whole()?;
        usize::try_from(number).map_err(|_| self.unfit("a number that this machine can count"))
    }

    fn real(self) -> Result<f64> {
        match self {
            Self::Real(number) => Ok(number),
            Self::Whole(number) => Ok(number as f64),
            _ => Err(self.unfit("a number")),
        }
    }

    fn duration(self) -> Result<Duration> {
        match self {
            Self::Whole(seconds) => Ok(Duration::from_secs(seconds)),
            Self::Real(seconds) => {
                Duration::try_from_secs_f64(seconds).map_err(|_| self.unfit("seconds"))
            }
            _ => Err(self.unfit("seconds")),
        }
    }

    /// The choice whose word this is.
    fn choice<T: Copy>(self, choices: &[(&str, T)]) -> Result<T> {
        let found = choices
            .iter()
            .find(|(word, _)| self == Setting::Word(word))
            .map(|(_, choice)| *choice);
        found.ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            self.unfit(&format!("one of {}", words.join(", ")))
        })
    }

    /// The number from which on a value counts, or `never`.
    fn threshold(self) -> Result<u64> {
        match self {
            Self::Word("never") => Ok(u64::MAX),
            _ => self.whole(),
        }
    }

    fn unfit(self, wanted: &str) -> Error {
        let given = match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Word(word) => format!("\"{word}\""),
        };
        Error::invalid_argument(format!("{given} is not {wanted}"))
    }
}

/// The durability of this name.
///
/// # Errors
/// `InvalidArgument`.
pub fn durability(name: &str) -> Result<Durability> {
    Setting::Word(name).choice(&[
        ("buffered", Durability::Buffered),
        ("sync", Durability::Sync),
    ])
}

/// The isolation of this name.
///
/// # Errors
/// `InvalidArgument`.
pub fn isolation(name: &str) -> Result<Isolation> {
    Setting::Word(name).choice(&[
        ("serializable", Isolation::Serializable),
        ("snapshot", Isolation::Snapshot),
    ])
}

/// The options of keyspaces of this preset.
///
/// # Errors
/// `InvalidArgument`.
pub fn preset(name: &str) -> Result<KeyspaceOptions> {
    let preset = Setting::Word(name).choice(&[
        ("balanced", Preset::Balanced),
        ("leveling", Preset::Leveling),
        ("autumn", Preset::Autumn),
        ("parallax", Preset::Parallax),
        ("lsma", Preset::Lsma),
    ])?;
    Ok(KeyspaceOptions::preset(preset))
}

/// Sets the option `name` of a database.
///
/// # Errors
/// `InvalidArgument` if there is no such option, or it has no such values. The open checks the rest.
pub fn set(options: &mut Options, name: &str, value: Setting<'_>) -> Result<()> {
    let mut set = || {
        match name {
            "create_if_missing" => options.create_if_missing = value.flag()?,
            "error_if_exists" => options.error_if_exists = value.flag()?,
            "durability" => match value {
                Setting::Word(name) => options.durability = durability(name)?,
                _ => return Err(value.unfit("one of buffered, sync")),
            },
            "log" => options.log = value.flag()?,
            "recovery" => {
                options.recovery = value.choice(&[
                    ("strict", Recovery::Strict),
                    ("up-to-damage", Recovery::UpToDamage),
                ])?;
            }
            "block_source" => {
                options.block_source = value.choice(&[
                    ("mapped", BlockSource::Mapped),
                    ("buffered", BlockSource::Buffered),
                ])?;
            }
            "lock_timeout" => options.lock_timeout = value.duration()?,
            "cache_bytes" => options.cache_bytes = value.whole()?,
            "max_wal_bytes" => options.max_wal_bytes = value.whole()?,
            "background_threads" => options.background_threads = value.size()?,
            "open_files_max" => options.open_files_max = value.size()?,
            "compaction_bytes_per_second" => {
                options.compaction_bytes_per_second = value.whole()?;
            }
            "memory_budget" => options.memory_budget = value.whole()?,
            "reserve_bytes" => options.reserve_bytes = value.whole()?,
            "change_retention_bytes" => options.change_retention.bytes = value.whole()?,
            "change_retention_idle" => options.change_retention.idle = value.duration()?,
            "scrub_interval" => options.scrub_interval = value.duration()?,
            "full_scrub_interval" => options.full_scrub_interval = value.duration()?,
            "job_log_bytes" => options.job_log_bytes = value.whole()?,
            "status_interval" => options.status_interval = value.duration()?,
            "latency_interval" => {
                options.latency_interval = u32::try_from(value.whole()?).unwrap_or(u32::MAX);
            }
            _ => return Err(Error::invalid_argument("there is no such option")),
        }
        Ok(())
    };
    set().map_err(|error| error.context(name))
}

/// Sets the option `name` of a keyspace.
///
/// # Errors
/// As [`set`].
pub fn set_of_keyspace(
    options: &mut KeyspaceOptions,
    name: &str,
    value: Setting<'_>,
) -> Result<()> {
    let mut set = || {
        match name {
            "memtable_bytes" => options.memtable_bytes = value.size()?,
            "size_ratio" => options.size_ratio = value.real()?,
            "scaling" => options.scaling = value.real()?,
            "base_bytes" => options.base_bytes = value.whole()?,
            "file_bytes" => options.file_bytes = value.whole()?,
            "block_bytes" => options.block_bytes = value.size()?,
            "bits_per_key" => options.bits_per_key = value.real()?,
            "filter_allocation" => {
                options.filter_allocation = value.choice(&[
                    ("monkey", FilterAllocation::Monkey),
                    ("uniform", FilterAllocation::Uniform),
                ])?;
            }
            "compression" => {
                options.compression = value.choice(&[
                    ("none", Compression::None),
                    ("lz4", Compression::Lz4),
                    ("zstd", Compression::Zstd),
                ])?;
            }
            "level0_runs" => options.level0_runs = value.size()?,
            "segment_limit" => {
                options.segment_limit = match value {
                    Setting::Word("scaled") => SegmentLimit::Scaled,
                    _ => SegmentLimit::Fixed(value.size()?),
                };
            }
            "max_space_amp" => options.max_space_amp = value.real()?,
            "medium_from" => options.medium_from = value.threshold()?,
            "large_from" => options.large_from = value.threshold()?,
            "medium_in_place" => {
                options.medium_in_place = value.choice(&[
                    ("last", MediumInPlace::LastLevel),
                    ("before-last", MediumInPlace::LevelBeforeLast),
                    ("never", MediumInPlace::Never),
                ])?;
            }
            "medium_order" => {
                options.medium_order = value.choice(&[
                    ("sorted", MediumOrder::Sorted),
                    ("written", MediumOrder::Written),
                ])?;
            }
            "default_ttl" => options.default_ttl = Some(value.duration()?),
            _ => {
                return Err(Error::invalid_argument(
                    "there is no such option of keyspaces",
                ));
            }
        }
        Ok(())
    };
    set().map_err(|error| error.context(name))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windrow::{Compression, Durability, ErrorKind, KeyspaceOptions, Options, SegmentLimit};

    use super::{Setting, preset, set, set_of_keyspace};

    #[test]
    fn options_are_set_by_their_names() {
        let mut options = Options::default();
        for (name, value) in [
            ("durability", Setting::Word("sync")),
            ("lock_timeout", Setting::Real(0.25)),
            ("memory_budget", Setting::Whole(64 << 20)),
            ("create_if_missing", Setting::Flag(false)),
            ("change_retention_bytes", Setting::Whole(5)),
            ("change_retention_idle", Setting::Whole(60)),
        ] {
            set(&mut options, name, value).unwrap();
        }
        assert_eq!(options.durability, Durability::Sync);
        assert_eq!(options.lock_timeout, Duration::from_millis(250));
        assert_eq!(options.memory_budget, 64 << 20);
        assert!(!options.create_if_missing);
        assert_eq!(options.change_retention.bytes, 5);
        assert_eq!(options.change_retention.idle, Duration::from_mins(1));

        let mut options = preset("leveling").unwrap();
        for (name, value) in [
            ("compression", Setting::Word("lz4")),
            ("segment_limit", Setting::Whole(3)),
            ("large_from", Setting::Word("never")),
            ("max_space_amp", Setting::Whole(2)),
            ("default_ttl", Setting::Whole(60)),
        ] {
            set_of_keyspace(&mut options, name, value).unwrap();
        }
        assert_eq!(options.compression, Compression::Lz4);
        assert_eq!(options.segment_limit, SegmentLimit::Fixed(3));
        assert_eq!(options.large_from, u64::MAX);
        assert!((options.max_space_amp - 2.0).abs() < f64::EPSILON);
        assert_eq!(options.default_ttl, Some(Duration::from_mins(1)));
    }

    #[test]
    fn a_wrong_setting_is_an_error_that_names_the_option() {
        for (name, value, message) in [
            (
                "durability",
                Setting::Word("never"),
                "durability: \"never\" is not one of buffered, sync",
            ),
            (
                "durability",
                Setting::Flag(true),
                "durability: true is not one of buffered, sync",
            ),
            (
                "lock_timeout",
                Setting::Real(-1.0),
                "lock_timeout: -1 is not seconds",
            ),
            (
                "cache_bytes",
                Setting::Real(1.5),
                "cache_bytes: 1.5 is not a whole number from 0",
            ),
            (
                "colour",
                Setting::Flag(true),
                "colour: there is no such option",
            ),
        ] {
            let error = set(&mut Options::default(), name, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert_eq!(error.to_string(), message);
        }
        let mut options = KeyspaceOptions::default();
        for value in [Setting::Flag(true), Setting::Word("brotli")] {
            let error = set_of_keyspace(&mut options, "compression", value).unwrap_err();
            assert!(error.to_string().ends_with("one of none, lz4, zstd"));
        }
        assert_eq!(options, KeyspaceOptions::default());
        assert!(preset("fast").is_err());
    }
}
