//! Options of a keyspace as the manifest records them: a name and a text for each.
//!
//! A name is that of the field. A number is written in decimal, a fraction in the shortest form that
//! reads back as the same, a choice as a lower-case word. See "Manifest" in `docs/format.md`.
//!
//! I1. What is recorded reads back as the same options.

use std::collections::BTreeMap;

use super::{FilterAllocation, KeyspaceOptions};
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

impl Recorded for Compression {
    fn to_text(&self) -> String {
        let word = match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        };
        word.to_owned()
    }

    fn from_text(text: &str) -> Option<Self> {
        [Self::None, Self::Lz4, Self::Zstd]
            .into_iter()
            .find(|compression| compression.to_text() == text)
    }
}

impl Recorded for FilterAllocation {
    fn to_text(&self) -> String {
        let word = match self {
            Self::Monkey => "monkey",
            Self::Uniform => "uniform",
        };
        word.to_owned()
    }

    fn from_text(text: &str) -> Option<Self> {
        [Self::Monkey, Self::Uniform]
            .into_iter()
            .find(|allocation| allocation.to_text() == text)
    }
}

/// Makes the two directions from one list, which names every field.
macro_rules! recorded_options {
    ($($name:ident),* $(,)?) => {
        impl KeyspaceOptions {
            /// Every option by its name, as text: what a database records of a keyspace.
            pub fn fields(&self) -> Vec<(&'static str, String)> {
                let Self { $($name),* } = self;
                vec![$((stringify!($name), $name.to_text())),*]
            }

            /// The options that were recorded: names that this version does not know are passed
            /// over, and what was not recorded has its default.
            ///
            /// # Errors
            /// A sentence about the first value that this version does not know.
            pub(crate) fn from_recorded(recorded: &RecordedOptions) -> Result<Self, String> {
                let mut options = Self::default();
                $(
                    if let Some(text) = recorded.get(stringify!($name)) {
                        options.$name = Recorded::from_text(text).ok_or_else(|| {
                            format!(concat!(stringify!($name), " cannot be \"{}\""), text)
                        })?;
                    }
                )*
                Ok(options)
            }
        }
    };
}

recorded_options!(
    memtable_bytes,
    size_ratio,
    scaling,
    base_bytes,
    file_bytes,
    block_bytes,
    bits_per_key,
    filter_allocation,
    max_space_amp,
    compression,
    level0_runs,
);

impl KeyspaceOptions {
    /// What the manifest records of these options.
    pub(crate) fn to_recorded(&self) -> RecordedOptions {
        let fields = self.fields().into_iter();
        fields.map(|(name, text)| (name.to_owned(), text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // I1
    #[test]
    fn what_is_recorded_reads_back() {
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

    #[test]
    fn unknown_names_are_passed_over_and_unknown_values_are_not() {
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
}
