//! Repairs of files that no database has written.

use std::collections::BTreeSet;
use std::path::Path;

use super::logs::HOLES_MAX;
use super::report::ManifestUse;
use super::{LOG_BYTES_PER_KEYSPACE, LOG_KEYSPACES_MAX, repair};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{
    Error, FileNumber, KeyspaceId, Kind, Result, SegmentId, SequenceNumber, Trailer,
};
use crate::codec::Compression;
use crate::engine::commit::expiring::Lifetime;
use crate::engine::{Access, Handle};
use crate::filter::FILTER_UNITS_MAX;
use crate::log::batch;
use crate::log::{LogWriter, WalHeader};
use crate::options::Options;
use crate::table::{TableOptions, TableWriter};

/// Writes a table of one entry, which says that it is of the keyspace `tag`.
fn put_table(
    options: &Options,
    folder: &Path,
    number: FileNumber,
    tag: Option<KeyspaceId>,
    key: &[u8],
    sequence: SequenceNumber,
) -> Result<()> {
    let table_options = TableOptions {
        block_bytes: 4096,
        filter_units: [0.0; FILTER_UNITS_MAX],
        compression: Compression::None,
    };
    let segment = SegmentId(number.0 + 1);
    let vfs = &*options.vfs;
    let mut writer = TableWriter::create(vfs, folder, number, segment, &table_options)?;
    if let Some(tag) = tag {
        writer = writer.of_keyspace(tag);
    }
    writer.add(key, Trailer::new(sequence, Kind::Value), b"value")?;
    writer.finish().map(drop)
}

#[test]
fn a_forged_sequence_number_leaves_numbers_for_later_writes() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    options.vfs.create_dir_all(&from).unwrap();
    for (number, key, sequence) in [(7, "sound", 5), (9, "forged", SEQUENCE_MAX)] {
        let (number, tag) = (FileNumber(number), Some(KeyspaceId(1)));
        put_table(&options, &from, number, tag, key.as_bytes(), sequence).unwrap();
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
fn keyspaces_that_logs_alone_name_are_bounded() {
    const COUNT: u32 = 1200;
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let mut payload = Vec::new();
    batch::put_count(&mut payload, COUNT + 1);
    for id in 1..=COUNT {
        batch::put_entry(&mut payload, KeyspaceId(id), Kind::Value, b"k", b"v");
    }
    // A long value of one of them stands for three more.
    let value = vec![0; usize::try_from(3 * LOG_BYTES_PER_KEYSPACE).unwrap()];
    batch::put_entry(&mut payload, KeyspaceId(1), Kind::Value, b"k", &value);
    // The header and the head of the record have some bytes, too.
    let by_bytes = payload.len() as u64 / LOG_BYTES_PER_KEYSPACE;
    assert!(by_bytes >= 3);
    folder_with_log(&from, [payload]).unwrap();
    let report = repair(&from, &to, &Options::default()).unwrap();
    let made = report.keyspaces.len() as u64;
    let expected = LOG_KEYSPACES_MAX + by_bytes;
    assert!((expected..=expected + 1).contains(&made), "{made}");
    assert!(made < u64::from(COUNT));
    assert!(
        report
            .keyspaces
            .iter()
            .all(|keyspace| keyspace.entries == 1)
    );
    let left_out = format!("{} entries of the logs", u64::from(COUNT) - made);
    let left_out = report
        .losses
        .iter()
        .filter(|loss| loss.what.starts_with(&left_out));
    assert_eq!(left_out.count(), 1, "{:?}", report.losses);
}

/// Each table has more bytes than an entry of a log, and what it has is sound.
#[test]
fn tables_of_more_keyspaces_than_logs_may_name_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let count = u32::try_from(LOG_KEYSPACES_MAX).unwrap();
    folder_with_log(&from, [batch_of(1)]).unwrap();
    // Only the first and the last one say of which keyspace they are. The others count as ingested.
    let (first, last) = (100_u32, 100 + count + 1);
    for number in first..=last {
        let tag = (number == first || number == last).then_some(KeyspaceId(number));
        let file = FileNumber(number.into());
        put_table(&options, &from, file, tag, b"key", 2).unwrap();
    }
    let report = repair(&from, &to, &options).unwrap();
    assert_eq!(report.manifest, ManifestUse::Missing);
    assert_eq!(report.keyspaces.len() as u64, 3 + LOG_KEYSPACES_MAX);
    assert!(
        report
            .keyspaces
            .iter()
            .all(|keyspace| keyspace.entries == 1)
    );
    let names = report.keyspaces.iter().map(|keyspace| &*keyspace.name);
    let names: BTreeSet<&str> = names.collect();
    for name in [
        "keyspace-1",
        "keyspace-100",
        "keyspace-1101",
        "table-000101",
        "table-001100",
    ] {
        assert!(names.contains(name), "{name}");
    }
    let left_out = report
        .losses
        .iter()
        .find(|loss| loss.what.contains("left out"));
    assert_eq!(left_out, None);
}

/// Somebody may name the last keyspaces that there can be. Then others still have numbers.
#[test]
fn a_forged_keyspace_leaves_numbers_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    folder_with_log(&from, [batch_of(1), batch_of(u32::MAX)]).unwrap();
    let tags = [None, Some(KeyspaceId(u32::MAX)), None];
    for (number, tag) in (100..).zip(tags) {
        put_table(&options, &from, FileNumber(number), tag, b"key", 2).unwrap();
    }
    let report = repair(&from, &to, &options).unwrap();
    let keyspaces = report.keyspaces.iter();
    let keyspaces: Vec<_> = keyspaces.map(|it| (&*it.name, it.entries)).collect();
    let expected = ["keyspace-1", "table-000100", "table-000101", "table-000102"];
    assert_eq!(keyspaces, expected.map(|name| (name, 1)));
    let mut losses = report.losses.iter();
    assert!(losses.any(|loss| {
        loss.what
            .starts_with("1 entries of the logs name keyspaces above")
    }));
    let handle = Handle::open(&to, options, Access::ReadWrite).unwrap();
    handle.engine().open_keyspace("another", None).unwrap();
    handle.close().unwrap();
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
