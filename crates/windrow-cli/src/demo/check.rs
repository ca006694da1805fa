//! Compares the answers of the store with what was written.

use std::collections::BTreeMap;

use windrow::{Keyspace, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::progress;
use crate::text::escape;

/// The report has sentences about this many mismatches at most.
const PROBLEMS_MAX: usize = 10;

/// The fingerprint of a content: its length and a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) bytes: u64,
    hash: u128,
}

impl Print {
    pub(super) fn of(content: &[u8]) -> Self {
        Self {
            bytes: content.len() as u64,
            hash: xxh3_128(content),
        }
    }
}

/// Every key that was ever written, with its last content, or `None` if it was deleted.
pub(super) type Expected = BTreeMap<Vec<u8>, Option<Print>>;

/// The tally of all comparisons.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) checked: u64,
    pub(super) mismatches: u64,
    pub(super) problems: Vec<String>,
}

impl Checks {
    /// Counts a comparison that must hold.
    pub(super) fn check(&mut self, holds: bool, problem: impl FnOnce() -> String) {
        self.checked += 1;
        if !holds {
            self.mismatch(problem);
        }
    }

    /// Counts a mismatch.
    pub(super) fn mismatch(&mut self, problem: impl FnOnce() -> String) {
        self.mismatches += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem());
        }
    }
}

/// Gets every key in a random order, and after each one a key that never existed. Returns the number of
/// gets.
pub(super) fn gets(keyspace: &Keyspace, expected: &Expected, checks: &mut Checks) -> Result<u64> {
    let mut shuffled: Vec<_> = expected.iter().collect();
    shuffled.sort_by_cached_key(|(key, _)| xxh3_128(key));
    let bar = progress::count(shuffled.len() as u64, "getting");
    let mut value = Vec::new();
    let mut absent = Vec::new();
    for (key, print) in &shuffled {
        let found = keyspace
            .get_into(key, &mut value)?
            .then(|| Print::of(&value));
        checks.check(found == **print, || {
            format!("get {}: expected {print:?}, found {found:?}", escape(key))
        });
        absent.clone_from(key);
        absent.push(0);
        let found = keyspace.get_into(&absent, &mut value)?;
        checks.check(!found, || format!("get {}: found", escape(&absent)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(2 * shuffled.len() as u64)
}

/// Scans forward, backward, and by the prefix of each top folder. Returns the number of entries
/// scanned.
pub(super) fn scans(keyspace: &Keyspace, expected: &Expected, checks: &mut Checks) -> Result<u64> {
    let live: Vec<(&[u8], &Print)> = expected
        .iter()
        .filter_map(|(key, print)| Some((key.as_slice(), print.as_ref()?)))
        .collect();
    let mut scanned = 0;

    let mut cursor = keyspace.cursor()?;
    let mut wanted = live.iter();
    let mut valid = cursor.seek_to_first()?;
    while valid {
        scanned += 1;
        compare(
            "forward",
            wanted.next(),
            cursor.key(),
            cursor.value()?,
            checks,
        );
        valid = cursor.next()?;
    }
    finish("forward", wanted.next(), checks);

    let mut wanted = live.iter().rev();
    let mut valid = cursor.seek_to_last()?;
    while valid {
        scanned += 1;
        compare(
            "backward",
            wanted.next(),
            cursor.key(),
            cursor.value()?,
            checks,
        );
        valid = cursor.prev()?;
    }
    finish("backward", wanted.next(), checks);

    for folder in top_folders(&live) {
        let mut wanted = live.iter().filter(|(key, _)| key.starts_with(folder));
        for entry in keyspace.prefix(folder)? {
            let (key, value) = entry?;
            scanned += 1;
            compare("prefix", wanted.next(), &key, &value, checks);
        }
        finish("prefix", wanted.next(), checks);
    }
    Ok(scanned)
}

fn compare(
    how: &str,
    wanted: Option<&(&[u8], &Print)>,
    key: &[u8],
    value: &[u8],
    checks: &mut Checks,
) {
    let print = Print::of(value);
    let holds = wanted.is_some_and(|wanted| *wanted == (key, &print));
    checks.check(holds, || {
        format!(
            "scan {how}: expected {:?}, found {} with {print:?}",
            wanted.map(|(key, print)| (escape(key), *print)),
            escape(key)
        )
    });
}

/// A scan that ended must have returned every entry.
fn finish(how: &str, left: Option<&(&[u8], &Print)>, checks: &mut Checks) {
    checks.check(left.is_none(), || {
        format!(
            "scan {how}: ended before {:?}",
            left.map(|(key, _)| escape(key))
        )
    });
}

/// The parts of the keys up to the second slash (registry and package), each once.
fn top_folders<'a>(live: &[(&'a [u8], &Print)]) -> Vec<&'a [u8]> {
    let mut folders: Vec<&[u8]> = live
        .iter()
        .filter_map(|(key, _)| {
            let slashes = key.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            let (end, _) = slashes.take(2).last()?;
            Some(&key[..=end])
        })
        .collect();
    folders.dedup();
    folders
}
