//! Repairs of files that no database has written.

use super::repair;
use super::report::ManifestUse;
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Error, FileNumber, KeyspaceId, Kind, SegmentId, Trailer};
use crate::codec::Compression;
use crate::engine::commit::expiring::Lifetime;
use crate::engine::{Access, Handle};
use crate::filter::FILTER_UNITS_MAX;
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
