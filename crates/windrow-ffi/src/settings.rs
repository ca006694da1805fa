//! Options by their names, for languages that pass them as names and values.
//!
//! The two lists below have all options, each once. The names are those of the fields of [`Options`] and [`KeyspaceOptions`], durations are seconds, and choices are words.
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

impl<'a> Setting<'a> {
    /// The value that a text stands for: `true` or `false`, a number, or else a word.
    pub fn of_text(text: &'a str) -> Self {
        if let Ok(flag) = text.parse() {
            return Self::Flag(flag);
        }
        if let Ok(number) = text.parse() {
            return Self::Whole(number);
        }
        text.parse().map_or(Self::Word(text), Self::Real)
    }

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
    Setting::Word(name).choice(&DURABILITIES)
}

const DURABILITIES: [(&str, Durability); 2] = [
    ("buffered", Durability::Buffered),
    ("sync", Durability::Sync),
];

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

/// An option: its name, and what sets it.
type Setter<T> = (&'static str, fn(&mut T, Setting<'_>) -> Result<()>);

/// A list of options, each with its name, the field and what the field gets.
macro_rules! options {
    (|$options:ident: $type:ty, $value:ident| $($name:literal: $($field:ident).+ = $content:expr,)*) => {
        &[$((
            $name,
            |$options: &mut $type, $value: Setting<'_>| {
                $options.$($field).+ = $content;
                Ok(())
            },
        ),)*]
    };
}

/// All options of databases that are a value.
const OF_DATABASES: &[Setter<Options>] = options! { |options: Options, value|
    "create_if_missing": create_if_missing = value.flag()?,
    "error_if_exists": error_if_exists = value.flag()?,
    "durability": durability = value.choice(&DURABILITIES)?,
    "log": log = value.flag()?,
    "recovery": recovery = value.choice(&[
        ("strict", Recovery::Strict),
        ("up-to-damage", Recovery::UpToDamage),
    ])?,
    "block_source": block_source = value.choice(&[
        ("mapped", BlockSource::Mapped),
        ("buffered", BlockSource::Buffered),
    ])?,
    "lock_timeout": lock_timeout = value.duration()?,
    "cache_bytes": cache_bytes = value.whole()?,
    "max_wal_bytes": max_wal_bytes = value.whole()?,
    "background_threads": background_threads = value.size()?,
    "open_files_max": open_files_max = value.size()?,
    "compaction_bytes_per_second": compaction_bytes_per_second = value.whole()?,
    "memory_budget": memory_budget = value.whole()?,
    "reserve_bytes": reserve_bytes = value.whole()?,
    "change_retention_bytes": change_retention.bytes = value.whole()?,
    "change_retention_idle": change_retention.idle = value.duration()?,
    "scrub_interval": scrub_interval = value.duration()?,
    "full_scrub_interval": full_scrub_interval = value.duration()?,
    "job_log_bytes": job_log_bytes = value.whole()?,
    "status_interval": status_interval = value.duration()?,
    "latency_interval": latency_interval = u32::try_from(value.whole()?).unwrap_or(u32::MAX),
};

/// All options of keyspaces.
const OF_KEYSPACES: &[Setter<KeyspaceOptions>] = options! { |options: KeyspaceOptions, value|
    "memtable_bytes": memtable_bytes = value.size()?,
    "size_ratio": size_ratio = value.real()?,
    "scaling": scaling = value.real()?,
    "base_bytes": base_bytes = value.whole()?,
    "file_bytes": file_bytes = value.whole()?,
    "block_bytes": block_bytes = value.size()?,
    "bits_per_key": bits_per_key = value.real()?,
    "filter_allocation": filter_allocation = value.choice(&[
        ("monkey", FilterAllocation::Monkey),
        ("uniform", FilterAllocation::Uniform),
    ])?,
    "compression": compression = value.choice(&[
        ("none", Compression::None),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ])?,
    "level0_runs": level0_runs = value.size()?,
    "segment_limit": segment_limit = match value {
        Setting::Word("scaled") => SegmentLimit::Scaled,
        _ => SegmentLimit::Fixed(value.size()?),
    },
    "max_space_amp": max_space_amp = value.real()?,
    "medium_from": medium_from = value.threshold()?,
    "large_from": large_from = value.threshold()?,
    "medium_in_place": medium_in_place = value.choice(&[
        ("last", MediumInPlace::LastLevel),
        ("before-last", MediumInPlace::LevelBeforeLast),
        ("never", MediumInPlace::Never),
    ])?,
    "medium_order": medium_order = value.choice(&[
        ("sorted", MediumOrder::Sorted),
        ("written", MediumOrder::Written),
    ])?,
    "default_ttl": default_ttl = Some(value.duration()?),
};

/// The names of all options of databases.
pub fn names() -> impl Iterator<Item = &'static str> {
    OF_DATABASES.iter().map(|(name, _)| *name)
}

/// The names of all options of keyspaces.
pub fn names_of_keyspace() -> impl Iterator<Item = &'static str> {
    OF_KEYSPACES.iter().map(|(name, _)| *name)
}

/// Sets the option `name` of a database.
///
/// # Errors
/// `InvalidArgument` if there is no such option, or it has no such values. The open checks the rest.
pub fn set(options: &mut Options, name: &str, value: Setting<'_>) -> Result<()> {
    set_one(OF_DATABASES, options, name, value)
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
    set_one(OF_KEYSPACES, options, name, value)
}

fn set_one<T>(all: &[Setter<T>], options: &mut T, name: &str, value: Setting<'_>) -> Result<()> {
    let found = all.iter().find(|(of, _)| *of == name);
    let set = found.map_or_else(
        || Err(Error::invalid_argument("there is no such option")),
        |(_, set)| set(options, value),
    );
    set.map_err(|error| error.context(name))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windrow::{Compression, Durability, ErrorKind, KeyspaceOptions, Options, SegmentLimit};

    use super::{Setting, names, names_of_keyspace, preset, set, set_of_keyspace};

    /// The names of the fields in the text of a debugger: those that are indented once.
    fn fields(text: &str) -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
        let lines = lines.filter(|line| !line.starts_with([' ', '}', ']', ')']));
        lines
            .filter_map(|line| Some(line.split_once(':')?.0))
            .collect()
    }

    #[test]
    fn each_field_has_its_option() {
        // Those with objects in them have functions of their own.
        let objects = [
            "keyspace",
            "vfs",
            "runtime",
            "listener",
            "merge_operators",
            "compaction_filters",
        ];
        let text = format!("{:#?}", Options::default());
        let mut expected: Vec<_> = fields(&text)
            .into_iter()
            .filter(|name| !objects.contains(name))
            .collect();
        assert_eq!(
            expected
                .iter()
                .filter(|name| **name == "change_retention")
                .count(),
            1
        );
        expected.retain(|name| *name != "change_retention");
        expected.extend(["change_retention_bytes", "change_retention_idle"]);
        expected.sort_unstable();
        let mut found: Vec<_> = names().collect();
        found.sort_unstable();
        assert_eq!(found, expected);

        let text = format!("{:#?}", KeyspaceOptions::default());
        let mut expected = fields(&text);
        expected.sort_unstable();
        let mut found: Vec<_> = names_of_keyspace().collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_text_is_the_value_it_looks_like() {
        for (text, value) in [
            ("true", Setting::Flag(true)),
            ("0", Setting::Whole(0)),
            ("0.5", Setting::Real(0.5)),
            ("-1", Setting::Real(-1.0)),
            ("inf", Setting::Real(f64::INFINITY)),
            ("never", Setting::Word("never")),
            ("", Setting::Word("")),
        ] {
            assert_eq!(Setting::of_text(text), value);
        }
    }

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
