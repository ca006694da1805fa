//! Wrong keys, no keys, new keys.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow::backup::{Backups, FolderStore};
use windrow::vfs::Vfs;
use windrow::{Db, Error, Options, Recovery};
use windrow_encryption::{EncryptedVfs, Key, KeyProvider, KeyRing};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::{FOLDER, encrypted, key, open, options, raw_files, value, with_keys};

fn fill(db: &Db, rounds: std::ops::Range<u64>) {
    let keyspace = db.keyspace("main").unwrap();
    for round in rounds {
        let key = format!("legible {:04}", round % 80);
        keyspace.insert(key, value(round)).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

fn filled(disk: &SimDisk, rounds: u64) -> EncryptedVfs {
    let vfs = encrypted(disk);
    let db = open(&vfs).unwrap();
    fill(&db, 0..rounds);
    db.close().unwrap();
    vfs
}

/// The error with its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn nothing_is_legible() {
    let disk = SimDisk::new();
    let vfs = encrypted(&disk);
    let db = open(&vfs).unwrap();
    fill(&db, 0..300);
    // In the log alone.
    let keyspace = db.keyspace("main").unwrap();
    keyspace.insert("legible and last", value(1)).unwrap();
    let files = raw_files(&disk);
    assert!(files.len() > 7, "{}", files.len());
    for (name, bytes) in files {
        for secret in [
            &b"legible"[..],
            b"recognizable",
            b"main",
            b"\x89WRTABLE",
            b"manifest",
        ] {
            let found = bytes.windows(secret.len()).any(|part| part == secret);
            assert!(!found, "{name} has {:?}", String::from_utf8_lossy(secret));
        }
    }
    db.close().unwrap();
}

#[test]
fn another_key_is_refused_before_anything_is_written() {
    let disk = SimDisk::new();
    filled(&disk, 100);
    let before = (raw_files(&disk), disk.changes());
    let refusals = [
        (
            KeyRing::new("first", key(2)),
            "the key of this name is another one",
        ),
        (KeyRing::new("second", key(2)), "with the key \"first\""),
    ];
    for (keys, reason) in refusals {
        let vfs = with_keys(&disk, keys);
        let lock = Path::new(FOLDER).join("LOCK");
        vfs.lock(&lock).map(drop).unwrap_err();
        vfs.lock_shared(&lock).map(drop).unwrap_err();
        let error = open(&vfs).unwrap_err();
        assert!(chain(&error).contains(reason), "{}", chain(&error));
        assert_eq!((raw_files(&disk), disk.changes()), before);
    }
    // Without any.
    let plain = Options::default()
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(6)));
    Db::open(FOLDER, plain).unwrap_err();
    let files = raw_files(&disk)
        .into_iter()
        .filter(|(name, _)| name != "LOCK");
    let kept = before.0.into_iter().filter(|(name, _)| name != "LOCK");
    assert!(files.eq(kept));
}

/// Keys of a service, which rotates at some moment, or fails to give the second key with an error of some kind.
#[derive(Debug)]
struct Service {
    ring: KeyRing,
    has_rotated: AtomicBool,
    failure: Option<ErrorKind>,
}

impl KeyProvider for Service {
    fn current(&self) -> io::Result<String> {
        let has_rotated = self.has_rotated.load(Ordering::Relaxed);
        Ok(if has_rotated { "second" } else { "first" }.to_owned())
    }

    fn key(&self, name: &str) -> io::Result<Key> {
        match self.failure {
            Some(kind) if name == "second" => Err(io::Error::new(kind, "an answer in pieces")),
            _ => self.ring.key(name),
        }
    }
}

/// The newest log and other files have a key that is wrong, missing, or not given by a service. No open and no repair takes that
/// for damage, though the key of `CURRENT` is there.
#[test]
fn what_a_key_is_missing_for_is_not_damaged() {
    let service = |second: u8, failure| {
        let ring = KeyRing::new("first", key(1)).with_older("second", key(second));
        let has_rotated = AtomicBool::new(false);
        Arc::new(Service {
            ring,
            has_rotated,
            failure,
        })
    };
    let disk = SimDisk::new();
    let keys = service(2, None);
    let vfs = |disk: &SimDisk, keys: &Arc<Service>| {
        EncryptedVfs::new(Arc::new(disk.clone()), Arc::<Service>::clone(keys))
    };
    let db = open(&vfs(&disk, &keys)).unwrap();
    keys.has_rotated.store(true, Ordering::Relaxed);
    fill(&db, 0..200);
    db.keyspace("main")
        .unwrap()
        .insert("last", "in the log")
        .unwrap();
    // A killed process.
    let image = disk.image();
    drop(db.close());

    let wrong = [
        service(3, None),
        service(2, Some(ErrorKind::NotFound)),
        service(2, Some(ErrorKind::InvalidData)),
        service(2, Some(ErrorKind::UnexpectedEof)),
        service(2, Some(ErrorKind::Unsupported)),
    ];
    for keys in wrong {
        let disk = SimDisk::from_image(image.clone());
        let vfs = vfs(&disk, &keys);
        for recovery in [Recovery::Strict, Recovery::UpToDamage] {
            let mut options = options(&vfs);
            options.recovery = recovery;
            let error = Db::open(FOLDER, options).unwrap_err();
            assert_eq!(error.kind(), windrow::ErrorKind::Io, "{keys:?}: {error}");
        }
        let error = Db::repair(FOLDER, "/repaired", &options(&vfs)).unwrap_err();
        assert_eq!(error.kind(), windrow::ErrorKind::Io, "{keys:?}: {error}");
        // Nothing is gone.
        let db = open(&with_keys(
            &disk,
            KeyRing::new("second", key(2)).with_older("first", key(1)),
        ))
        .unwrap();
        let keyspace = db.keyspace("main").unwrap();
        assert_eq!(keyspace.iter().unwrap().count(), 81);
        assert!(db.verify().unwrap().is_sound());
        db.close().unwrap();
    }
}

#[test]
fn a_database_in_clear_is_refused_and_stays() {
    let disk = SimDisk::new();
    let options = Options::default()
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(SteppedRuntime::new(6)));
    Db::open(FOLDER, options).unwrap().close().unwrap();
    let before = raw_files(&disk);
    let error = open(&encrypted(&disk)).unwrap_err();
    assert!(chain(&error).contains("not encrypted"), "{}", chain(&error));
    assert_eq!(raw_files(&disk), before);
}

/// Keys are wrong, or there are none, and `CURRENT` is gone or a folder never has one. Nothing counts as damaged then.
#[test]
fn another_key_is_refused_without_the_file_current() {
    let disk = SimDisk::new();
    let vfs = filled(&disk, 100);
    let store = FolderStore::open(Arc::new(vfs.clone()), "/backups").unwrap();
    let backups = Backups::new(Arc::new(store)).with_vfs(Arc::new(vfs.clone()));
    let db = open(&vfs).unwrap();
    db.backup(&backups).unwrap();
    db.close().unwrap();
    drop(backups);
    let clear = SimDisk::new();
    let in_clear = |disk: &SimDisk| options(&vfs).with_vfs(Arc::new(disk.clone()));
    let db = Db::open(FOLDER, in_clear(&clear)).unwrap();
    fill(&db, 0..100);
    let store = FolderStore::open(Arc::new(clear.clone()), "/backups").unwrap();
    let backups = Backups::new(Arc::new(store)).with_vfs(Arc::new(clear.clone()));
    db.backup(&backups).unwrap();
    db.close().unwrap();
    drop(backups);

    for disk in [&disk, &clear] {
        disk.edit(|image| image.remove(&Path::new(FOLDER).join("CURRENT")))
            .unwrap();
    }
    let refusals = [
        (&disk, KeyRing::new("first", key(2))),
        (&disk, KeyRing::new("second", key(2))),
        (&clear, KeyRing::new("first", key(1))),
    ];
    for (disk, keys) in refusals {
        let wrong = with_keys(disk, keys);
        let before = raw_files(disk);
        let outcomes = [
            Db::open(FOLDER, options(&wrong)).map(drop),
            Db::repair(FOLDER, "/repaired", &options(&wrong)).map(drop),
            FolderStore::open(Arc::new(wrong.clone()), "/backups").map(drop),
            FolderStore::open_read_only(Arc::new(wrong.clone()), "/backups").map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), windrow::ErrorKind::Io, "{error}");
        }
        assert_eq!(raw_files(disk), before);
    }
    let error = open(&vfs).unwrap_err();
    assert_eq!(error.kind(), windrow::ErrorKind::Corruption, "{error}");
    Db::repair(FOLDER, "/repaired", &options(&vfs)).unwrap();
    let db = Db::open("/repaired", options(&vfs)).unwrap();
    assert_eq!(db.keyspace("main").unwrap().iter().unwrap().count(), 80);
    db.close().unwrap();
}

/// New files have the new key; the old one goes as compactions write files anew.
#[test]
fn keys_rotate_as_files_are_written_anew() {
    let disk = SimDisk::new();
    let vfs = filled(&disk, 200);
    let folder = Path::new(FOLDER);
    let by_key = |vfs: &EncryptedVfs| vfs.files_by_key(folder).unwrap();
    assert_eq!(by_key(&vfs).keys().collect::<Vec<_>>(), ["first"]);

    let both = KeyRing::new("second", key(2)).with_older("first", key(1));
    let vfs = with_keys(&disk, both);
    let db = open(&vfs).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    assert_eq!(by_key(&vfs).keys().collect::<Vec<_>>(), ["first", "second"]);
    fill(&db, 200..400);
    assert_eq!(keyspace.iter().unwrap().count(), 80);
    keyspace.compact_range::<&[u8]>(..).unwrap();
    fill(&db, 400..800);
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
    db.close().unwrap();
    let db = open(&vfs).unwrap();
    db.wait_idle().unwrap();
    db.close().unwrap();
    assert_eq!(by_key(&vfs).keys().collect::<Vec<_>>(), ["second"]);
    let db = open(&with_keys(&disk, KeyRing::new("second", key(2)))).unwrap();
    assert_eq!(db.keyspace("main").unwrap().iter().unwrap().count(), 80);
    db.close().unwrap();
}

/// A restored backup has the current key alone, and a backup is encrypted as well.
#[test]
fn a_backup_goes_from_key_to_key() {
    let disk = SimDisk::new();
    let vfs = filled(&disk, 150);
    let backups = |vfs: &EncryptedVfs| {
        let store = FolderStore::open(Arc::new(vfs.clone()), "/backups").unwrap();
        Backups::new(Arc::new(store)).with_vfs(Arc::new(vfs.clone()))
    };
    let db = open(&vfs).unwrap();
    db.backup(&backups(&vfs)).unwrap();
    db.close().unwrap();

    let both = with_keys(
        &disk,
        KeyRing::new("second", key(2)).with_older("first", key(1)),
    );
    backups(&both).restore(1, Path::new("/restored")).unwrap();
    let keys: BTreeMap<String, u64> = both.files_by_key(Path::new("/restored")).unwrap();
    assert_eq!(keys.keys().collect::<Vec<_>>(), ["second"]);
    let alone = with_keys(&disk, KeyRing::new("second", Key::new([2; 32])));
    let db = Db::open("/restored", options(&alone)).unwrap();
    assert_eq!(db.keyspace("main").unwrap().iter().unwrap().count(), 80);
    db.close().unwrap();
}

#[test]
fn a_text_of_keys_is_what_it_looks_like() {
    let digits = "0aF1".repeat(16);
    let ring: KeyRing = format!("# new\n\n b {digits}\na {}\n", "07".repeat(32))
        .parse()
        .unwrap();
    assert_eq!(ring.current().unwrap(), "b");
    assert_eq!(
        ring.key("b").unwrap().as_bytes()[..4],
        [0x0a, 0xf1, 0x0a, 0xf1]
    );
    assert_eq!(ring.key("a").unwrap().as_bytes(), &[7; 32]);
    assert!(!format!("{ring:?}").contains('7'));
    let marked: KeyRing = format!("\u{feff}{} {digits}", "n".repeat(64))
        .parse()
        .unwrap();
    assert_eq!(marked.current().unwrap(), "n".repeat(64));
    let wrong = [
        String::new(),
        "a".to_owned(),
        format!("a {}", &digits[1..]),
        format!("a {digits}0"),
        format!("a {}g", &digits[1..]),
        format!("a {}", "\u{e9}".repeat(32)),
        format!("a {digits}\na {digits}"),
        format!("{} {digits}", "n".repeat(65)),
    ];
    for text in wrong {
        let error = text.parse::<KeyRing>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(!error.to_string().contains("0aF1"));
    }
}
