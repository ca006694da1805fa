//! Reads of kept logs that fail, and damage to these logs.

use std::path::PathBuf;
use std::time::Duration;

use windrow::ErrorKind;
use windrow_sim::SimDisk;
use windrow_sim::disk::{Fault, OperationKind};

use super::{contents, held, open};
use crate::common::kind;

#[test]
fn a_change_that_could_not_be_read_comes_with_the_next_call() {
    let mut failed = 0;
    for kind in [
        OperationKind::Open,
        OperationKind::Read,
        OperationKind::Length,
    ] {
        for at in 0.. {
            let disk = SimDisk::new();
            let (db, consumer, all) = held(&disk);
            drop((consumer, db));
            let db = open(&disk);
            let consumer = db.consumer("c").unwrap();
            disk.set_faults([Fault::io(kind, at)]);
            let mut found = Vec::new();
            let mut errors = 0;
            let mut changes = loop {
                match consumer.changes() {
                    Ok(changes) => break changes,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                        errors += 1;
                    }
                }
            };
            loop {
                match changes.next(Duration::ZERO) {
                    Ok(Some(change)) => found.push(change),
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                        errors += 1;
                    }
                }
            }
            assert_eq!(found, all, "{kind:?} {at}");
            assert!(errors <= 1);
            failed += errors;
            if disk.fault_log().is_empty() {
                break;
            }
        }
    }
    assert!(failed > 15, "{failed} reads failed");
}

/// The logs that only the consumer needs.
fn kept_logs(disk: &SimDisk) -> Vec<PathBuf> {
    let mut logs = disk.image().files_with("wal");
    logs.sort();
    // The last one was written; the one before it is long gone from recovery as well.
    logs.truncate(logs.len() - 2);
    assert!(logs.len() > 2, "{logs:?}");
    logs
}

#[test]
fn damage_to_a_kept_log_is_named_and_harms_nothing_else() {
    let disk = SimDisk::new();
    let (db, consumer, all) = held(&disk);
    let before = contents(&db);
    drop(consumer);
    db.close().unwrap();
    let logs = kept_logs(&disk);
    let image = disk.image();
    let mut damaged = 0;
    for (index, path) in logs.iter().enumerate() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let length = image.read(path).unwrap().len();
        for offset in (index..length).step_by(43) {
            let disk = SimDisk::from_image(image.clone());
            disk.edit(|image| image.flip(path, offset, 1 << (offset % 8)))
                .unwrap();
            let db = open(&disk);
            assert_eq!(contents(&db), before);
            let consumer = db.consumer("c").unwrap();
            let mut changes = consumer.changes().unwrap();
            let mut found = Vec::new();
            let error = loop {
                match changes.next(Duration::ZERO) {
                    Ok(Some(change)) => found.push(change),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            assert_eq!(found[..], all[..found.len()], "{name} {offset}");
            let error = error.unwrap_or_else(|| panic!("{name} {offset}: no error"));
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(error.to_string().contains(&name), "{error}");
            assert!(error.offset().is_some(), "{error}");
            assert_eq!(kind(changes.next(Duration::ZERO)), ErrorKind::Corruption);
            damaged += 1;
        }
    }
    assert!(damaged > 100, "{damaged}");
    // A missing log, and one that is cut.
    for cut in [false, true] {
        let disk = SimDisk::from_image(image.clone());
        let path = &logs[1];
        disk.edit(|image| {
            let bytes = image.read(path).unwrap();
            image.remove(path).unwrap();
            if cut {
                image.write(path, &bytes[..bytes.len() / 2]).unwrap();
            }
        });
        let db = open(&disk);
        assert_eq!(contents(&db), before);
        let mut changes = db.consumer("c").unwrap().changes().unwrap();
        let error = loop {
            match changes.next(Duration::ZERO) {
                Ok(change) => assert!(change.is_some(), "the end without an error"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let report = db.verify().unwrap();
        assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
    }
}
