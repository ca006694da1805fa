//! A keyspace whose entries expire is a sorted map of what has not expired, at every snapshot, through flushes,
//! compactions, appends, range deletes, and opens with a clock that went back.

use std::collections::BTreeMap;

use windrow::{Batch, Db, Expiry, Keyspace, SegmentLimit, Snapshot, View};

use crate::common::Random;
use crate::{TurnedClock, at, milliseconds, open, tiny};

const KEYS: u64 = 200;

/// The newest values, with their expiries.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn key(number: u64) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

/// What a reader of `moment` sees.
fn seen(model: &Model, moment: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let lives = |expiry: Option<u64>| expiry.is_none_or(|expiry| moment < expiry);
    let entries = model.iter().filter(|(_, (_, expiry))| lives(*expiry));
    entries
        .map(|(key, (value, _))| (key.clone(), value.clone()))
        .collect()
}

/// Compares all reads of `view` with `model` at `moment`.
fn compare(view: &View, model: &Model, moment: u64) {
    let expected = seen(model, moment);
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let values: Vec<_> = keys.iter().map(|key| expected.get(key).cloned()).collect();
    assert_eq!(view.multi_get(&keys).unwrap(), values);
    for key in &keys {
        assert_eq!(view.get(key).unwrap().as_ref(), expected.get(key));
        let expiry = expected.get(key).map(|_| match model[key].1 {
            Some(expiry) => at(expiry),
            None => Expiry::Never,
        });
        assert_eq!(view.expires_at(key).unwrap(), expiry);
    }
    let forward: Vec<_> = view.iter().unwrap().map(Result::unwrap).collect();
    assert!(
        forward
            .iter()
            .map(|(key, value)| (key, value))
            .eq(&expected)
    );
    let backward: Vec<_> = view.iter().unwrap().rev().map(Result::unwrap).collect();
    assert!(
        backward
            .iter()
            .map(|(key, value)| (key, value))
            .eq(expected.iter().rev())
    );
}

/// The history of one seed.
struct History {
    random: Random,
    model: Model,
    /// What the clock of the database shows.
    moment: u64,
    snapshots: Vec<(Snapshot, Model, u64)>,
}

impl History {
    fn value(&mut self) -> Vec<u8> {
        let number = self.random.below(1000);
        let length = match self.random.below(4) {
            0 => 8,
            1 => 60,
            2 => 300,
            _ => 2000,
        };
        format!("{number:0length$}").into_bytes()
    }

    fn write(&mut self, db: &Db, map: &Keyspace) {
        let key = key(self.random.below(KEYS));
        let value = self.value();
        match self.random.below(8) {
            0 => {
                map.remove(&key).unwrap();
                self.model.remove(&key);
            }
            1 => {
                map.insert(&key, &value).unwrap();
                self.model.insert(key, (value, None));
            }
            2 if self.random.below(20) == 0 => {
                let end = crate::model::key(self.random.below(KEYS));
                map.delete_range(&key[..]..&end[..]).unwrap();
                self.model.retain(|other, _| *other < key || *other >= end);
            }
            kind => {
                let ttl = 1 + self.random.below(60);
                if kind == 3 {
                    let mut batch = Batch::new();
                    batch
                        .insert_with_ttl(map, &key, &value, milliseconds(ttl))
                        .unwrap();
                    db.write(&batch).unwrap();
                } else {
                    map.insert_with_ttl(&key, &value, milliseconds(ttl))
                        .unwrap();
                }
                self.model.insert(key, (value, Some(self.moment + ttl)));
            }
        }
    }

    /// Turns the clock, also back: then the moment stands still.
    fn turn(&mut self, clock: &TurnedClock, db: &Db) {
        let wall = (self.moment + self.random.below(20)).saturating_sub(self.random.below(8));
        clock.turn_to(wall);
        drop(db.snapshot());
        self.moment = self.moment.max(wall);
    }

    /// The clock goes on at the moment until which entries may have gone from the disk, or later: exactly those stay away
    /// that had expired by then.
    fn open_earlier(&mut self, map: &Keyspace, wall: u64) {
        map.insert_with_ttl("probe", "", milliseconds(1)).unwrap();
        let expiry = map.expires_at("probe").unwrap();
        map.remove("probe").unwrap();
        let mut moments = wall..=self.moment;
        let moment = moments
            .find(|moment| expiry == Some(at(moment + 1)))
            .unwrap();
        self.moment = moment;
        compare(map, &self.model, moment);
    }
}

fn run(seed: u64, segments: usize) {
    let folder = tempfile::tempdir().unwrap();
    let clock = TurnedClock::at(1_000_000);
    let mut history = History {
        random: Random(seed),
        model: Model::new(),
        moment: 1_000_000,
        snapshots: Vec::new(),
    };
    let mut options = tiny();
    options.segment_limit = SegmentLimit::Fixed(segments);
    options.medium_from = 100;
    options.large_from = 1000;
    for _ in 0..6 {
        let db = open(folder.path(), &clock);
        let map = db.keyspace_with("map", options.clone()).unwrap();
        let wall = history.moment - history.random.below(40);
        clock.turn_to(wall);
        history.open_earlier(&map, wall);
        for step in 0..1200 {
            history.write(&db, &map);
            match history.random.below(60) {
                0 | 1 => history.turn(&clock, &db),
                2 => {
                    let snapshot = (db.snapshot(), history.model.clone(), history.moment);
                    history.snapshots.push(snapshot);
                    if history.snapshots.len() > 3 {
                        history.snapshots.remove(0);
                    }
                }
                3 if step % 3 == 0 => db.flush().unwrap(),
                4 if step % 5 == 0 => map.compact_range::<&[u8]>(..).unwrap(),
                5 => {
                    compare(&map, &history.model, history.moment);
                    for (snapshot, model, moment) in &history.snapshots {
                        compare(&map.at(snapshot).unwrap(), model, *moment);
                    }
                }
                _ => {}
            }
        }
        db.wait_idle().unwrap();
        compare(&map, &history.model, history.moment);
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{:?}", report.damage);
        assert!(db.stats().entries_expired > 0);
        history.snapshots.clear();
    }
}

#[test]
fn expiring_entries_follow_the_model() {
    for (seed, segments) in [(0, 1), (1, 3), (2, 5)] {
        run(seed, segments);
    }
}
