//! A folder with three backups of one database, which share pieces. The second of four was removed.

use std::fs;

use windrow::backup::{Backups, Purge};
use windrow::{Db, Options};

use crate::{contents, copy, expected, golden, options, write};

const BACKUPS: &str = "backups";

/// The numbers of the backups, and the rounds that each has.
const KEPT: [(u64, u32); 3] = [(1, 150), (3, 300), (4, 310)];

#[test]
fn each_backup_is_restored_as_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    copy(&golden(BACKUPS), &store);
    let backups = Backups::open_read_only(&store).unwrap();
    let check = backups.verify(None).unwrap();
    assert!(check.is_sound(), "{check:?}");
    assert_eq!(check.backups, KEPT.map(|(number, _)| number));
    let mut bytes = 0;
    for (listed, (number, rounds)) in backups.list().unwrap().iter().zip(KEPT) {
        let info = listed.backup.as_ref().unwrap();
        assert_eq!((listed.number, info.sequence), (number, u64::from(rounds)));
        bytes += info.bytes;
        let target = folder.path().join(number.to_string());
        backups.restore(number, &target).unwrap();
        let db = Db::open(&target, Options::default()).unwrap();
        let report = db.verify().unwrap();
        assert!(report.is_sound() && report.values > 5, "{report:?}");
        assert!(contents(&db, "plain") == expected(rounds), "{number}");
    }
    assert!(check.bytes < bytes, "{check:?}");
    let mut shown = Vec::new();
    windrow::inspect::dump(
        &windrow::vfs::OsVfs,
        &store.join("000004.backup"),
        &mut shown,
    )
    .unwrap();
    let shown = String::from_utf8(shown).unwrap();
    let mut files = shown.lines().filter(|line| line.starts_with("  file: "));
    assert!(files.any(|line| line.ends_with("pieces 2")), "{shown}");
    // A later version continues with them.
    drop(backups);
    let backups = Backups::open(&store).unwrap();
    let db = Db::open(folder.path().join("4"), Options::default()).unwrap();
    assert_eq!(db.backup(&backups).unwrap().number, 5);
    let purged = backups.purge(Purge::KeepNewest(1)).unwrap();
    assert_eq!(purged.backups, KEPT.map(|(number, _)| number));
    assert!(backups.verify(None).unwrap().is_sound());
}

#[test]
#[ignore = "writes into the source tree"]
fn make_them_anew() {
    if golden(BACKUPS).exists() {
        fs::remove_dir_all(golden(BACKUPS)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut database = Options::default();
    database.keyspace = options();
    let db = Db::open(folder.path().join("db"), database).unwrap();
    let plain = db.keyspace("plain").unwrap();
    let backups = Backups::open(&store).unwrap();
    let ends = [KEPT[0].1, 200, KEPT[1].1, KEPT[2].1];
    let mut first = 0;
    for end in ends {
        for number in first..end {
            match write(number) {
                (key, Some(value)) => plain.insert(key, value).unwrap(),
                (key, None) => plain.remove(key).unwrap(),
            }
        }
        first = end;
        if end % 20 == 0 {
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        db.backup(&backups).unwrap();
    }
    backups.purge(Purge::Backup(2)).unwrap();
    drop((plain, backups));
    db.close().unwrap();
    copy(&store, &golden(BACKUPS));
}
