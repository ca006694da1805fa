//! The options of a keyspace as text: a name and a text for each, in the manifest and in options files.
//!
//! The name is that of the field. A number is decimal. A fraction has the shortest form that reads back as the same
//! number. A choice is a lower-case word. A threshold that no size reaches is `never`. See "Manifest" in
//! `docs/format.md`.
//!
//! I1. Recorded options read back as the same options.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use super::{FilterAllocation, KeyspaceOptions, MediumInPlace, MediumOrder, SegmentLimit};
use crate::base::Error;
use crate::codec::Compression;

/// Options by name.
pub(crate) type RecordedOptions = BTreeMap<String, String>;

/// The value of an option as text.
trait Recorded: Sized {
    fn to_text(&self) -> String;

    /// `None` for a text that this version does not write.
    fn from_text(text: &str) -> Option<Self>;
}

macro_rules! recorded_numbers {
    ($($number:ty),*) => {$(
        impl Recorded for $number {
            fn to_text(&self) -> String {
                self.to_string()
            }

            fn from_text(text: &str) -> Option<Self> {
                let number: Self = text.parse().ok()?;
                (number.to_text() == text).then_some(number)
            }
        }
    )*};
}

recorded_numbers!(f64, u64, usize);

/// A choice is one word for each variant.
macro_rules! recorded_words {
    ($($choice:ident: $($variant:ident = $word:literal),*;)*) => {$(
        impl Recorded for $choice {
            fn to_text(&self) -> String {
                match self {
                    $(Self::$variant => $word.to_owned(),)*
                }
            }

            fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    )*};
}

recorded_words! {
    Compression: None = "none", Lz4 = "lz4", Zstd = "zstd";
    FilterAllocation: Monkey = "monkey", Uniform = "uniform";
    MediumInPlace: LastLevel = "last", LevelBeforeLast = "before-last", Never = "never";
    MediumOrder: Sorted = "sorted", Written = "written";
}

impl Recorded for SegmentLimit {
    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Option<Self> {
        let limit: Self = text.parse().ok()?;
        (limit.to_text() == text).then_some(limit)
    }
}

/// The least size of a class of values; `u64::MAX` for never.
#[derive(Clone, Copy)]
struct Threshold(u64);

impl From<u64> for Threshold {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl From<Threshold> for u64 {
    fn from(threshold: Threshold) -> Self {
        threshold.0
    }
}

impl Recorded for Threshold {
    fn to_text(&self) -> String {
        match self.0 {
            u64::MAX => "never".to_owned(),
            bytes => bytes.to_text(),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "never" => Some(Self(u64::MAX)),
            _ => u64::from_text(text)
                .filter(|&bytes| bytes != u64::MAX)
                .map(Self),
        }
    }
}

/// A time in milliseconds; `None` for never.
#[derive(Clone, Copy)]
struct Milliseconds(Option<Duration>);

impl From<Option<Duration>> for Milliseconds {
    fn from(time: Option<Duration>) -> Self {
        Self(time)
    }
}

impl From<Milliseconds> for Option<Duration> {
    fn from(time: Milliseconds) -> Self {
        time.0
    }
}

impl Recorded for Milliseconds {
    fn to_text(&self) -> String {
        let time = self.0.map(|time| time.as_millis());
        time.map_or_else(|| "never".to_owned(), |time| time.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "never" => Some(Self(None)),
            _ => u64::from_text(text).map(|time| Self(Some(Duration::from_millis(time)))),
        }
    }
}

/// Writes both directions from one list of all fields and their types in the record.
macro_rules! recorded_options {
    ($($name:ident: $form:ty),* $(,)?) => {
        impl KeyspaceOptions {
            /// Every option: its name, and its value as the text that a database records.
            pub fn fields(&self) -> Vec<(&'static str, String)> {
                let Self { $($name),* } = self;
                vec![$((stringify!($name), <$form>::from(*$name).to_text())),*]
            }

            /// The recorded options. Unknown names are skipped. An option that is not recorded has its default.
            ///
            /// # Errors
            /// A sentence about the first unknown value.
            pub(crate) fn from_recorded(recorded: &RecordedOptions) -> Result<Self, String> {
                let mut options = Self::default();
                $(
                    if let Some(text) = recorded.get(stringify!($name)) {
                        let form = <$form>::from_text(text).ok_or_else(|| {
                            format!(concat!(stringify!($name), " cannot be \"{}\""), text)
                        })?;
                        options.$name = form.into();
                    }
                )*
                Ok(options)
            }
        }
    };
}

recorded_options!(
    memtable_bytes: usize,
    size_ratio: f64,
    scaling: f64,
    base_bytes: u64,
    file_bytes: u64,
    block_bytes: usize,
    bits_per_key: f64,
    filter_allocation: FilterAllocation,
    max_space_amp: f64,
    compression: Compression,
    level0_runs: usize,
    segment_limit: SegmentLimit,
    medium_from: Threshold,
    large_from: Threshold,
    medium_in_place: MediumInPlace,
    medium_order: MediumOrder,
    default_ttl: Milliseconds,
);

impl KeyspaceOptions {
    /// The names and texts that the manifest records.
    pub(crate) fn to_recorded(&self) -> RecordedOptions {
        let fields = self.fields().into_iter();
        fields.map(|(name, text)| (name.to_owned(), text)).collect()
    }

    /// The text of an options file: a line `name = value` for each option.
    /// [`from_str`](Self::from_str) reads it.
    pub fn to_file(&self) -> String {
        let fields = self.fields().into_iter();
        let lines: Vec<String> = fields
            .map(|(name, text)| format!("{name} = {text}"))
            .collect();
        lines.join("\n") + "\n"
    }
}

impl FromStr for KeyspaceOptions {
    type Err = Error;

    /// Reads an options file: lines `name = value`. Empty lines and lines that begin with `#` are skipped. An option
    /// without a line has its default.
    ///
    /// # Errors
    /// `InvalidArgument` with the number of the first bad line: it has another form, an unknown or repeated name, or
    /// a value of the wrong form. Also `InvalidArgument` for each fault that [`validate`](Self::validate) finds.
    fn from_str(text: &str) -> Result<Self, Error> {
        let known = Self::default().to_recorded();
        let mut named = RecordedOptions::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: String| Error::invalid_argument(format!("line {number}: {what}"));
            let (name, value) = line
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()))
                .ok_or_else(|| wrong(format!("\"{line}\" is not \"name = value\"")))?;
            if !known.contains_key(name) {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let names = names.join(", ");
                return Err(wrong(format!(
                    "there is no option {name}; there are {names}"
                )));
            }
            // A file may say 8.0; the record says 8.
            let value = match value.parse::<f64>() {
                Ok(number) if value.contains('.') => number.to_text(),
                _ => value.to_owned(),
            };
            Self::from_recorded(&RecordedOptions::from([(name.to_owned(), value.clone())]))
                .map_err(wrong)?;
            if named.insert(name.to_owned(), value).is_some() {
                return Err(wrong(format!("{name} is named a second time")));
            }
        }
        let options = Self::from_recorded(&named).map_err(Error::invalid_argument)?;
        options.validate()?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // I1
    #[test]
    fn recorded_options_read_back() {
        let mut options = KeyspaceOptions {
            size_ratio: 2.0 + f64::EPSILON * 4.0,
            scaling: 0.1 + 0.2,
            bits_per_key: 0.0,
            base_bytes: u64::MAX,
            max_space_amp: f64::INFINITY,
            filter_allocation: FilterAllocation::Uniform,
            ..KeyspaceOptions::default()
        };
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            options.compression = compression;
            let recorded = options.to_recorded();
            assert_eq!(
                KeyspaceOptions::from_recorded(&recorded),
                Ok(options.clone())
            );
        }
    }

    // I1
    #[test]
    fn recorded_placement_reads_back() {
        use MediumInPlace::{LastLevel, LevelBeforeLast, Never};
        for (medium_from, large_from) in [(0, 0), (120, 1024), (64, u64::MAX - 1), (7, u64::MAX)] {
            for medium_in_place in [LastLevel, LevelBeforeLast, Never] {
                let options = KeyspaceOptions {
                    medium_from,
                    large_from,
                    medium_in_place,
                    ..KeyspaceOptions::default()
                };
                let recorded = options.to_recorded();
                assert_eq!(KeyspaceOptions::from_recorded(&recorded), Ok(options));
            }
        }
    }

    // I1
    #[test]
    fn a_recorded_time_to_live_reads_back() {
        for milliseconds in [None, Some(1), Some(86_400_000), Some(1 << 48)] {
            let options = KeyspaceOptions {
                default_ttl: milliseconds.map(Duration::from_millis),
                ..KeyspaceOptions::default()
            };
            let recorded = options.to_recorded();
            assert_eq!(
                KeyspaceOptions::from_recorded(&recorded),
                Ok(options.clone())
            );
            options.validate().unwrap_or_else(|error| {
                assert_eq!(milliseconds, Some(1 << 48), "{error}");
            });
        }
        for wrong in [Duration::ZERO, Duration::from_micros(1500), Duration::MAX] {
            let options = KeyspaceOptions {
                default_ttl: Some(wrong),
                ..KeyspaceOptions::default()
            };
            options.validate().unwrap_err();
        }
    }

    #[test]
    fn a_threshold_that_no_size_reaches_is_recorded_as_never() {
        let options = KeyspaceOptions::preset(crate::options::Preset::Leveling);
        let mut recorded = options.to_recorded();
        assert_eq!(recorded["medium_from"], "never");
        assert_eq!(recorded["large_from"], "never");
        for wrong in ["Never", "", "-1", "18446744073709551615"] {
            recorded.insert("large_from".to_owned(), wrong.to_owned());
            KeyspaceOptions::from_recorded(&recorded).unwrap_err();
        }
    }

    #[test]
    fn unknown_names_are_skipped_and_unknown_values_are_not() {
        let mut recorded = RecordedOptions::new();
        recorded.insert("colour".to_owned(), "green".to_owned());
        recorded.insert("level0_runs".to_owned(), "7".to_owned());
        let options = KeyspaceOptions::from_recorded(&recorded).unwrap();
        let expected = KeyspaceOptions {
            level0_runs: 7,
            ..KeyspaceOptions::default()
        };
        assert_eq!(options, expected);
        for wrong in ["", "+7", "07", "7.0", "-1", "seven"] {
            recorded.insert("level0_runs".to_owned(), wrong.to_owned());
            let sentence = KeyspaceOptions::from_recorded(&recorded).unwrap_err();
            assert!(sentence.contains("level0_runs"), "{sentence}");
        }
        recorded.remove("level0_runs");
        recorded.insert("compression".to_owned(), "LZ4".to_owned());
        KeyspaceOptions::from_recorded(&recorded).unwrap_err();
    }

    /// Without a bound on space there is no garbage collection, which is a part of Parallax and of no other paper.
    #[test]
    fn the_presets_of_papers_bound_space_only_to_collect_garbage() {
        use crate::options::Preset::{Autumn, Leveling, Lsma, Parallax};
        for preset in [Autumn, Leveling, Lsma] {
            let options = KeyspaceOptions::preset(preset);
            assert!(options.max_space_amp.is_infinite(), "{preset:?}");
            assert_eq!(options.large_from, u64::MAX, "{preset:?}");
        }
        let default = KeyspaceOptions::default();
        let parallax = KeyspaceOptions::preset(Parallax);
        assert!(
            parallax
                .max_space_amp
                .total_cmp(&default.max_space_amp)
                .is_eq()
        );
        assert_eq!(parallax.large_from, default.large_from);
    }

    #[test]
    fn files_read_back_and_errors_name_the_fault() {
        use crate::options::Preset::{Autumn, Balanced, Leveling, Lsma, Parallax};
        for preset in [Balanced, Autumn, Leveling, Lsma, Parallax] {
            let options = KeyspaceOptions::preset(preset);
            assert_eq!(
                options.to_file().parse::<KeyspaceOptions>().unwrap(),
                options
            );
        }
        let some = "# mine\n\n  size_ratio = 8.0 \nlarge_from=never\nbits_per_key = 7.50";
        let expected = KeyspaceOptions {
            size_ratio: 8.0,
            large_from: u64::MAX,
            bits_per_key: 7.5,
            ..KeyspaceOptions::default()
        };
        assert_eq!(some.parse::<KeyspaceOptions>().unwrap(), expected);
        for (text, sentence) in [
            ("size_ratio", "line 1: \"size_ratio\" is not"),
            (
                "\ncolour = green",
                "line 2: there is no option colour; there are base_bytes",
            ),
            ("scaling = much", "line 1: scaling cannot be \"much\""),
            (
                "level0_runs = 4\nlevel0_runs = 5",
                "line 2: level0_runs is named a second time",
            ),
            (
                "memtable_bytes = 1.5",
                "line 1: memtable_bytes cannot be \"1.5\"",
            ),
            ("scaling = 3", "scaling"),
        ] {
            let error = text.parse::<KeyspaceOptions>().unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(sentence), "{error}");
        }
    }
}
