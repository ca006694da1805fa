//! An engine in memory that gives wrong answers, to see that a run notices.
#![expect(
    clippy::disallowed_types,
    reason = "an engine of a few lines needs a plain lock"
)]

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::Mutex;

use windrow::{ErrorKind, Result};

use super::args;
use crate::{Counters, Engine, LevelShape, Scan, run};

/// What a [`Liar`] does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    None,
    LosesAnUpdate,
    LosesARecord,
    MixesUpValues,
}

/// An engine in memory that lies.
struct Liar {
    entries: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    lie: Lie,
}

impl Liar {
    /// Runs `line` on it.
    fn run(lie: Lie, line: &str) -> Result<()> {
        let open = |folder: &Path| {
            fs::write(folder.join(Self::MARKER), "").unwrap();
            let entries = Mutex::default();
            Ok(Self { entries, lie })
        };
        run::<Self>(&args(line), open, |_| Ok(()))
    }
}

struct LiarScan<'a>(&'a Liar, Vec<u8>, Vec<u8>);

impl LiarScan<'_> {
    fn move_to(&mut self, from: Bound<&[u8]>) -> bool {
        let entries = self.0.entries.lock().unwrap();
        let next = entries.range::<[u8], _>((from, Bound::Unbounded)).next();
        let Some((key, value)) = next else {
            return false;
        };
        (self.1, self.2) = (key.clone(), value.clone());
        true
    }
}

impl Scan for LiarScan<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.move_to(Bound::Included(key)))
    }

    fn next(&mut self) -> Result<bool> {
        let key = self.1.clone();
        Ok(self.move_to(Bound::Excluded(&key)))
    }

    fn key(&self) -> &[u8] {
        &self.1
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(&self.2)
    }
}

impl Engine for Liar {
    const NAME: &'static str = "liar";
    const MARKER: &'static str = "liar";
    type Scan<'a> = LiarScan<'a>;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut entries = self.entries.lock().unwrap();
        if self.lie == Lie::LosesAnUpdate && entries.contains_key(key) {
            return Ok(());
        }
        if self.lie == Lie::LosesARecord && entries.len() == 50 {
            entries.pop_first();
        }
        let value = match entries.last_entry() {
            Some(other) if self.lie == Lie::MixesUpValues => other.get().clone(),
            _ => value.to_vec(),
        };
        entries.insert(key.to_vec(), value);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.entries.lock().unwrap().remove(key);
        Ok(())
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let entries = self.entries.lock().unwrap();
        value.clear();
        value.extend_from_slice(entries.get(key).map_or(&[], Vec::as_slice));
        Ok(entries.contains_key(key))
    }

    fn scan(&self) -> Result<LiarScan<'_>> {
        Ok(LiarScan(self, Vec::new(), Vec::new()))
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Result<Counters> {
        Ok(Counters::default())
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        Ok(Vec::new())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_wrong_answer_fails_the_run() {
    let line = |load: &str| format!("ycsb-load,{load} --records 100 --ops 1000");
    for load in ["ycsb-a", "ycsb-b", "ycsb-d", "ycsb-e", "ycsb-f"] {
        Liar::run(Lie::None, &line(load)).unwrap();
        for (lie, is_seen) in [
            (Lie::LosesAnUpdate, !matches!(load, "ycsb-d" | "ycsb-e")),
            (Lie::LosesARecord, true),
            (Lie::MixesUpValues, true),
        ] {
            let outcome = Liar::run(lie, &line(load));
            assert_eq!(outcome.is_err(), is_seen, "{load}");
            if let Err(error) = outcome {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
            }
        }
    }
}
