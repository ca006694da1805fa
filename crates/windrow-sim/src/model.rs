//! What the database must contain: the list of commits, and the state after each.
//!
//! After a crash the database must equal the state after some commit: not before the last commit
//! whose durability was acknowledged, and not after the last commit that was begun. The model compares
//! whole states. So it finds half a batch, a hole or a value that returns, not only a lost value.
//!
//! The entries of one keyspace, [`EXPIRING`], expire. A value there begins with its expiry, so the model knows it from the
//! value. A database that is opened while the clock shows an earlier time may show entries that have expired already, but
//! only all that expire after some moment.

use crate::random::combine;
use crate::runtime::UNIX_TIME_START;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::{Bound, Range};
use xxhash_rust::xxh3::xxh3_64;

/// The entries of one keyspace.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// All keyspaces that have entries.
pub type Contents = BTreeMap<String, Entries>;

/// One change: keyspace, key, and what happens to the key.
pub type Change = (String, Vec<u8>, Effect);

/// What a change does to its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It gets this value.
    Insert(Vec<u8>),
    /// It is removed.
    Remove,
    /// The merge operator appends this operand.
    Append(Vec<u8>),
    /// It gets this value, which begins with its expiry, for this many milliseconds.
    InsertFor(Vec<u8>, u64),
    /// It is removed, and so are all keys behind it to before this one; all, if this one is empty.
    DeleteRange(Vec<u8>),
}

/// The keyspace whose entries may expire. It has no merge operator.
pub const EXPIRING: &str = "expiring";

/// The digits of an expiry at the begin of a value.
const EXPIRY_DIGITS: usize = 14;

/// A value that begins with its expiry, in milliseconds since 1970.
pub fn with_expiry(expiry: u64, value: &[u8]) -> Vec<u8> {
    let mut stamped = format!("{expiry:0EXPIRY_DIGITS$} ").into_bytes();
    stamped.extend_from_slice(value);
    stamped
}

/// The expiry that `value` begins with.
fn expiry_of(value: &[u8]) -> u64 {
    let digits = value.get(..EXPIRY_DIGITS).unwrap_or_default();
    let digits = str::from_utf8(digits).unwrap_or_default();
    digits.parse().expect("a value begins with its expiry")
}

/// What the merge operator of all keyspaces puts between two operands.
pub const SEPARATOR: u8 = b'|';

impl Effect {
    /// The value of a key that had `old`.
    fn apply(&self, old: Option<&Vec<u8>>) -> Option<Vec<u8>> {
        match (self, old) {
            (Self::Remove | Self::DeleteRange(_), _) => None,
            (Self::Insert(value) | Self::InsertFor(value, _), _) | (Self::Append(value), None) => {
                Some(value.clone())
            }
            (Self::Append(operand), Some(old)) => Some([old, &[SEPARATOR][..], operand].concat()),
        }
    }
}

/// How far the user can rely on a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The commit was begun, or failed in a way that leaves its outcome open.
    Unknown,
    /// Acknowledged; the commit survives the end of the process.
    Buffered,
    /// Acknowledged; the commit and everything before it survive a power failure.
    Durable,
}

/// How much of a [`Model`] a crash may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The number of commits that must be there.
    pub required: usize,
    /// The number of commits that may be there.
    pub begun: usize,
    /// No other numbers may be there.
    pub only_ends: bool,
    /// The clock shows this moment or a later one.
    pub from: u64,
}

/// The commits of a history.
#[derive(Debug, Clone)]
pub struct Model {
    base: Contents,
    commits: Vec<(Vec<Change>, Status)>,
    /// `hashes[i]` is the hash of the state after `i` commits.
    hashes: Vec<u64>,
    current: Contents,
    /// The latest moment that the clock has shown.
    moment: u64,
    points: Option<Points>,
}

/// The states that survive if the database keeps no log: exactly those of `Db::persist`.
#[derive(Debug, Clone, Default)]
struct Points {
    /// The numbers of commits at calls that have not succeeded, and may have had their effect.
    begun: Vec<usize>,
}

impl Default for Model {
    fn default() -> Self {
        Self::new(Contents::new())
    }
}

impl Model {
    /// A model whose history begins with `base`, which is durable.
    pub fn new(mut base: Contents) -> Self {
        base.retain(|_, entries| !entries.is_empty());
        Self {
            hashes: vec![hash(&base)],
            current: base.clone(),
            base,
            commits: Vec::new(),
            points: None,
            moment: u64::try_from(UNIX_TIME_START.as_millis()).expect("a small number"),
        }
    }

    /// The latest moment that the clock has shown.
    pub fn moment(&self) -> u64 {
        self.moment
    }

    /// The clock shows a later moment.
    pub fn turn(&mut self, milliseconds: u64) {
        self.moment += milliseconds;
    }

    /// Begins a commit of `changes`; its status is unknown.
    pub fn begin(&mut self, changes: Vec<Change>) {
        let mut hash = self.hashes[self.commits.len()];
        for (keyspace, key, effect) in &changes {
            let entries = self.current.entry(keyspace.clone()).or_default();
            for (key, old) in touched(entries, key, effect) {
                hash ^= entry_hash(keyspace, key, old);
            }
            if let Some(value) = change(entries, key, effect) {
                hash ^= entry_hash(keyspace, key, value);
            }
            if entries.is_empty() {
                self.current.remove(keyspace);
            }
        }
        self.hashes.push(hash);
        self.commits.push((changes, Status::Unknown));
    }

    /// Sets the status of the last commit.
    ///
    /// # Panics
    /// No commit was begun.
    pub fn finish(&mut self, status: Status) {
        let last = self.commits.last_mut().expect("a commit was begun");
        last.1 = status;
    }

    /// Removes the last commit, which failed before it changed anything.
    ///
    /// # Panics
    /// No commit was begun.
    pub fn withdraw(&mut self) {
        self.commits.pop().expect("a commit was begun");
        self.hashes.pop();
        self.current = self.written(self.commits.len());
    }

    /// A crash left the first `count` commits. The others never happened.
    pub fn recovered(&mut self, count: usize) {
        self.commits.truncate(count);
        self.hashes.truncate(count + 1);
        for (_, status) in &mut self.commits {
            if *status == Status::Unknown {
                *status = Status::Buffered;
            }
        }
        self.current = self.written(count);
    }

    /// The database keeps no log.
    pub fn without_log(&mut self) {
        self.points = Some(Points::default());
    }

    /// A call to make everything durable begins.
    pub fn persisting(&mut self) {
        let count = self.commits.len();
        if let Some(points) = &mut self.points {
            points.begun.push(count);
        }
    }

    /// Everything that was acknowledged became durable.
    pub fn persisted(&mut self) {
        self.persisted_through(self.commits.len());
    }

    /// What was acknowledged of the first `count` commits became durable.
    pub fn persisted_through(&mut self, count: usize) {
        if let Some(points) = &mut self.points {
            points.begun.retain(|begun| *begun > count);
        }
        let mut newest_first = self.commits[..count].iter_mut().rev();
        if let Some(last) = newest_first.find(|(_, status)| *status != Status::Unknown) {
            last.1 = Status::Durable;
        }
    }

    /// The number of commits that were begun.
    pub fn begun(&self) -> usize {
        self.commits.len()
    }

    /// What a power failure may leave now.
    pub fn power_failure_bounds(&self) -> Bounds {
        self.bounds(|status| status == Status::Durable)
    }

    /// What the end of the process may leave now.
    pub fn process_crash_bounds(&self) -> Bounds {
        if self.points.is_some() {
            return self.power_failure_bounds();
        }
        self.bounds(|status| status != Status::Unknown)
    }

    /// The state after all commits that were begun, without what has expired.
    pub fn current(&self) -> Contents {
        living(self.current.clone(), self.moment)
    }

    /// The state after `count` commits, without what has expired.
    pub fn state(&self, count: usize) -> Contents {
        living(self.written(count), self.moment)
    }

    /// The entries of `keyspace` as if the commits in `lost` had never been, without what has expired.
    pub fn entries_without(&self, keyspace: &str, lost: &Range<usize>) -> Entries {
        let mut contents = Contents::new();
        let base = self.base.get(keyspace).cloned().unwrap_or_default();
        let entries = contents.entry(keyspace.to_owned()).or_insert(base);
        for (index, (changes, _)) in self.commits.iter().enumerate() {
            let here = changes.iter().filter(|(name, ..)| name == keyspace);
            for (_, key, effect) in here.filter(|_| !lost.contains(&index)) {
                change(entries, key, effect);
            }
        }
        living(contents, self.moment)
            .remove(keyspace)
            .unwrap_or_default()
    }

    /// The effects on `key`, in any keyspace, oldest first.
    pub fn effects_on<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a Effect> {
        let changes = self.commits.iter().flat_map(|(changes, _)| changes);
        let here = changes.filter(move |(_, start, effect)| match effect {
            Effect::DeleteRange(end) if end.is_empty() => **start <= *key,
            Effect::DeleteRange(end) if end > start => **start <= *key && *key < **end,
            _ => **start == *key,
        });
        here.map(|(_, _, effect)| effect)
    }

    /// The state after `count` commits, with what has expired.
    fn written(&self, count: usize) -> Contents {
        let mut contents = self.base.clone();
        for (keyspace, key, effect) in self.commits[..count]
            .iter()
            .flat_map(|(changes, _)| changes)
        {
            change(contents.entry(keyspace.clone()).or_default(), key, effect);
        }
        contents.retain(|_, entries| !entries.is_empty());
        contents
    }

    /// The largest number of commits within `bounds` after which the state was `recovered`.
    ///
    /// # Errors
    /// No allowed state equals `recovered`. The sentence names the nearest difference.
    pub fn check_recovered(&self, recovered: &Contents, bounds: Bounds) -> Result<usize, String> {
        let wanted = hash(recovered);
        let is_end = |count: &usize| *count == bounds.required || *count == bounds.begun;
        let candidates = (bounds.required..=bounds.begun).rev();
        let candidates = candidates.filter(|count| !bounds.only_ends || is_end(count));
        for count in candidates.filter(|count| self.hashes[*count] == wanted) {
            if self.may_show(self.written(count), recovered, bounds.from) {
                return Ok(count);
            }
        }
        Err(self.explain(recovered, wanted, bounds))
    }

    /// Whether a database that holds `written` may show `found` at `from` or later: without exactly what has expired by
    /// some moment that the clock has shown.
    fn may_show(&self, written: Contents, found: &Contents, from: u64) -> bool {
        let hidden = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            let shown = found.get(EXPIRING).and_then(|entries| entries.get(key));
            shown.is_none().then(|| expiry_of(value))
        };
        let expiring = written.get(EXPIRING).into_iter().flatten();
        let last = expiring.filter_map(hidden).max().unwrap_or(0);
        let moment = last.max(from);
        let state = living(written, moment);
        let found = found.iter().filter(|(_, entries)| !entries.is_empty());
        moment <= self.moment && state.iter().eq(found)
    }

    fn bounds(&self, counts: impl Fn(Status) -> bool) -> Bounds {
        let last = self.commits.iter().rposition(|(_, status)| counts(*status));
        let required = last.map_or(0, |index| index + 1);
        let points = self.points.as_ref().map(|points| &*points.begun);
        let begun = points.map(|begun| begun.iter().copied().fold(required, usize::max));
        Bounds {
            required,
            begun: begun.unwrap_or(self.commits.len()),
            only_ends: points.is_some_and(|begun| begun.len() <= 1),
            from: 0,
        }
    }

    fn explain(&self, recovered: &Contents, wanted: u64, bounds: Bounds) -> String {
        let Bounds {
            required, begun, ..
        } = bounds;
        let mut text =
            format!("the database equals none of the states after {required} to {begun} commits");
        let earlier = self.hashes[..required]
            .iter()
            .rposition(|hash| *hash == wanted);
        let outcome = if let Some(count) = earlier {
            write!(
                text,
                "; it equals the one after {count}: acknowledged commits are lost"
            )
        } else {
            let differences = differences(&self.state(required), recovered);
            write!(
                text,
                "; it differs from the one after {required} in {}: {}",
                differences.len(),
                differences[..differences.len().min(5)].join(", ")
            )
        };
        outcome.expect("a string can be written to");
        text
    }
}

/// `contents` without what has expired at `moment`.
fn living(mut contents: Contents, moment: u64) -> Contents {
    if let Some(entries) = contents.get_mut(EXPIRING) {
        entries.retain(|_, value| moment < expiry_of(value));
        contents.retain(|_, entries| !entries.is_empty());
    }
    contents
}

/// The entries that `effect` on `key` changes.
fn touched<'a>(
    entries: &'a Entries,
    key: &'a [u8],
    effect: &'a Effect,
) -> impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> {
    let end = match effect {
        Effect::DeleteRange(end) if end.is_empty() => Bound::Unbounded,
        Effect::DeleteRange(end) if **end > *key => Bound::Excluded(&end[..]),
        _ => Bound::Included(key),
    };
    entries.range::<[u8], _>((Bound::Included(key), end))
}

/// Applies `effect` to `key`; returns its value.
fn change<'a>(entries: &'a mut Entries, key: &[u8], effect: &Effect) -> Option<&'a Vec<u8>> {
    if let Effect::DeleteRange(_) = effect {
        let touched = touched(entries, key, effect);
        let keys: Vec<_> = touched.map(|(key, _)| key.clone()).collect();
        for key in keys {
            entries.remove(&key);
        }
    }
    if let Some(value) = effect.apply(entries.get(key)) {
        entries.insert(key.to_vec(), value);
    } else {
        entries.remove(key);
    }
    entries.get(key)
}

/// The keys in which two keyspaces differ.
pub fn differing_keys<'a>(
    expected: &'a Entries,
    found: &'a Entries,
) -> impl Iterator<Item = &'a Vec<u8>> {
    let lost = expected
        .iter()
        .filter(|(key, value)| found.get(*key) != Some(value));
    let extra = found.keys().filter(|key| !expected.contains_key(*key));
    lost.map(|(key, _)| key).chain(extra)
}

/// The differences of two contents, one sentence each.
pub fn differences(expected: &Contents, found: &Contents) -> Vec<String> {
    let mut sentences = Vec::new();
    let empty = Entries::new();
    let names: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    for name in names {
        let left = expected.get(name).unwrap_or(&empty);
        let right = found.get(name).unwrap_or(&empty);
        for (key, value) in left {
            match right.get(key) {
                None => sentences.push(format!("{name}/{} is missing", shown(key))),
                Some(other) if other != value => sentences.push(format!(
                    "{name}/{} is {} and should be {}",
                    shown(key),
                    shown(other),
                    shown(value)
                )),
                Some(_) => {}
            }
        }
        for key in right.keys().filter(|key| !left.contains_key(*key)) {
            sentences.push(format!("{name}/{} should not be there", shown(key)));
        }
    }
    sentences
}

fn shown(bytes: &[u8]) -> String {
    let head: String = bytes[..bytes.len().min(24)].escape_ascii().to_string();
    match bytes.len() {
        0..=24 => format!("'{head}'"),
        length => format!("'{head}...' ({length} bytes)"),
    }
}

fn hash(contents: &Contents) -> u64 {
    let mut sum = 0;
    for (keyspace, entries) in contents {
        for (key, value) in entries {
            sum ^= entry_hash(keyspace, key, value);
        }
    }
    sum
}

/// What an entry adds to the hash of a state; nothing for an entry that may expire.
fn entry_hash(keyspace: &str, key: &[u8], value: &[u8]) -> u64 {
    if keyspace == EXPIRING {
        return 0;
    }
    combine(
        combine(xxh3_64(keyspace.as_bytes()), xxh3_64(key)),
        xxh3_64(value),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Change {
        ("main".into(), key.into(), Effect::Insert(value.into()))
    }

    fn history() -> Model {
        let mut model = Model::default();
        model.begin(vec![put("a", "1")]);
        model.finish(Status::Durable);
        model.begin(vec![put("a", "2"), put("b", "2")]);
        model.finish(Status::Buffered);
        model.begin(vec![("main".into(), b"a".to_vec(), Effect::Remove)]);
        model
    }

    #[test]
    fn the_model_accepts_every_allowed_prefix() {
        let model = history();
        let bounds = model.power_failure_bounds();
        assert_eq!((bounds.required, bounds.begun), (1, 3));
        for count in 1..=3 {
            assert_eq!(
                model.check_recovered(&model.state(count), bounds),
                Ok(count)
            );
        }
        assert_eq!(model.process_crash_bounds().required, 2);
        assert_eq!(model.state(3), model.current());
    }

    #[test]
    fn the_model_refuses_lost_and_torn_states() {
        let model = history();
        let bounds = model.power_failure_bounds();
        let lost = model.check_recovered(&model.state(0), bounds).unwrap_err();
        assert!(lost.contains("acknowledged commits are lost"), "{lost}");
        let mut torn = model.state(1);
        torn.get_mut("main")
            .unwrap()
            .insert(b"b".into(), b"2".into());
        let torn = model.check_recovered(&torn, bounds).unwrap_err();
        assert!(torn.contains("main/'b' should not be there"), "{torn}");
    }

    #[test]
    fn expired_entries_are_hidden_up_to_one_moment() {
        let mut model = Model::default();
        let start = model.moment();
        let values: Vec<_> = (1..=3).map(|ttl| with_expiry(start + ttl, b"")).collect();
        let insertion = |(ttl, value): (u64, &Vec<u8>)| {
            let effect = Effect::InsertFor(value.clone(), ttl);
            (EXPIRING.to_owned(), value.clone(), effect)
        };
        model.begin((1..=3).zip(&values).map(insertion).collect());
        model.finish(Status::Durable);
        model.turn(2);
        let shows = |from: u64, shown: &[usize]| {
            let entries = shown.iter().map(|&index| values[index].clone());
            let entries: Entries = entries.map(|value| (value.clone(), value)).collect();
            let found = Contents::from([(EXPIRING.to_owned(), entries)]);
            let bounds = Bounds {
                from,
                ..model.power_failure_bounds()
            };
            model.check_recovered(&found, bounds).is_ok()
        };
        assert_eq!(model.current()[EXPIRING].len(), 1);
        assert!(shows(start + 2, &[2]) && shows(start, &[1, 2]) && shows(start, &[0, 1, 2]));
        assert!(
            !shows(start + 2, &[1, 2]),
            "the clock shows that it has expired"
        );
        assert!(!shows(start, &[0, 2]), "an earlier one returns");
        assert!(!shows(start, &[]), "one is lost");
    }

    #[test]
    fn lost_commits_take_only_their_changes() {
        let mut model = Model::default();
        model.begin(vec![put("a", "1"), put("b", "1")]);
        model.begin(vec![put("a", "2")]);
        model.begin(vec![put("c", "3")]);
        let of = |lost| model.entries_without("main", &lost);
        let value = |entries: &Entries, key: &str| entries.get(key.as_bytes()).cloned();
        assert_eq!(of(0..0), model.current()["main"]);
        assert_eq!(value(&of(1..2), "a"), Some(b"1".to_vec()));
        assert_eq!(value(&of(1..2), "c"), Some(b"3".to_vec()));
        assert_eq!(of(0..3), Entries::new());
        let expected = model.current();
        let differing = of(1..3);
        let differing: Vec<_> = differing_keys(&expected["main"], &differing).collect();
        assert_eq!(differing, [b"a", b"c"]);
        assert_eq!(model.effects_on(b"a").count(), 2);
    }

    #[test]
    fn a_withdrawn_commit_leaves_no_trace() {
        let mut model = history();
        let before = model.current();
        model.begin(vec![put("c", "3")]);
        model.withdraw();
        assert_eq!(model.current(), before);
        assert_eq!(model.begun(), 3);
        model.persisted();
        assert_eq!(model.power_failure_bounds().required, 2);
        model.recovered(3);
        model.persisted();
        assert_eq!(model.power_failure_bounds().required, 3);
    }
}
