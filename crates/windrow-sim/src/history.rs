//! Random histories: the operations of a user, fixed by a seed.

use crate::Random;
use crate::filtered::{FILTERED, REMOVED, REPLACED};
use crate::model::{Change, EXPIRING, Effect, with_expiry};
use std::collections::BTreeMap;
use windrow::Durability;

/// The keyspace that each history uses.
pub const FIRST_KEYSPACE: &str = "keyspace-0";

/// The expiry of a value that never expires, for the model.
const NEVER: u64 = 99_999_999_999_999;

/// The most keyspaces of a history that have a merge operator.
pub const KEYSPACES_MAX: usize = 3;

/// The name of a keyspace.
pub fn keyspace_name(number: usize) -> String {
    format!("keyspace-{number}")
}

/// One step of a history.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Commits these changes together.
    Write(Vec<Change>, Durability),
    /// `Keyspace::bulk_load` of these entries, ascending.
    BulkLoad(String, Vec<(Vec<u8>, Vec<u8>)>),
    /// Turns the system's clock on by this many milliseconds.
    Turn(u64),
    /// `Db::persist`.
    Persist,
    /// `Db::begin_persist`. The next persist or checkpoint waits for it.
    BeginPersist,
    /// `Db::flush`.
    Flush,
    /// `Keyspace::compact_range` over these keys, both included.
    Compact(String, Vec<u8>, Vec<u8>),
    /// `Db::drop_keyspace`, if the keyspace exists.
    Drop(String),
    /// `Db::swap_keyspaces`, if both keyspaces exist.
    Swap(String, String),
    /// `Keyspace::rename`, if the first keyspace exists; refused if the second name is another's.
    Rename(String, String),
    /// `Db::checkpoint`; the checkpoint is compared and removed.
    Checkpoint,
    /// `Db::wait_idle`.
    WaitIdle,
    /// Runs up to this many background jobs.
    Step(usize),
    /// Takes a snapshot and keeps it.
    Hold,
    /// Checks and drops the oldest snapshot.
    Release,
    /// Closes and opens the database.
    Reopen,
    /// Closes the database, and opens it while the clock shows a time that is earlier by this many milliseconds.
    ReopenEarlier(u64),
    /// Ends the process and opens the database.
    Kill,
}

/// The kind of a history.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// The most distinct keys of each keyspace.
    pub keys: usize,
    /// The number of keyspaces.
    pub keyspaces: usize,
    /// Chance in 100 that a write asks for `Sync`.
    pub synced: u64,
    /// Whether processes end without closing.
    pub kills: bool,
}

impl Profile {
    /// A small database, for tests that change its files one by one.
    pub const SMALL: Self = Self {
        keys: 40,
        keyspaces: 2,
        synced: 20,
        kills: false,
    };
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            keys: 60,
            keyspaces: KEYSPACES_MAX,
            synced: 30,
            kills: true,
        }
    }
}

/// Draws the operations of a history.
#[derive(Debug, Clone)]
pub struct Generator {
    random: Random,
    profile: Profile,
    /// Chooses which kinds of operations there are.
    seed: u64,
    /// Makes each value unique.
    serial: u64,
}

impl Generator {
    /// The history that `seed` fixes.
    pub fn new(seed: u64, profile: Profile) -> Self {
        Self {
            random: Random::new(seed),
            profile,
            seed,
            serial: 0,
        }
    }

    /// Whether ranges are deleted, in half of the histories: compactions that meet range tombstones append nothing.
    fn deletes_ranges(&self) -> bool {
        self.seed.is_multiple_of(2)
    }

    /// Whether entries are loaded in bulk, in a third of the histories: small trees hold what was loaded in levels that
    /// take no appends.
    fn loads_in_bulk(&self) -> bool {
        self.seed.is_multiple_of(3)
    }

    /// Whether there is a keyspace whose entries may expire, in two of five histories.
    fn expires(&self) -> bool {
        matches!(self.seed % 5, 1 | 3)
    }

    /// Whether there is a keyspace with a compaction filter, in two of seven histories.
    fn filters(&self) -> bool {
        matches!(self.seed % 7, 2 | 4)
    }

    /// The next `count` operations.
    pub fn operations(&mut self, count: usize) -> Vec<Operation> {
        (0..count).map(|_| self.operation()).collect()
    }

    /// The next operation.
    pub fn operation(&mut self) -> Operation {
        match self.random.below(200) {
            139..143 if self.loads_in_bulk() => self.bulk_load(),
            0..143 => self.write(),
            143 => Operation::Rename(self.keyspace(), self.keyspace()),
            144..146 => Operation::Drop(self.keyspace()),
            146..150 => Operation::Swap(self.keyspace(), self.keyspace()),
            150 => Operation::Persist,
            151 => Operation::BeginPersist,
            152 => Operation::Checkpoint,
            153..156 => Operation::Flush,
            156..159 => self.compact(),
            159..161 => Operation::WaitIdle,
            161..169 if self.expires() => Operation::Turn(1 + self.random.below(300)),
            195 if self.expires() => Operation::ReopenEarlier(self.random.below(3000)),
            161..185 => Operation::Step(1 + self.random.index(2)),
            185..190 => Operation::Hold,
            190..195 => Operation::Release,
            195..198 => Operation::Reopen,
            _ if self.profile.kills => Operation::Kill,
            _ => Operation::Reopen,
        }
    }

    /// A key that the history uses.
    pub fn key(&mut self) -> Vec<u8> {
        let number = self.random.index(self.profile.keys);
        match number % 4 {
            // A shared prefix longer than the part of a key that a fence keeps.
            0 => format!("a/rather/long/common/prefix/{number:03}").into_bytes(),
            1 => format!("k{number}").into_bytes(),
            // Keys that are prefixes of one another, and bytes at both ends of the range.
            2 => vec![0; 1 + number / 4],
            _ => vec![0xff; 1 + number / 4],
        }
    }

    /// The name of a keyspace to compare.
    pub fn compared_keyspace(&mut self) -> String {
        if self.expires() && self.random.chance(1, 5) {
            return EXPIRING.to_owned();
        }
        self.keyspace()
    }

    /// The name of a keyspace that the history uses.
    pub fn keyspace(&mut self) -> String {
        let number = self.random.index(self.profile.keyspaces);
        keyspace_name(number)
    }

    fn write(&mut self) -> Operation {
        let count = match self.random.below(10) {
            0..7 => 1,
            7..9 => 2 + self.random.index(4),
            _ => 5 + self.random.index(20),
        };
        let changes = (0..count).map(|_| self.change()).collect();
        let durability = if self.random.chance(self.profile.synced, 100) {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        Operation::Write(changes, durability)
    }

    fn bulk_load(&mut self) -> Operation {
        let count = 1 + self.random.index(30);
        let entries: BTreeMap<_, _> = (0..count).map(|_| (self.key(), self.value())).collect();
        let mut entries: Vec<_> = entries.into_iter().collect();
        if self.random.chance(1, 2) {
            // Few neighbours, which may fit between others.
            let kept = 1 + self.random.index(3);
            entries.drain(..entries.len().saturating_sub(kept));
        }
        let keyspace = if self.expires() && self.random.chance(1, 3) {
            EXPIRING.to_owned()
        } else {
            self.keyspace()
        };
        Operation::BulkLoad(keyspace, entries)
    }

    fn change(&mut self) -> Change {
        if self.expires() && self.random.chance(1, 3) {
            return self.expiring_change();
        }
        if self.filters() && self.random.chance(1, 4) {
            return self.filtered_change();
        }
        let (keyspace, key) = (self.keyspace(), self.key());
        let effect = match self.random.below(27 + u64::from(self.deletes_ranges())) {
            0..6 => Effect::Remove,
            6..13 => Effect::Append(self.value()),
            13..27 => Effect::Insert(self.value()),
            _ => return self.range(keyspace, key),
        };
        (keyspace, key, effect)
    }

    /// A change of the keyspace whose entries may expire.
    fn expiring_change(&mut self) -> Change {
        let (keyspace, key) = (EXPIRING.to_owned(), self.key());
        let effect = match self.random.below(20 + u64::from(self.deletes_ranges())) {
            0..3 => Effect::Remove,
            3..6 => Effect::Insert(with_expiry(NEVER, &self.value())),
            6..16 => Effect::InsertFor(self.value(), 1 + self.random.below(400)),
            // Long enough for files of others to go.
            16..20 => Effect::InsertFor(self.value(), 1 + self.random.below(4000)),
            _ => return self.range(keyspace, key),
        };
        (keyspace, key, effect)
    }

    /// A change of the keyspace with a compaction filter. It may remove or replace what half of them write.
    fn filtered_change(&mut self) -> Change {
        let (keyspace, key) = (FILTERED.to_owned(), self.key());
        let effect = match self.random.below(20 + u64::from(self.deletes_ranges())) {
            0..3 => Effect::Remove,
            3..8 => Effect::Insert([&[REMOVED][..], &self.value()].concat()),
            8..12 => Effect::Insert([&[REPLACED][..], &self.value()].concat()),
            12..20 => Effect::Insert(self.value()),
            _ => return self.range(keyspace, key),
        };
        (keyspace, key, effect)
    }

    /// The deletion of a range that begins or ends with `key`.
    fn range(&mut self, keyspace: String, key: Vec<u8>) -> Change {
        let other = self.key();
        let (start, end) = match self.random.below(16) {
            0 => (key, Vec::new()),
            1 => (vec![0], Vec::new()),
            2..5 => (key.clone().min(other.clone()), key.max(other)),
            // Itself and those with it as a prefix that follow closely.
            _ => {
                let end = [&key[..], b"5"].concat();
                (key, end)
            }
        };
        let end = if start == end { Vec::new() } else { end };
        (keyspace, start, Effect::DeleteRange(end))
    }

    fn value(&mut self) -> Vec<u8> {
        self.serial += 1;
        let mut value = format!("{:05} ", self.serial).into_bytes();
        let length = match self.random.below(40) {
            0 => return Vec::new(),
            1 => 1000 + self.random.index(2000),
            2..5 => 200 + self.random.index(300),
            _ => self.random.index(120),
        };
        // Half of it compresses.
        let noise = self.random.bytes(length / 2);
        value.extend(noise);
        value.resize(value.len() + length / 2, b'.');
        value
    }

    fn compact(&mut self) -> Operation {
        let keyspace = if self.filters() && self.random.chance(1, 3) {
            FILTERED.to_owned()
        } else {
            self.keyspace()
        };
        let (one, other) = (self.key(), self.key());
        if self.random.chance(1, 2) {
            return Operation::Compact(keyspace, vec![0], vec![0xff; 80]);
        }
        Operation::Compact(keyspace, one.clone().min(other.clone()), one.max(other))
    }
}
