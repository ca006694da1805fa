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
use crate::measure::progress::Unseen;
use crate::{Counters, Engine, LevelShape, Scan, run_loads};

/// What a [`Liar`] does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    None,
    LosesAnUpdate,
    LosesARecord,
    MixesUpValues,
    KeepsWhatIsDeleted,
    CutsValues,
    TurnsScansAround,
    SkipsEverySecond,
    EndsEarly,
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
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(Self::MARKER), "").unwrap();
            let entries = Mutex::default();
            Ok(Self { entries, lie })
        };
        run_loads::<Self>(&args(line), open, &Unseen, |_| Ok(()))
    }
}

struct LiarScan<'a>(&'a Liar, Vec<u8>, Vec<u8>);

impl LiarScan<'_> {
    /// Whether this is one key of about seven, behind which the scan ends.
    fn is_early(&self) -> bool {
        let sum: u64 = self.1.iter().map(|&byte| u64::from(byte)).sum();
        sum.is_multiple_of(7)
    }

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

impl LiarScan<'_> {
    fn move_back(&mut self, to: Bound<&[u8]>) -> bool {
        let entries = self.0.entries.lock().unwrap();
        let last = entries.range::<[u8], _>((Bound::Unbounded, to)).next_back();
        let Some((key, value)) = last else {
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
        match self.0.lie {
            Lie::TurnsScansAround => return Ok(self.move_back(Bound::Excluded(&key))),
            Lie::EndsEarly if self.is_early() => return Ok(false),
            _ => {}
        }
        let is_moved = self.move_to(Bound::Excluded(&key));
        if is_moved && self.0.lie == Lie::SkipsEverySecond {
            let passed = self.1.clone();
            return Ok(self.move_to(Bound::Excluded(&passed)));
        }
        Ok(is_moved)
    }

    fn prev(&mut self) -> Result<bool> {
        let key = self.1.clone();
        if self.0.lie == Lie::EndsEarly && self.is_early() {
            return Ok(false);
        }
        if self.0.lie == Lie::SkipsEverySecond && self.move_back(Bound::Excluded(&key)) {
            let passed = self.1.clone();
            return Ok(self.move_back(Bound::Excluded(&passed)));
        }
        Ok(self.move_back(Bound::Excluded(&key)))
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        Ok(self.move_back(Bound::Unbounded))
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
            _ if self.lie == Lie::CutsValues => value[..value.len() / 2].to_vec(),
            _ => value.to_vec(),
        };
        entries.insert(key.to_vec(), value);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        if self.lie != Lie::KeepsWhatIsDeleted {
            self.entries.lock().unwrap().remove(key);
        }
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

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
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
            (Lie::TurnsScansAround, load == "ycsb-e"),
            (Lie::SkipsEverySecond, load == "ycsb-e"),
            (Lie::EndsEarly, load == "ycsb-e"),
        ] {
            let outcome = Liar::run(lie, &line(load));
            assert_eq!(outcome.is_err(), is_seen, "{load}");
            if let Err(error) = outcome {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
            }
        }
    }
}

#[test]
fn what_an_engine_has_not_is_refused_before_the_first_load() {
    let open = |_: &Path| -> Result<Liar> { unreachable!("nothing is opened") };
    let args = args("fillseq,compact --num 10");
    let error = run_loads::<Liar>(&args, open, &Unseen, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("compaction"), "{error}");
}

#[test]
fn every_read_of_indexes_is_checked() {
    // Each key is written before, so that none may be missing.
    let read = |load: &str| {
        format!(
            "fillseq,deleteseq,{load} --num 100 --deletes 20 --reads 300 --writes 100 --batch-size 3"
        )
    };
    let mix = "mixgraph --keyrange-num 10 --mix-put-ratio 0.1 --mix-seek-ratio 0.4";
    let scans = [
        "readseq",
        "readtocache",
        "seek10",
        "fwdrange",
        "fwdrangewhilewriting",
        "readwhilescanning",
    ];
    // Nobody writes beside these.
    let complete = [
        "seek10",
        "seek100",
        "fwdrange",
        "revrange",
        "readseq",
        "readreverse",
        "readtocache",
    ];
    for load in [
        "readrandom",
        "readhot --num 1000",
        "multireadrandom",
        "multireadwhilewriting",
        "readwhilewriting",
        "readwhilescanning",
        "readrandomwriterandom",
        "updaterandom",
        "appendrandom",
        "seekrandom",
        "seekrandomwhilewriting",
        "seek10",
        "seek100",
        "fwdrange",
        "revrange",
        "fwdrangewhilewriting",
        "revrangewhilewriting",
        "readseq",
        "readreverse",
        "readtocache",
        mix,
    ] {
        let line = match load {
            "readhot --num 1000" => {
                "fillseq,deleteseq,readhot --num 1000 --deletes 5 --reads 300".to_owned()
            }
            // So long that the thread which scans comes to its second step.
            "readwhilescanning" => read(load).replace("--reads 300", "--reads 30000"),
            _ => read(load),
        };
        Liar::run(Lie::None, &line).unwrap();
        for lie in [Lie::LosesARecord, Lie::MixesUpValues, Lie::CutsValues] {
            let error = Liar::run(lie, &line).expect_err(load);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
        }
        // Beside a writer, what is found may have been written anew.
        let is_shared = load.contains("writ") && !load.contains("scan") || load == mix;
        let writes = matches!(load, "updaterandom" | "appendrandom");
        if !is_shared && !writes {
            let error = Liar::run(Lie::KeepsWhatIsDeleted, &line).expect_err(load);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
        }
        if complete.contains(&load) {
            for lie in [Lie::SkipsEverySecond, Lie::EndsEarly] {
                let error = Liar::run(lie, &line).expect_err(load);
                assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
            }
        }
        if scans.contains(&load) || load == mix {
            let error = Liar::run(Lie::TurnsScansAround, &line).expect_err(load);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
        }
    }
}

#[test]
fn a_replay_checks_what_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let line = format!("replay --trace {}", trace.display());
    let long = (0..60).map(|key| format!("k{key:02} put 9\n"));
    let lost = format!("{}k00 get\n", long.collect::<String>());
    for (lines, lies) in [
        (
            "a put 50\na put 50\na get\n",
            vec![Lie::LosesAnUpdate, Lie::CutsValues],
        ),
        ("a put 50\nb put 50\nb get\n", vec![Lie::CutsValues]),
        ("b put 50\na put 50\na get\n", vec![Lie::MixesUpValues]),
        ("a put 50\na delete\na get\n", vec![Lie::KeepsWhatIsDeleted]),
        (
            "a put 50\nb put 50\nc put 50\nb scan 9\n",
            vec![Lie::TurnsScansAround],
        ),
        (lost.as_str(), vec![Lie::LosesARecord]),
    ] {
        fs::write(&trace, lines).unwrap();
        Liar::run(Lie::None, &line).unwrap();
        for lie in lies {
            let error = Liar::run(lie, &line).expect_err(lines);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{lines}: {error}");
        }
    }
}
