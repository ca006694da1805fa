//! Files that somebody has made for one purpose.

use super::bytes::put_varint;
use super::corpus::files_of;
use super::forge::Files;
use super::logs::Log;
use crate::disk::{OperationKind, SimDisk};
use crate::session::FOLDER;
use crate::{SteppedRuntime, unobserved};
use std::path::Path;
use std::sync::Arc;
use windrow::{Db, Durability, ErrorKind, Options, Result};

fn options(disk: &SimDisk) -> Options {
    let mut options = unobserved(Options::default())
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(1)));
    options.keyspace.large_from = 1000;
    options
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

/// Otherwise a batch of a few kilobytes makes an open read a value again and again.
#[test]
fn entries_that_point_to_one_value_are_refused_before_they_are_read() {
    const TIMES: u64 = 2000;
    let mut files = killed(|db| {
        let keyspace = db.keyspace("k")?;
        keyspace.insert_with("key", vec![7; 100_000], Durability::Sync)
    });
    let name = files
        .keys()
        .find(|name| Path::new(name).extension().is_some_and(|end| end == "wal"))
        .unwrap()
        .clone();
    let number = name.split('.').next().unwrap().parse().unwrap();
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
}
