//! Keyspaces are created and dropped beside reads, writes and compactions, on the real file system.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests count files and run threads beside the database"
)]

use std::fs;
use std::path::Path;

use windrow::{Batch, Db, ErrorKind, Keyspace, KeyspaceOptions, Options, Result, operators};

/// Options under which a few kilobytes make several tables.
fn tiny() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 16 << 10;
    options.file_bytes = 4 << 10;
    options.base_bytes = 16 << 10;
    options.level0_runs = 2;
    options.size_ratio = 2.0;
    options
}

fn open(folder: &Path) -> Db {
    Db::open(folder, Options::default()).unwrap()
}

fn fill(keyspace: &Keyspace, count: u32) -> Result<()> {
    (0..count).try_for_each(|number| keyspace.insert(number.to_be_bytes(), [7; 100]))
}

fn tables(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap();
    let is_table = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "table");
    names
        .filter(|entry| is_table(&entry.as_ref().unwrap().path()))
        .count()
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn a_dropped_keyspace_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let kept = db.keyspace("kept").unwrap();
    let gone = db.keyspace_with("gone", tiny()).unwrap();
    kept.insert("a", "kept").unwrap();
    fill(&gone, 500).unwrap();
    db.flush().unwrap();
    fill(&gone, 3).unwrap();
    let mut both = Batch::new();
    both.insert(&kept, "b", "half").unwrap();
    both.insert(&gone, "b", "half").unwrap();

    db.drop_keyspace("gone").unwrap();
    assert_eq!(db.keyspace_names(), ["kept"]);
    for refused in [
        kind(gone.get("a")),
        kind(gone.insert("a", "b")),
        kind(gone.remove("a")),
        kind(gone.iter().map(drop)),
        kind(gone.multi_get(&["a"])),
        kind(gone.compact_range::<&[u8]>(..)),
        kind(db.write(&both)),
        kind(db.drop_keyspace("gone")),
    ] {
        assert_eq!(refused, Some(ErrorKind::NotFound));
    }
    let message = gone.get("a").unwrap_err().to_string();
    assert!(message.contains("\"gone\" has been dropped"), "{message}");
    // Nothing of the batch was written.
    assert_eq!(kept.get("b").unwrap(), None);

    let again = db.keyspace("gone").unwrap();
    assert!(again.is_empty().unwrap());
    again.insert("new", "1").unwrap();
    assert_eq!(kind(gone.get("new")), Some(ErrorKind::NotFound));
    drop((kept, gone, again, both));
    db.close().unwrap();
    assert_eq!(tables(folder.path()), 1, "the table of the kept keyspace");

    let db = open(folder.path());
    assert_eq!(
        db.keyspace("kept").unwrap().get("a").unwrap().as_deref(),
        Some(&b"kept"[..])
    );
    let again: Vec<_> = db
        .keyspace("gone")
        .unwrap()
        .iter()
        .unwrap()
        .collect::<Result<_>>()
        .unwrap();
    assert_eq!(again, [(b"new".to_vec(), b"1".to_vec())]);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn readers_of_a_dropped_keyspace_continue_and_the_last_one_frees_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace_with("gone", tiny()).unwrap();
    fill(&keyspace, 500).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    keyspace.insert("in memory", "too").unwrap();
    let mut iterator = keyspace.iter().unwrap();
    let first = iterator.next().unwrap().unwrap();
    let snapshot = db.snapshot();
    let view = keyspace.at(&snapshot).unwrap();
    assert!(tables(folder.path()) > 1);

    db.drop_keyspace("gone").unwrap();
    db.wait_idle().unwrap();
    assert!(tables(folder.path()) > 1);
    let rest: Vec<_> = iterator.collect::<Result<_>>().unwrap();
    assert_eq!(
        (first.0.as_slice(), rest.len()),
        (&0_u32.to_be_bytes()[..], 500)
    );
    assert_eq!(view.get(7_u32.to_be_bytes()).unwrap().unwrap(), [7; 100]);
    assert_eq!(view.get("in memory").unwrap().unwrap(), b"too");
    assert_eq!(keyspace.at(&snapshot).unwrap().iter().unwrap().count(), 501);

    drop((view, keyspace, snapshot));
    db.wait_idle().unwrap();
    assert_eq!(tables(folder.path()), 0);
}

#[test]
fn sequence_numbers_grow_after_all_keyspaces_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..8 {
        let db = open(folder.path());
        assert!(db.snapshot().sequence() >= last, "round {round}");
        let keyspace = db.keyspace("gone").unwrap();
        fill(&keyspace, 10).unwrap();
        if round % 2 == 0 {
            db.flush().unwrap();
        }
        last = db.snapshot().sequence();
        db.drop_keyspace("gone").unwrap();
        db.close().unwrap();
        let db = open(folder.path());
        db.close().unwrap();
    }
    assert_eq!(last, 80);
}

#[test]
fn keyspaces_are_dropped_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    for _ in 0..20 {
        let keyspace = db.keyspace_with("gone", tiny()).unwrap();
        let kept = db.keyspace_with("kept", tiny()).unwrap();
        std::thread::scope(|scope| {
            let (one, other) = (keyspace.clone(), keyspace.clone());
            scope.spawn(|| assert_eq!(kind(fill(&kept, 400)), None));
            scope.spawn(move || {
                let end = kind(fill(&one, 4000));
                assert!(matches!(end, None | Some(ErrorKind::NotFound)));
            });
            scope.spawn(move || {
                while let Ok(range) = other.iter() {
                    assert_eq!(range.filter(Result::is_err).count(), 0);
                }
            });
            keyspace.insert("a", "b").unwrap();
            db.flush().unwrap();
            db.drop_keyspace("gone").unwrap();
        });
    }
    db.wait_idle().unwrap();
    assert!(db.verify().unwrap().is_sound());
    assert_eq!(db.keyspace("kept").unwrap().iter().unwrap().count(), 400);
    db.close().unwrap();
}

#[test]
fn options_hold_until_others_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.keyspace.level0_runs = 3;
    let db = Db::open(folder.path(), options).unwrap();
    assert_eq!(db.keyspace("plain").unwrap().options().level0_runs, 3);
    db.keyspace_with("own", tiny()).unwrap();
    db.close().unwrap();

    // An open without options keeps them.
    let db = open(folder.path());
    let plain = db.keyspace("plain").unwrap();
    assert_eq!(plain.options().level0_runs, 3);
    assert_eq!(db.keyspace("own").unwrap().options(), tiny());
    assert_eq!(db.stats().keyspaces[1].options, tiny());
    fill(&plain, 100).unwrap();
    db.flush().unwrap();
    let before = fs::metadata(table(folder.path()))
        .unwrap()
        .modified()
        .unwrap();

    // Other options are set twice. No file is rewritten.
    let mut compressed = tiny();
    compressed.compression = windrow::Compression::Lz4;
    let handle = db.keyspace_with("plain", tiny()).unwrap();
    assert_eq!((plain.options(), handle.options()), (tiny(), tiny()));
    db.keyspace_with("plain", compressed.clone()).unwrap();
    db.keyspace("plain").unwrap();
    assert_eq!(plain.options(), compressed);
    let mut wrong = tiny();
    wrong.level0_runs = 0;
    assert_eq!(
        kind(db.keyspace_with("plain", wrong)),
        Some(ErrorKind::InvalidArgument)
    );
    drop((plain, handle));
    db.close().unwrap();
    assert_eq!(
        fs::metadata(table(folder.path()))
            .unwrap()
            .modified()
            .unwrap(),
        before
    );

    let db = open(folder.path());
    assert_eq!(db.keyspace("plain").unwrap().options(), compressed);
    assert_eq!(db.keyspace("plain").unwrap().iter().unwrap().count(), 100);
}

fn table(folder: &Path) -> std::path::PathBuf {
    let names = fs::read_dir(folder).unwrap();
    let mut paths = names.map(|entry| entry.unwrap().path());
    paths
        .find(|path| path.extension().is_some_and(|end| end == "table"))
        .unwrap()
}

#[test]
fn looking_for_a_keyspace_creates_none() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    assert!(db.existing_keyspace("typo").unwrap().is_none());
    assert!(db.keyspace_names().is_empty());
    db.keyspace("real").unwrap().insert("a", "1").unwrap();
    let real = db.existing_keyspace("real").unwrap().unwrap();
    assert_eq!(real.get("a").unwrap().unwrap(), b"1");
    assert_eq!(
        kind(db.existing_keyspace("")),
        Some(ErrorKind::InvalidArgument)
    );
}

#[test]
fn a_rename_keeps_handles_data_and_logs() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let keyspace = db.keyspace_with("old", tiny()).unwrap();
    fill(&keyspace, 300).unwrap();
    keyspace.rename("new").unwrap();
    keyspace.rename("new").unwrap();
    assert_eq!(keyspace.name(), "new");
    keyspace.insert("later", "in the log").unwrap();
    db.keyspace("taken").unwrap();
    assert_eq!(
        kind(keyspace.rename("taken")),
        Some(ErrorKind::AlreadyExists)
    );
    assert_eq!(kind(keyspace.rename("")), Some(ErrorKind::InvalidArgument));
    assert_eq!(db.keyspace_names(), ["new", "taken"]);
    drop(keyspace);
    db.close().unwrap();

    let db = open(folder.path());
    assert!(db.existing_keyspace("old").unwrap().is_none());
    let keyspace = db.existing_keyspace("new").unwrap().unwrap();
    assert_eq!(keyspace.count::<&[u8]>(..).unwrap(), 301);
    assert_eq!(keyspace.options(), tiny());
    // The old name is free.
    assert!(db.keyspace("old").unwrap().is_empty().unwrap());
    db.drop_keyspace("new").unwrap();
    assert_eq!(kind(keyspace.rename("back")), Some(ErrorKind::NotFound));
}

#[test]
fn a_swap_exchanges_two_names() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let live = db.keyspace("live").unwrap();
    let rebuilt = db.keyspace("rebuilt").unwrap();
    live.insert("a", "old").unwrap();
    rebuilt.insert("a", "new").unwrap();
    db.swap_keyspaces("live", "rebuilt").unwrap();
    db.swap_keyspaces("live", "live").unwrap();
    assert_eq!(
        [live.name(), rebuilt.name()],
        ["rebuilt".to_owned(), "live".to_owned()]
    );
    assert_eq!(live.get("a").unwrap().unwrap(), b"old");
    assert_eq!(
        kind(db.swap_keyspaces("live", "typo")),
        Some(ErrorKind::NotFound)
    );
    drop((live, rebuilt));
    db.close().unwrap();
    let db = open(folder.path());
    let live = db.existing_keyspace("live").unwrap().unwrap();
    assert_eq!(live.get("a").unwrap().unwrap(), b"new");
    db.drop_keyspace("rebuilt").unwrap();
    assert_eq!(db.keyspace_names(), ["live"]);
}

#[test]
fn operators_go_with_the_data_of_swapped_keyspaces() {
    let folder = tempfile::tempdir().unwrap();
    let options = |live, rebuilt| {
        Options::default()
            .with_merge_operator("live", operators::by_name(live).unwrap())
            .with_merge_operator("rebuilt", operators::by_name(rebuilt).unwrap())
    };
    let (least, greatest) = ("windrow.least", "windrow.greatest");
    let db = Db::open(folder.path(), options(least, greatest)).unwrap();
    for name in ["live", "rebuilt"] {
        let keyspace = db.keyspace(name).unwrap();
        keyspace.merge("a", "1").unwrap();
        keyspace.merge("a", "2").unwrap();
    }
    db.swap_keyspaces("live", "rebuilt").unwrap();
    let value = |db: &Db| db.keyspace("live").unwrap().get("a").unwrap().unwrap();
    assert_eq!(value(&db), b"2");
    db.close().unwrap();
    let error = Db::open(folder.path(), options(least, greatest)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let message = error.to_string();
    assert!(
        message.contains(least) && message.contains(greatest),
        "{message}"
    );
    let db = Db::open(folder.path(), options(greatest, least)).unwrap();
    assert_eq!(value(&db), b"2");
}
