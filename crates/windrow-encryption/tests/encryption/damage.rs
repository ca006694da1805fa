//! What somebody can do to the files without the key.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windrow::{Db, Durability, ErrorKind};
use windrow_sim::{Image, Random, SimDisk};

use crate::{FOLDER, encrypted, open, options, raw_files, value};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A closed database and what it holds.
fn filled() -> (Image, Entries) {
    let disk = SimDisk::new();
    let (db, entries) = fill(&disk);
    db.close().unwrap();
    (disk.image(), entries)
}

/// A database with several files of each kind, and durable writes in its log alone.
fn fill(disk: &SimDisk) -> (Db, Entries) {
    let db = open(&encrypted(disk)).unwrap();
    let keyspace = db.keyspace("main").unwrap();
    let mut entries = Entries::new();
    for round in 0..150_u64 {
        // Each key once: garbage is not read.
        let key = (round * 7 % 150).to_be_bytes();
        keyspace.insert(key, value(round)).unwrap();
        entries.insert(key.to_vec(), value(round));
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    for number in 0..20_u64 {
        let key = format!("last {number}");
        keyspace
            .insert_with(&key, value(3), Durability::Sync)
            .unwrap();
        entries.insert(key.into(), value(3));
    }
    (db, entries)
}

/// Reads everything; whatever is read must be right, and every error one of damage.
fn check(db: &Db, entries: &Entries) -> bool {
    let keyspace = db.keyspace("main").unwrap();
    let mut is_sound = true;
    for (key, value) in entries {
        match keyspace.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value[..])),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                is_sound = false;
            }
        }
    }
    is_sound && db.verify().unwrap().is_sound()
}

/// Opens and reads a database that may be damaged.
fn is_sound(disk: &SimDisk, entries: &Entries) -> bool {
    match open(&encrypted(disk)) {
        Ok(db) => {
            let is_sound = check(&db, entries);
            drop(db.close());
            is_sound
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            false
        }
    }
}

/// Each sector of each file: one bit of it, zeros in its place, and another sector of the same file.
#[test]
fn a_changed_sector_is_never_taken_for_data() {
    let (image, entries) = filled();
    let disk = SimDisk::from_image(image.clone());
    let mut random = Random::new(3);
    let (mut changes_made, mut noticed) = (0, 0);
    for (name, bytes) in raw_files(&disk) {
        if ["LOCK", "LOG", "STATUS"].contains(&name.as_str()) {
            continue;
        }
        let path = Path::new(FOLDER).join(&name);
        let sectors = bytes.len() / 512;
        for sector in 0..sectors {
            let place = sector * 512;
            let original = &bytes[place..place + 512];
            let mut flipped = original.to_vec();
            flipped[random.below(512) as usize] ^= 1 << random.below(8);
            let other = random.below(sectors as u64) as usize * 512;
            let changes = [flipped, vec![0; 512], bytes[other..other + 512].to_vec()];
            let change = &changes[random.below(3) as usize];
            if change == original {
                continue;
            }
            let disk = SimDisk::from_image(image.clone());
            let mut changed = bytes.clone();
            changed[place..place + 512].copy_from_slice(change);
            disk.edit(|image| image.write(&path, &changed).unwrap());
            let is_sound = is_sound(&disk, &entries);
            changes_made += 1;
            noticed += usize::from(!is_sound);
        }
    }
    assert!(changes_made > 100, "{changes_made}");
    assert_eq!(noticed, changes_made);
}

/// A file with the name of another one of its kind.
#[test]
fn exchanged_files_are_found() {
    let (image, entries) = filled();
    let disk = SimDisk::from_image(image);
    let tables = disk.image().files_with("table");
    let [first, second, ..] = &tables[..] else {
        unreachable!("there are several tables");
    };
    disk.edit(|image| {
        let [ours, theirs] = [first, second].map(|path| image.read(path).unwrap());
        image.write(first, &theirs).unwrap();
        image.write(second, &ours).unwrap();
    });
    assert!(!is_sound(&disk, &entries));
}

/// A file whose first sector is damaged is no empty file, and a repair loses no other one.
#[test]
fn a_damaged_header_is_damage() {
    let disk = SimDisk::new();
    let (db, entries) = fill(&disk);
    // A killed process: nothing but the log says how long the log is.
    let image = disk.image();
    drop(db.close());
    let mut kinds = BTreeSet::new();
    for (name, bytes) in raw_files(&SimDisk::from_image(image.clone())) {
        if name == "LOCK" || bytes.len() <= 512 {
            continue;
        }
        kinds.insert(name.rsplit('.').next().unwrap().to_owned());
        let path = Path::new(FOLDER).join(&name);
        // A byte of each field, and all of them.
        for change in [3, 8, 12, 13, 90, 115, 130, 512] {
            let disk = SimDisk::from_image(image.clone());
            let mut changed = bytes.clone();
            match change {
                512 => changed[..512].fill(0),
                byte => changed[byte] ^= 4,
            }
            disk.edit(|image| image.write(&path, &changed).unwrap());
            assert!(!is_sound(&disk, &entries), "{name}, change {change}");

            let vfs = encrypted(&disk);
            Db::repair(FOLDER, "/repaired", &options(&vfs)).unwrap();
            let db = Db::open("/repaired", options(&vfs)).unwrap();
            let mut found = 0;
            // Without its manifest a keyspace has no name.
            for keyspace in db.keyspace_names() {
                let keyspace = db.keyspace(&keyspace).unwrap();
                for entry in keyspace.iter().unwrap() {
                    let (key, value) = entry.unwrap();
                    assert_eq!(entries.get(&key), Some(&value), "{name}, change {change}");
                    found += 1;
                }
            }
            assert!(
                found > entries.len() / 4,
                "{name}, change {change}: {found}"
            );
            db.close().unwrap();
        }
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
}
