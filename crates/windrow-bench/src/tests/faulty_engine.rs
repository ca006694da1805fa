//! An engine in memory with faults, which a run must find.
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
use crate::{Counters, Engine, Scan, run_loads};

/// The fault of a [`FaultyEngine`].
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    LosesAnUpdate,
    LosesARecord,
    MixesUpValues,
    KeepsDeletedKeys,
    CutsValues,
    ReversesScans,
    SkipsEverySecondEntry,
    EndsScansEarly,
}

/// An engine in memory with one fault.
struct FaultyEngine {
    entries: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    fault: Fault,
}

impl FaultyEngine {
    /// Runs `line` on an engine with `fault`.
    fn run(fault: Fault, line: &str) -> Result<()> {
        let open = |folder: &Path| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(Self::MARKER), "").unwrap();
            let entries = Mutex::default();
            Ok(Self { entries, fault })
        };
        run_loads::<Self>(&args(line), open, &Unseen, |_| Ok(()))
    }
}

struct FaultyScan<'a>(&'a FaultyEngine, Vec<u8>, Vec<u8>);

impl FaultyScan<'_> {
    /// Whether the scan ends after this key, as it does for one key of about seven.
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

impl Scan for FaultyScan<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.move_to(Bound::Included(key)))
    }

    fn next(&mut self) -> Result<bool> {
        let key = self.1.clone();
        match self.0.fault {
            Fault::ReversesScans => return Ok(self.move_back(Bound::Excluded(&key))),
            Fault::EndsScansEarly if self.is_early() => return Ok(false),
            _ => {}
        }
        let is_moved = self.move_to(Bound::Excluded(&key));
        if is_moved && self.0.fault == Fault::SkipsEverySecondEntry {
            let passed = self.1.clone();
            return Ok(self.move_to(Bound::Excluded(&passed)));
        }
        Ok(is_moved)
    }

    fn prev(&mut self) -> Result<bool> {
        let key = self.1.clone();
        if self.0.fault == Fault::EndsScansEarly && self.is_early() {
            return Ok(false);
        }
        if self.0.fault == Fault::SkipsEverySecondEntry && self.move_back(Bound::Excluded(&key)) {
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

impl Engine for FaultyEngine {
    const NAME: &'static str = "faulty";
    const MARKER: &'static str = "faulty";
    type Scan<'a> = FaultyScan<'a>;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut entries = self.entries.lock().unwrap();
        if self.fault == Fault::LosesAnUpdate && entries.contains_key(key) {
            return Ok(());
        }
        if self.fault == Fault::LosesARecord && entries.len() == 50 {
            entries.pop_first();
        }
        let value = match entries.last_entry() {
            Some(other) if self.fault == Fault::MixesUpValues => other.get().clone(),
            _ if self.fault == Fault::CutsValues => value[..value.len() / 2].to_vec(),
            _ => value.to_vec(),
        };
        entries.insert(key.to_vec(), value);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        if self.fault != Fault::KeepsDeletedKeys {
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

    fn scan(&self) -> Result<FaultyScan<'_>> {
        Ok(FaultyScan(self, Vec::new(), Vec::new()))
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

    fn close(self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_fault_fails_the_run() {
    let line = |load: &str| format!("ycsb-load,{load} --records 100 --ops 1000");
    for load in ["ycsb-a", "ycsb-b", "ycsb-d", "ycsb-e", "ycsb-f"] {
        FaultyEngine::run(Fault::None, &line(load)).unwrap();
        for (lie, is_seen) in [
            (Fault::LosesAnUpdate, !matches!(load, "ycsb-d" | "ycsb-e")),
            (Fault::LosesARecord, true),
            (Fault::MixesUpValues, true),
            (Fault::ReversesScans, load == "ycsb-e"),
            (Fault::SkipsEverySecondEntry, load == "ycsb-e"),
            (Fault::EndsScansEarly, load == "ycsb-e"),
        ] {
            let outcome = FaultyEngine::run(lie, &line(load));
            assert_eq!(outcome.is_err(), is_seen, "{load}");
            if let Err(error) = outcome {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
            }
        }
    }
}

#[test]
fn unsupported_loads_are_refused_before_the_first_load() {
    let open = |_: &Path| -> Result<FaultyEngine> { unreachable!("nothing is opened") };
    for (line, says) in [
        ("fillseq,compact", "compaction"),
        ("fillcounters,updatecounters", "updates"),
        ("fillcounters,optimisticpairs", "optimistic"),
        ("fillcounters,lockingpairs", "locking"),
        ("fillcounters,mergecounters", "merge operators"),
        ("bulkload", "bulk loads"),
    ] {
        let args = args(line);
        let error = run_loads::<FaultyEngine>(&args, open, &Unseen, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
}

#[test]
fn every_read_of_indexes_is_checked() {
    // Each key exists before the load, so none may be missing.
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
    // These loads have no concurrent writes.
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
            // Enough reads for the second step of the companion.
            "readwhilescanning" => read(load).replace("--reads 300", "--reads 120000"),
            _ => read(load),
        };
        FaultyEngine::run(Fault::None, &line).unwrap();
        for fault in [Fault::LosesARecord, Fault::MixesUpValues, Fault::CutsValues] {
            let error = FaultyEngine::run(fault, &line).expect_err(load);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
        }
        // With a companion that writes, a found key may be a new write.
        let is_shared = load.contains("writ") && !load.contains("scan") || load == mix;
        let writes = matches!(load, "updaterandom" | "appendrandom");
        if !is_shared && !writes {
            let error = FaultyEngine::run(Fault::KeepsDeletedKeys, &line).expect_err(load);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
        }
        if complete.contains(&load) {
            for fault in [Fault::SkipsEverySecondEntry, Fault::EndsScansEarly] {
                let error = FaultyEngine::run(fault, &line).expect_err(load);
                assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
            }
        }
        if scans.contains(&load) || load == mix {
            let error = FaultyEngine::run(Fault::ReversesScans, &line).expect_err(load);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{load}: {error}");
        }
    }
}

#[test]
fn counters_postings_ranges_and_queues_are_checked() {
    for (line, faults) in [
        (
            "fillcounters,readputcounters --num 100 --ops 300",
            vec![Fault::LosesARecord, Fault::CutsValues, Fault::LosesAnUpdate],
        ),
        (
            "fillcounters,pairs --num 100 --ops 300",
            vec![Fault::LosesAnUpdate, Fault::MixesUpValues],
        ),
        ("fillcounters --num 100", vec![Fault::SkipsEverySecondEntry]),
        (
            "appendpostings --num 60 --writes 300",
            vec![Fault::LosesARecord, Fault::CutsValues, Fault::LosesAnUpdate],
        ),
        (
            "fillseq,deleterange,seekacross --num 100 --reads 100",
            vec![
                Fault::KeepsDeletedKeys,
                Fault::EndsScansEarly,
                Fault::MixesUpValues,
            ],
        ),
        (
            "fillseq,popqueue --num 100 --deletes 60",
            vec![
                Fault::KeepsDeletedKeys,
                Fault::LosesARecord,
                Fault::MixesUpValues,
            ],
        ),
        (
            "fillseq,popqueues --num 100 --deletes 60",
            vec![Fault::KeepsDeletedKeys, Fault::LosesARecord],
        ),
    ] {
        FaultyEngine::run(Fault::None, line).unwrap();
        for fault in faults {
            let error = FaultyEngine::run(fault, line).expect_err(line);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{line}: {error}");
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
            vec![Fault::LosesAnUpdate, Fault::CutsValues],
        ),
        ("a put 50\nb put 50\nb get\n", vec![Fault::CutsValues]),
        ("b put 50\na put 50\na get\n", vec![Fault::MixesUpValues]),
        ("a put 50\na delete\na get\n", vec![Fault::KeepsDeletedKeys]),
        (
            "a put 50\nb put 50\nc put 50\nb scan 9\n",
            vec![Fault::ReversesScans],
        ),
        (lost.as_str(), vec![Fault::LosesARecord]),
    ] {
        fs::write(&trace, lines).unwrap();
        FaultyEngine::run(Fault::None, &line).unwrap();
        for fault in lies {
            let error = FaultyEngine::run(fault, &line).expect_err(lines);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{lines}: {error}");
        }
    }
}
