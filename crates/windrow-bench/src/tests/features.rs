//! The loads on counters, postings, ranges and queues.

use windrow::ErrorKind;

use super::{args, reports, try_reports};
use crate::Operation;

#[test]
fn counters_have_every_increment_of_all_threads() {
    let loads = "fillcounters,updatecounters,optimisticpairs,lockingpairs,readcounters";
    // Few counters, so threads meet.
    let line = format!("{loads} --num 50 --hot-keys 5 --ops 2000 --reads 100 --threads 4");
    // A lost increment is an error.
    let reports = reports(&line);
    for report in &reports[1..4] {
        assert_eq!(report.ops, 2000, "{}", report.name);
    }
    assert_eq!(reports[2].operations[0].operation, Operation::Transaction);
    // Two counters of 16 and 100 bytes per pair.
    assert_eq!(reports[2].user_bytes, 2000 * 2 * 116);
    assert!(
        reports
            .iter()
            .all(|report| report.live_bytes == Some(50 * 116))
    );
    assert_eq!(reports[4].found, 100);
}

#[test]
fn merged_counters_have_every_increment() {
    let checksum = |load: &str| {
        let line = format!(
            "fillcounters,putcounters,{load},readcounters --num 100 --ops 3000 --value-size 8"
        );
        let reports = reports(&line);
        assert!(reports.iter().all(|report| report.repeatable));
        reports[3].checksum.clone()
    };
    // Each load has its own stream of keys. The bench checks the sum of all counters.
    assert_eq!(checksum("mergecounters"), checksum("mergecounters"));
    assert_ne!(checksum("mergecounters"), checksum("readputcounters"));
    let threads = "--num 10 --ops 4000 --threads 3 --unsettled";
    let merged = reports(&format!(
        "fillcounters,mergecounters,readcounters {threads}"
    ));
    assert_eq!(merged[1].user_bytes, 4000 * 24);
    assert_eq!(
        merged[0].settings["merge_operator"],
        "windrow.add_u64.wrapping"
    );
    // Without a transaction, increments of several threads may be lost, and that is no error.
    reports(&format!("fillcounters,readputcounters,pairs {threads}"));
}

#[test]
fn lists_of_postings_have_every_posting() {
    for threads in [1, 3] {
        let line = "mergepostings,readpostings,appendpostings,readpostings --num 20 --writes 1000 --reads 50";
        let reports = reports(&format!("{line} --threads {threads}"));
        let (merged, appended) = (&reports[0], &reports[2]);
        assert_eq!((merged.ops, appended.ops), (1000, 1000));
        assert_eq!(merged.user_bytes, appended.user_bytes);
        // 20 keys, 1000 postings, and a separator between two.
        assert_eq!(merged.live_bytes, Some(20 * 16 + 1000 * 9 - 20));
        assert!(appended.written_bytes > merged.written_bytes);
        assert_eq!((reports[1].found, reports[3].found), (50, 50));
    }
}

#[test]
fn a_deleted_range_is_a_hole() {
    let loads = "fillseq,readhot,seekacross,deleterange,seekacross,readhot,readrandom,readseq";
    let reports = reports(&format!("{loads} --num 1000 --reads 400"));
    let deleted = &reports[3];
    assert_eq!(deleted.ops, 500);
    assert_eq!(deleted.operations[0].operation, Operation::DeleteRange);
    // The range takes two keys, and no other bytes.
    assert_eq!(deleted.user_bytes, 32);
    assert_eq!(deleted.live_bytes, Some(500 * 116));
    assert_eq!((reports[4].found, reports[5].found), (400, 400));
    assert!((150..250).contains(&reports[6].found));
    assert_eq!(reports[7].found, 400);
    // Few keys, and none before the middle.
    for num in 2..6 {
        let line = format!("fillseq,deleterange,seekacross,readseq --num {num}");
        let reports = self::reports(&line);
        assert_eq!(reports[3].found, num - reports[1].ops);
    }
}

#[test]
fn a_bulk_load_writes_what_single_writes_write() {
    let checksum = |fill: &str| {
        let reports = reports(&format!("{fill},readseq --num 2500 --threads 2"));
        assert_eq!((reports[0].ops, reports[0].user_bytes), (2500, 2500 * 116));
        assert_eq!(reports[0].live_bytes, Some(2500 * 116));
        (reports[0].written_bytes, reports[1].checksum.clone())
    };
    let (loaded, single) = (checksum("bulkload"), checksum("fillseq"));
    assert_eq!(loaded.1, single.1);
    // No log.
    assert!(loaded.0 < single.0);
}

#[test]
fn ingested_files_hold_what_single_writes_write() {
    for num in [3, 2500] {
        let checksum = |fill: &str| {
            let reports = reports(&format!("{fill},readseq --num {num} --threads 2"));
            assert_eq!((reports[0].ops, reports[0].user_bytes), (num, num * 116));
            assert_eq!(reports[0].live_bytes, Some(num * 116));
            reports[1].checksum.clone()
        };
        assert_eq!(checksum("ingest"), checksum("fillseq"));
    }
    // The files are removed, and a store is not left with them.
    let folder = tempfile::tempdir().unwrap();
    reports(&format!(
        "ingest --num 100 --db {}",
        folder.path().display()
    ));
    let left = std::fs::read_dir(folder.path().join("windrow")).unwrap();
    let left = left.map(|file| file.unwrap().path());
    let mut extensions = left.filter_map(|path| path.extension().map(ToOwned::to_owned));
    assert!(extensions.all(|extension| extension != "ingested"));
}

#[test]
fn a_compaction_filter_removes_half_of_the_keys() {
    let loads = "fillseq,compact,readrandom,compactfiltered,readrandom,readseq,compact,readseq";
    let reports = reports(&format!("{loads} --num 1000 --reads 400"));
    let found: Vec<u64> = reports.iter().map(|report| report.found).collect();
    assert_eq!((found[2], found[5], found[7]), (400, 400, 400));
    assert!((150..250).contains(&found[4]), "{found:?}");
    let filtered = &reports[3];
    assert_eq!(filtered.ops, 1000);
    assert_eq!(filtered.operations[0].operation, Operation::Filter);
    assert_eq!(filtered.live_bytes, Some(500 * 116));
}

#[test]
fn prepared_pairs_lose_no_increment() {
    let line =
        "fillcounters,preparedpairs,readcounters --num 50 --hot-keys 5 --ops 200 --threads 3";
    let reports = reports(line);
    assert_eq!((reports[1].ops, reports[1].user_bytes), (200, 200 * 232));
    assert_eq!(reports[1].operations[0].operation, Operation::Transaction);
}

#[test]
fn sizes_of_ranges_are_estimated() {
    let reports = reports("fillseq,approximatesizerandom --num 5000 --reads 300");
    assert_eq!(reports[1].ops, 300);
    // Two random keys are seldom in one block.
    assert!(reports[1].found > 250, "{}", reports[1].found);
}

#[test]
fn queues_give_their_first_entries() {
    let reports = reports("fillseq,popqueue,popqueues,readseq,popqueue --num 1000 --deletes 200");
    let found: Vec<u64> = reports.iter().map(|report| report.found).collect();
    // The first queue of four is the front of the one queue, which is 200 shorter.
    assert_eq!(found, [0, 200, 200, 600, 200]);
    // The first queue of four is empty.
    let empty = self::reports("fillseq,popqueue,popqueues,readseq --num 10 --deletes 4");
    let found: Vec<u64> = empty.iter().map(|report| report.found).collect();
    assert_eq!(found, [0, 4, 3, 3]);
}

#[test]
fn counters_and_postings_need_stores_of_their_own() {
    for (line, says) in [
        ("fillseq,readcounters", "fillcounters"),
        ("fillcounters,readseq", "fillseq"),
        ("fillcounters,mergepostings,readcounters", "mergepostings"),
        ("ycsb-load,readpostings", "appendpostings"),
        ("fillcounters,ycsb-a", "ycsb-load"),
        (
            "fillcounters,mergecounters,mergepostings --value-size 8",
            "operators",
        ),
        (
            "fillcounters,mergecounters --value-size 100",
            "--value-size 8",
        ),
        ("fillcounters --value-size 7", "8 bytes"),
        ("fillcounters,pairs --num 1", "two keys"),
        ("fillcounters,pairs --hot-keys 1", "two keys"),
        ("readcounters", "fillcounters"),
    ] {
        let error = try_reports(&args(line)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{line}: {error}");
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
    // A store of an earlier run.
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("--num 30 --ops 100 --db {}", folder.path().display());
    let filled = reports(&format!("fillcounters,updatecounters {settings}"));
    let later = reports(&format!("readcounters,updatecounters,flush {settings}"));
    assert_eq!(later[1].live_bytes, filled[1].live_bytes);
    let error = try_reports(&args(&format!("readcounters {settings} --key-size 17"))).unwrap_err();
    assert!(error.to_string().contains("fillcounters"), "{error}");
}
