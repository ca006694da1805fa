//! Files that somebody has made for one purpose.

use super::archive::change_each_edit;
use super::bytes::{put_varint, take_varint};
use super::corpus::{BACKUPS, archived_originals, files_of};
use super::forge::{Files, Forgery, tag};
use super::logs::Log;
use super::targets::{Place, ends};
use super::units::{UnitKind, table_units};
use crate::disk::{OperationKind, SimDisk};
use crate::session::FOLDER;
use crate::{SteppedRuntime, unobserved};
use std::path::Path;
use std::sync::Arc;
use windrow::backup::RestoreTo;
use windrow::operators::Append;
use windrow::{Db, Durability, ErrorKind, Options, Result};

/// Options whose blocks have one entry each, if that has a value of [`BLOCK_VALUE`].
fn options(disk: &SimDisk) -> Options {
    let mut options = unobserved(Options::default())
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)));
    options.keyspace.large_from = 1000;
    options.keyspace.block_bytes = 128;
    options
}

const BLOCK_VALUE: [u8; 100] = [7; 100];

/// The name and the number of the only file with `extension`.
fn only_file(files: &Files, extension: &str) -> (String, u64) {
    let has_extension = |name: &&String| {
        Path::new(name)
            .extension()
            .is_some_and(|it| it == extension)
    };
    let mut names = files.keys().filter(has_extension);
    let name = names.next().unwrap();
    assert_eq!(names.next(), None);
    (
        name.clone(),
        name.split('.').next().unwrap().parse().unwrap(),
    )
}

/// The files of a killed database that `fill` has filled.
fn killed(fill: impl FnOnce(&Db) -> Result<()>) -> Files {
    let disk = SimDisk::new();
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    fill(&db).unwrap();
    files_of(&disk.end_process().image(), FOLDER)
}

/// A disk with these files.
fn disk_with(files: &Files) -> SimDisk {
    let disk = SimDisk::new();
    windrow::vfs::Vfs::create_dir_all(&disk, Path::new(FOLDER)).unwrap();
    disk.edit(|image| {
        for (name, bytes) in files {
            image.write(&Path::new(FOLDER).join(name), bytes).unwrap();
        }
    });
    disk
}

/// Otherwise a batch of a few kilobytes makes an open, a secondary or a repair read a value again and again.
#[test]
fn entries_that_point_to_one_value_are_refused_before_they_are_read() {
    const TIMES: u64 = 2000;
    let mut files = killed(|db| {
        let keyspace = db.keyspace("k")?;
        keyspace.insert_with("key", vec![7; 100_000], Durability::Sync)
    });
    let (name, number) = only_file(&files, "wal");
    let mut log = Log::read(number, &files[&name]);
    let records = log
        .chunks
        .iter_mut()
        .filter(|chunk| !chunk.payload.is_empty());
    let record = records.last().unwrap();
    // A batch of one entry without compression has a head of one byte.
    assert_eq!(record.payload[0], 4);
    let mut payload = Vec::new();
    put_varint(&mut payload, 4 * TIMES);
    for _ in 0..TIMES {
        payload.extend_from_slice(&record.payload[1..]);
    }
    record.payload = payload;
    files.insert(name, log.write().0);
    let disk = disk_with(&files);
    disk.set_faults([]);
    let error = Db::open(FOLDER, options(&disk)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("does not follow"), "{error}");
    let reads = disk.operations(OperationKind::Read);
    assert!(reads < 200, "{reads}");

    let disk = disk_with(&files);
    disk.set_faults([]);
    let error = Db::open_secondary(FOLDER, options(&disk)).unwrap_err();
    assert!(error.to_string().contains("does not follow"), "{error}");
    let reads = disk.operations(OperationKind::Read);
    assert!(reads < 200, "{reads}");

    let disk = disk_with(&files);
    disk.set_faults([]);
    Db::repair(FOLDER, "/data/new", &options(&disk)).unwrap();
    let reads = disk.operations(OperationKind::Read);
    assert!(reads < 1000, "{reads}");
}

/// Otherwise the flush panicked, after its edit was durable.
#[test]
fn a_flush_beside_a_table_that_is_as_new_is_refused() {
    let files = killed(|db| {
        let keyspace = db.keyspace("k")?;
        keyspace.insert("flushed", "")?;
        db.flush()?;
        keyspace.insert_with("logged", "", Durability::Sync)
    });
    // The log has both entries. Without this record the memtable gets both, too.
    let mut forgery = Forgery::new(files, &[]);
    forgery.each_edit(|records| {
        let before = records.len();
        records.retain(|record| record.tag != tag::FLUSHED);
        records.len() < before
    });
    let disk = disk_with(&forgery.files);
    let db = Db::open(FOLDER, options(&disk)).unwrap();
    let error = db.flush().unwrap_err();
    assert!(error.to_string().contains("as new as"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

/// Otherwise a transaction came to a range that it has deleted again and again.
#[test]
fn entries_that_lead_back_into_a_deleted_range_are_refused() {
    let files = killed(|db| {
        let keyspace = db.keyspace("k")?;
        for key in ["aardvark", "alpha", "bravo", "echo"] {
            keyspace.insert(key, BLOCK_VALUE)?;
        }
        // A seek comes to it, and goes on to an entry that it does not compare with its target.
        keyspace.remove("delta")?;
        db.flush()
    });
    for (forged, is_backward) in [
        (&[("echo", b'b')][..], false),
        (&[("aardvark", b'c'), ("alpha", b'c')], true),
    ] {
        let disk = disk_with(&with_first_letters(files.clone(), forged));
        let db = Db::open(FOLDER, options(&disk)).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        let transaction = db.transaction();
        transaction.delete_range(&keyspace, "b".."d").unwrap();
        let mut cursor = transaction.cursor(&keyspace).unwrap();
        let mut moved = if is_backward {
            cursor.seek_to_last()
        } else {
            cursor.seek_to_first()
        };
        for _ in 0..9 {
            if !matches!(moved, Ok(true)) {
                break;
            }
            moved = if is_backward {
                cursor.prev()
            } else {
                cursor.next()
            };
        }
        let error = moved.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("not in order"), "{error}");
        // Every later move is an error, too.
        assert!(cursor.next().is_err() && cursor.prev().is_err());
        assert!(cursor.seek("a").is_err() && cursor.seek_to_last().is_err());
        assert!(!cursor.is_valid());
    }
}

/// Otherwise a get came to the last operand again and again, and its chain grew until there was no memory left.
#[test]
fn operands_with_the_number_of_no_write_end_a_chain() {
    let with_operator =
        |disk: &SimDisk| options(disk).with_merge_operator("k", Arc::new(Append::new(*b",")));
    for (operands, folded) in [(&["a"][..], &b"a"[..]), (&["a", "b"], b"a,b")] {
        let disk = SimDisk::new();
        let db = Db::open(FOLDER, with_operator(&disk)).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        let mut snapshots = Vec::new();
        for operand in operands {
            keyspace.merge("key", operand).unwrap();
            // A flush folds the operands that no snapshot keeps apart.
            snapshots.push(db.snapshot());
        }
        db.flush().unwrap();
        drop(snapshots);
        let mut files = files_of(&disk.end_process().image(), FOLDER);
        let (name, number) = only_file(&files, "table");
        let bytes = files.get_mut(&name).unwrap();
        let units = table_units(number, bytes).into_iter();
        let mut blocks = units.filter(|unit| unit.kind == UnitKind::DataBlock);
        let block = blocks.next().unwrap();
        // The base of the block: the oldest of its entries has the number 0 now.
        bytes[block.covered.start + BASE_OFFSET..][..7].fill(0);
        block.seal(bytes);
        let disk = disk_with(&files);
        let db = Db::open(FOLDER, with_operator(&disk)).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        assert_eq!(keyspace.get("key").unwrap().as_deref(), Some(folded));
    }
}

/// Otherwise the new database was poisoned, as after a failed write, and the archive not called damaged.
#[test]
fn a_keyspace_of_an_archive_that_is_not_newer_than_others_is_damage() {
    let mut refused = 0;
    for original in archived_originals() {
        let mut store = original.backups.clone();
        // Each keyspace has a smaller number than the one before.
        let mut ids = (1..1000).rev();
        change_each_edit(&mut store, |records| {
            let id = ids.next().unwrap();
            let own = records.iter_mut();
            for record in own.filter(|record| tag::OF_KEYSPACE.contains(&record.tag)) {
                let mut rest = &record.body[..];
                take_varint(&mut rest).unwrap();
                let mut body = Vec::new();
                put_varint(&mut body, id);
                body.extend_from_slice(rest);
                record.body = body;
            }
        });
        let backups = || Place::new(BACKUPS, &store, original.moment).backups();
        for end in ends(&backups().reachable().unwrap()) {
            let restored = backups().restore_to(RestoreTo::Sequence(end), None, "/data/new");
            if let Err(error) = restored {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                refused += u32::from(error.to_string().contains("not newer than"));
            }
        }
    }
    assert!(refused > 0);
}

/// The offset in a data block of its base.
const BASE_OFFSET: usize = 21;

/// `files` with other first letters of these keys in the only table.
fn with_first_letters(mut files: Files, keys: &[(&str, u8)]) -> Files {
    let (name, number) = only_file(&files, "table");
    let bytes = files.get_mut(&name).unwrap();
    for (key, letter) in keys {
        let units = table_units(number, bytes).into_iter();
        let mut blocks = units.filter(|unit| unit.kind == UnitKind::DataBlock);
        let found = blocks.find_map(|unit| {
            let block = &bytes[unit.covered.clone()];
            let mut parts = block.windows(key.len());
            let at = parts.position(|part| part == key.as_bytes())?;
            Some((unit.covered.start + at, unit))
        });
        let (at, unit) = found.unwrap();
        bytes[at] = *letter;
        unit.seal(bytes);
    }
    files
}
