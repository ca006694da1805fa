//! What somebody can do to the files without the key.

use std::collections::BTreeMap;
use std::path::Path;

use windrow::Db;
use windrow_sim::{Image, Random, SimDisk};

use crate::{FOLDER, encrypted, open, raw_files, value};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A closed database and what it holds.
fn filled() -> (Image, Entries) {
    let disk = SimDisk::new();
    let db = open(&encrypted(&disk)).unwrap();
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
    keyspace.insert("last", value(3)).unwrap();
    entries.insert(b"last".to_vec(), value(3));
    db.close().unwrap();
    (disk.image(), entries)
}

/// Reads everything; whatever is read must be right.
fn check(db: &Db, entries: &Entries) -> bool {
    let Ok(keyspace) = db.keyspace("main") else {
        return false;
    };
    for (key, value) in entries {
        match keyspace.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value[..])),
            Err(_) => return false,
        }
    }
    db.verify().is_ok_and(|report| report.is_sound())
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
            let is_sound = match open(&encrypted(&disk)) {
                Ok(db) => {
                    let is_sound = check(&db, &entries);
                    drop(db.close());
                    is_sound
                }
                Err(_) => false,
            };
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
    let is_sound = open(&encrypted(&disk)).is_ok_and(|db| check(&db, &entries));
    assert!(!is_sound);
}
