//! Repairs of files that no database has written.

use std::path::Path;

use super::logs::HOLES_MAX;
use super::report::ManifestUse;
use super::{UNKNOWN_KEYSPACES_MAX, repair};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Error, FileNumber, KeyspaceId, Kind, Result, SegmentId, Trailer};
use crate::codec::Compression;
use crate::engine::commit::expiring::Lifetime;
use crate::engine::{Access, Handle};
use crate::filter::FILTER_UNITS_MAX;
use crate::log::batch;
use crate::log::{LogWriter, WalHeader};
use crate::options::Options;
use crate::table::{TableOptions, TableWriter};

#[test]
fn a_forged_sequence_number_leaves_numbers_for_later_writes() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    options.vfs.create_dir_all(&from).unwrap();
    for (number, key, sequence) in [(7, "sound", 5), (9, "forged", SEQUENCE_MAX)] {
        let table_options = TableOptions {
            block_bytes: 4096,
            filter_units: [0.0; FILTER_UNITS_MAX],
            compression: Compression::None,
        };
        let (number, segment) = (FileNumber(number), SegmentId(number + 1));
        let writer = TableWriter::create(&*options.vfs, &from, number, segment, &table_options);
        let mut writer = writer.unwrap().of_keyspace(KeyspaceId(1));
        let trailer = Trailer::new(sequence, Kind::Value);
        writer.add(key.as_bytes(), trailer, b"value").unwrap();
        writer.finish().unwrap();
    }
    let report = repair(&from, &to, &options).unwrap();
    assert_eq!(report.manifest, ManifestUse::Missing);
    let forged = report
        .losses
        .iter()
        .find(|loss| loss.what.contains("no database reaches"));
    assert!(
        forged.unwrap().what.contains("no database reaches"),
        "{report:?}"
    );
    let handle = Handle::open(&to, options, Access::ReadWrite).unwrap();
    let engine = handle.engine();
    let keyspace = engine.open_keyspace("keyspace-1", None).unwrap();
    let later = engine.bulk_load(&keyspace, Lifetime::Default, |writer| {
        writer.add(b"later", b"value", None)
    });
    assert_eq!(later.map_err(|error: Error| error.to_string()), Ok(1));
    let has = |key: &[u8]| {
        let found = engine.get(&keyspace, key, None, |_| Ok(()));
        found.unwrap().is_some()
    };
    assert!(has(b"sound") && has(b"later") && !has(b"forged"));
    handle.close().unwrap();
}

#[cfg(unix)]
#[test]
fn a_name_that_leads_to_no_file_is_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let handle = Handle::open(&from, options.clone(), Access::ReadWrite).unwrap();
    handle.close().unwrap();
    for name in [
        "000900.wal",
        "000901.table",
        "000902.values",
        "000903.manifest",
    ] {
        std::os::unix::fs::symlink("nowhere", from.join(name)).unwrap();
    }
    options.vfs.remove(&from.join("CURRENT")).unwrap();
    let report = repair(&from, &to, &options).unwrap();
    let dangling = report
        .losses
        .iter()
        .filter(|loss| loss.what == "the name leads to no file");
    assert_eq!(dangling.count(), 4, "{report:?}");
    assert_eq!(report.manifest, ManifestUse::Whole);
}

/// A folder without a manifest, whose log has these payloads.
fn folder_with_log(folder: &Path, payloads: impl IntoIterator<Item = Vec<u8>>) -> Result<()> {
    let options = Options::default();
    options.vfs.create_dir_all(folder).unwrap();
    let number = FileNumber(7);
    let mut log = LogWriter::create(&*options.vfs, folder, "000007.wal", number, None)?;
    let header = WalHeader {
        predecessor: None,
        base: 1,
    };
    header.encode(log.begin());
    log.commit()?;
    for payload in payloads {
        log.begin().extend_from_slice(&payload);
        log.commit()?;
    }
    log.shared().sync_through(log.end())
}

/// A batch of one entry of keyspace `id`.
fn batch_of(id: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    batch::put_count(&mut payload, 1);
    batch::put_entry(&mut payload, KeyspaceId(id), Kind::Value, b"key", b"value");
    payload
}

/// Few bytes name a keyspace, and each takes memory.
#[test]
fn keyspaces_that_no_manifest_names_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let count = u32::try_from(UNKNOWN_KEYSPACES_MAX).unwrap() + 20;
    folder_with_log(&from, (1..=count).map(batch_of)).unwrap();
    let report = repair(&from, &to, &Options::default()).unwrap();
    assert_eq!(report.keyspaces.len(), UNKNOWN_KEYSPACES_MAX);
    assert!(
        report
            .keyspaces
            .iter()
            .all(|keyspace| keyspace.entries == 1)
    );
    let left_out = report.losses.iter();
    let left_out = left_out.filter(|loss| loss.what.starts_with("20 entries of the logs"));
    assert_eq!(left_out.count(), 1, "{:?}", report.losses);
}

/// Somebody may make a log in which every second record cannot be read.
#[test]
fn holes_of_a_log_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let unreadable = || vec![0, 0];
    let payloads = (0..HOLES_MAX + 20).flat_map(|_| [batch_of(1), unreadable()]);
    folder_with_log(&from, payloads).unwrap();
    let report = repair(&from, &to, &Options::default()).unwrap();
    let losses = report.losses.len() as u64 + report.losses_left_off;
    // Each hole is one, and so is the unknown place of the entries behind it.
    assert!(losses <= 2 * HOLES_MAX as u64 + 10, "{losses}");
    // The entries before the first hole have numbers.
    assert_eq!(report.keyspaces.len(), 1);
}
