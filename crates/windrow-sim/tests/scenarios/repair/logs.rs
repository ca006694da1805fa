//! Repairs of logs: holes, and files that are missing.

use std::sync::Arc;

use windrow::operators::Append;
use windrow::{Db, ErrorKind, ManifestUse};
use windrow_sim::SimDisk;

use super::{NEW, noise, open_new, options, remove, repair};
use crate::common::{FOLDER, entries};

#[test]
fn a_hole_in_a_log_loses_one_record_and_no_operand_counts_twice() {
    const LETTERS: &str = "abcdef";
    let with_operator = |disk: &SimDisk| {
        let operator = Arc::new(Append::new(""));
        options(disk).with_merge_operator("letters", operator)
    };
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, with_operator(&disk)).unwrap();
    let letters = db.keyspace("letters").unwrap();
    let log = disk.image().files_with("wal").pop().unwrap();
    let mut ends = Vec::new();
    for (index, letter) in LETTERS.chars().enumerate() {
        letters.merge("key", letter.to_string()).unwrap();
        ends.push(disk.image().read(&log).unwrap().len());
        if index == 2 {
            // Its first three operands are one in a table, and the log has them still.
            db.flush().unwrap();
        }
    }
    drop(letters);
    db.close().unwrap();
    for (index, end) in ends.iter().enumerate() {
        let disk = SimDisk::from_image(disk.image());
        disk.edit(|image| image.flip(&log, end - 1, 1)).unwrap();
        let refused = Db::open(FOLDER, with_operator(&disk)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corruption);
        let report = Db::repair(FOLDER, NEW, &with_operator(&disk)).unwrap();
        let number = index as u64 + 1;
        assert_eq!(
            report.losses[0].sequences,
            Some((number, number)),
            "{report:?}"
        );
        let mut expected = LETTERS.to_owned();
        if index > 2 {
            expected.remove(index);
        }
        let db = Db::open(NEW, with_operator(&disk)).unwrap();
        let found = db.keyspace("letters").unwrap().get("key").unwrap();
        assert_eq!(found.as_deref(), Some(expected.as_bytes()), "{index}");
    }
}

#[test]
fn entries_keep_their_order_over_two_holes_of_unknown_length() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let main = db.keyspace("main").unwrap();
    let log = disk.image().files_with("wal").pop().unwrap();
    let mut ends = Vec::new();
    for number in 0..40_u32 {
        match number {
            26 => main.insert("key", "old").unwrap(),
            34 => main.insert("key", "new").unwrap(),
            _ => main.insert(number.to_be_bytes(), "value").unwrap(),
        }
        ends.push(disk.image().read(&log).unwrap().len());
    }
    drop(main);
    db.close().unwrap();
    // Two records that are beside each other do not say how many entries they had.
    disk.edit(|image| {
        for number in [10, 11, 32, 33] {
            image.flip(&log, ends[number] - 1, 1).unwrap();
        }
    });
    let report = repair(&disk).unwrap();
    assert_eq!(report.manifest, ManifestUse::Whole);
    assert_eq!(report.losses.len(), 2, "{report:?}");
    let main = open_new(&disk).unwrap().keyspace("main").unwrap();
    assert_eq!(main.get("key").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(entries(&main).len(), 35);
}

#[test]
fn a_missing_value_file_loses_its_values_alone() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let main = db.keyspace("main").unwrap();
    main.insert("large", noise(1)).unwrap();
    for key in 0..10_u32 {
        main.insert(key.to_be_bytes(), "small").unwrap();
    }
    // The process is killed.
    let disk = SimDisk::from_image(disk.image());
    remove(&disk, &[".values"]);
    let report = repair(&disk).unwrap();
    assert_eq!(report.losses.len(), 2, "{report:?}");
    assert_eq!(report.losses[0].what, "the value file is missing");
    assert_eq!(report.losses[1].from.as_deref(), Some(&b"large"[..]));
    let main = open_new(&disk).unwrap().keyspace("main").unwrap();
    assert_eq!(entries(&main).len(), 10);
}

#[test]
fn a_missing_log_loses_its_records_alone() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let main = db.keyspace("main").unwrap();
    // Full memtables begin new logs. No job runs meanwhile.
    let mut number = 0_u32;
    while disk.image().files_with("wal").len() < 3 && number < 20_000 {
        main.insert(number.to_be_bytes(), "value").unwrap();
        number += 1;
    }
    for number in number..number + 10 {
        main.insert(number.to_be_bytes(), "value").unwrap();
    }
    // The process is killed.
    let disk = SimDisk::from_image(disk.image());
    let logs = disk.image().files_with("wal");
    assert_eq!(logs.len(), 3);
    disk.edit(|image| image.remove(&logs[1]).unwrap());
    let report = repair(&disk).unwrap();
    assert_eq!(report.losses[0].what, "the log is missing");
    let main = open_new(&disk).unwrap().keyspace("main").unwrap();
    for number in (0..10).chain(number..number + 10) {
        assert!(
            main.contains_key(number.to_be_bytes()).unwrap(),
            "{number}: {report:?}"
        );
    }
}

#[test]
fn a_damaged_header_of_a_log_loses_no_entry() {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let main = db.keyspace("main").unwrap();
    let mut number = 0_u32;
    while disk.image().files_with("wal").len() < 2 && number < 20_000 {
        main.insert(number.to_be_bytes(), "value").unwrap();
        number += 1;
    }
    main.insert("before", "value").unwrap();
    db.persist().unwrap();
    // Its record says that everything before it is durable.
    main.insert("last", "value").unwrap();
    let expected = entries(&main);
    // The process is killed.
    let disk = SimDisk::from_image(disk.image());
    let log = disk.image().files_with("wal").pop().unwrap();
    disk.edit(|image| image.flip(&log, 20, 1)).unwrap();
    let report = repair(&disk).unwrap();
    assert_eq!(report.losses.len(), 1, "{report:?}");
    let main = open_new(&disk).unwrap().keyspace("main").unwrap();
    assert!(entries(&main) == expected, "{report:?}");
}
