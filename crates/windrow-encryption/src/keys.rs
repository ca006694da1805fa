//! Keys, and what gives them to the file system.
//!
//! Concurrency: a provider is asked from many threads at once.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io;
use std::str::FromStr;

use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// The most bytes of the name of a key.
pub const KEY_NAME_BYTES_MAX: usize = 64;

/// A secret key. Its memory is overwritten when it is dropped, and `Debug` does not show it.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; KEY_BYTES]>);

impl Key {
    /// The key of these bytes, which must come from a good source of random numbers: not from a password.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new key, from the random numbers of the system.
    ///
    /// # Errors
    /// The system has none.
    pub fn random() -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes).map_err(io::Error::other)?;
        Ok(Self(bytes))
    }

    /// The bytes, to keep them in a safe place.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Gives keys by name: from a file, a variable of the environment, a service for keys. Each file of a database has the name
/// of its key in clear.
///
/// A file needs its key once, when it is opened or created. A provider that asks a service should keep what it gets.
pub trait KeyProvider: Send + Sync + Debug {
    /// The name of the key for new files, 1 to 64 bytes. Another name from some moment on is a rotation: files that exist keep
    /// their keys.
    ///
    /// # Errors
    /// No file can be created.
    fn current(&self) -> io::Result<String>;

    /// The key with this name. One name always stands for one key.
    ///
    /// # Errors
    /// `NotFound` if there is none; the files with this key cannot be opened. Any other error is one of the environment. No
    /// error, of whatever kind, means that a file is damaged.
    fn key(&self, name: &str) -> io::Result<Key>;
}

/// Keys in memory, for instance from a secret file that the system gives to a service.
///
/// As a text it has a line for each key: its name, a space, and 64 hexadecimal digits. The first one is for new files. Empty
/// lines, lines that begin with `#` and a byte order mark do not count.
///
/// ```
/// # use windrow_encryption::KeyRing;
/// let text = format!("# since August\n2026-08 {}\n2025-02 {}\n", "5a".repeat(32), "07".repeat(32));
/// let ring: KeyRing = text.parse().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct KeyRing {
    current: String,
    keys: BTreeMap<String, Key>,
}

impl KeyRing {
    /// A ring with one key, for new files.
    pub fn new(name: impl Into<String>, key: Key) -> Self {
        let current = name.into();
        let keys = BTreeMap::from([(current.clone(), key)]);
        Self { current, keys }
    }

    /// Adds a key that files have from before.
    #[must_use]
    pub fn with_older(mut self, name: impl Into<String>, key: Key) -> Self {
        self.keys.entry(name.into()).or_insert(key);
        self
    }
}

impl FromStr for KeyRing {
    type Err = io::Error;

    /// # Errors
    /// `InvalidData`: no key, a line of another form, a name of more than 64 bytes, or two lines with one name.
    fn from_str(text: &str) -> io::Result<Self> {
        let mut ring: Option<Self> = None;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = |what| {
                let message = format!("line {number} of the keys {what}");
                io::Error::new(io::ErrorKind::InvalidData, message)
            };
            let (name, key) = line
                .split_once(' ')
                .and_then(|(name, digits)| Some((name, key_of_digits(digits.trim())?)))
                .ok_or_else(|| invalid("is not a name, a space and 64 hexadecimal digits"))?;
            if name.len() > KEY_NAME_BYTES_MAX {
                return Err(invalid("has a name of more than 64 bytes"));
            }
            ring = Some(match ring {
                None => Self::new(name, key),
                Some(ring) if ring.keys.contains_key(name) => {
                    return Err(invalid("has the name of an earlier one"));
                }
                Some(ring) => ring.with_older(name, key),
            });
        }
        let none = || io::Error::new(io::ErrorKind::InvalidData, "there is no key in the text");
        ring.ok_or_else(none)
    }
}

fn key_of_digits(digits: &str) -> Option<Key> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    let pairs = digits.as_bytes().chunks(2);
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        for digit in pair {
            let value = char::from(*digit).to_digit(16)?;
            *byte = *byte << 4 | u8::try_from(value).ok()?;
        }
    }
    Some(Key(bytes))
}

impl KeyProvider for KeyRing {
    fn current(&self) -> io::Result<String> {
        Ok(self.current.clone())
    }

    fn key(&self, name: &str) -> io::Result<Key> {
        let key = self.keys.get(name).cloned();
        key.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no key has this name"))
    }
}
