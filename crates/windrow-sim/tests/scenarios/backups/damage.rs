//! Changed, cut, exchanged and missing objects: each is named, and nothing is restored from it.

use std::path::{Path, PathBuf};

use windrow::ErrorKind;
use windrow::backup::{Backups, Purge};
use windrow_sim::{SimDisk, SteppedRuntime};

use super::{BACKUPS, RESTORED, backups, contents, files, numbers, open, restored, write};
use crate::common::{Entries, FOLDER};

/// A small database with two backups, and what they hold.
fn start() -> (SimDisk, [Entries; 2]) {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = open(&disk, &runtime, FOLDER).unwrap();
    let backups = backups(&disk, &runtime).unwrap();
    let states = [0, 1].map(|round| {
        write(&db, round * 6..round * 6 + 6, 0);
        db.flush().unwrap();
        db.backup(&backups).unwrap();
        contents(&db)
    });
    db.close().unwrap();
    (disk, states)
}

/// The objects of the store.
fn objects(disk: &SimDisk) -> Vec<PathBuf> {
    let mut objects = files(disk, BACKUPS);
    objects.retain(|path| !path.ends_with("LOCK"));
    objects
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Checks that a restore of each backup of `disk` gives the right state or names `changed`. Returns how many were refused.
fn restores_or_names(disk: &SimDisk, states: &[Entries], changed: &str) -> usize {
    let backups = backups(disk, &SteppedRuntime::new(2)).unwrap();
    let check = backups.verify(None).unwrap();
    let listed = backups.list().unwrap();
    let mut refused = 0;
    for number in listed.iter().map(|listed| listed.number) {
        match backups.restore(number, RESTORED) {
            Ok(()) => {
                let db = open(disk, &SteppedRuntime::new(3), RESTORED).unwrap();
                let index = usize::try_from(number).unwrap() - 1;
                assert!(contents(&db) == states[index], "{changed}");
                db.close().unwrap();
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                let message = error.to_string();
                assert!(message.contains(changed), "{message}");
                assert!(message.contains(&format!("backup {number}")), "{message}");
                assert!(
                    files(disk, RESTORED)
                        .iter()
                        .all(|path| path.ends_with("LOCK"))
                );
                let mut named = check.damage.iter();
                assert!(named.any(|damage| damage.backups.contains(&number)));
            }
        }
        super::remove_all(disk, RESTORED);
    }
    assert_eq!(check.is_sound(), refused == 0);
    refused
}

#[test]
fn a_changed_byte_is_named_and_never_restored() {
    let (disk, states) = start();
    let image = disk.image();
    let mut bytes = 0;
    for object in objects(&disk) {
        let length = image.read(&object).unwrap().len();
        for at in 0..length {
            bytes += 1;
            let disk = SimDisk::from_image(image.clone());
            disk.edit(|image| image.flip(&object, at, 1 << (at % 8)))
                .unwrap();
            let refused = restores_or_names(&disk, &states, &name(&object));
            assert!(refused > 0, "byte {at} of {}", object.display());
        }
    }
    assert!(bytes > 1000, "{bytes}");
}

#[test]
fn a_cut_longer_exchanged_or_missing_object_is_named() {
    let (disk, states) = start();
    let image = disk.image();
    let all = objects(&disk);
    for object in &all {
        let bytes = image.read(object).unwrap();
        let is_piece = name(object).contains("piece");
        let longer = [&bytes[..], b"x"].concat();
        let cuts = [0, 1, bytes.len() / 2, bytes.len() - 1].map(|end| bytes[..end].to_vec());
        for changed in cuts.into_iter().chain([longer]) {
            let disk = SimDisk::from_image(image.clone());
            disk.edit(|image| image.write(object, &changed)).unwrap();
            assert!(restores_or_names(&disk, &states, &name(object)) > 0);
        }
        for other in all.iter().filter(|other| *other != object) {
            let disk = SimDisk::from_image(image.clone());
            let others = image.read(other).unwrap();
            disk.edit(|image| image.write(object, &others)).unwrap();
            assert!(restores_or_names(&disk, &states, &name(object)) > 0);
        }
        let disk = SimDisk::from_image(image.clone());
        disk.edit(|image| image.remove(object)).unwrap();
        let refused = restores_or_names(&disk, &states, &name(object));
        // A backup without a manifest does not exist.
        assert_eq!(refused > 0, is_piece, "{}", object.display());
    }
}

/// A piece of a wrong length or without bytes is copied again by the next backup, for all that need it.
#[test]
fn a_backup_replaces_pieces_that_are_missing_or_cut() {
    let (disk, states) = start();
    let image = disk.image();
    for object in objects(&disk)
        .iter()
        .filter(|it| name(it).contains("piece"))
    {
        for cut in [false, true] {
            let disk = SimDisk::from_image(image.clone());
            if cut {
                let bytes = image.read(object).unwrap();
                disk.edit(|image| image.write(object, &bytes[1..])).unwrap();
            } else {
                disk.edit(|image| image.remove(object)).unwrap();
            }
            let runtime = SteppedRuntime::new(2);
            let db = open(&disk, &runtime, FOLDER).unwrap();
            let backups = backups(&disk, &runtime).unwrap();
            db.backup(&backups).unwrap();
            assert_eq!(restored(&disk, &backups, 3), states[1]);
        }
    }
}

/// Nobody knows what a backup needs whose manifest is damaged.
#[test]
fn a_purge_beside_a_damaged_manifest_deletes_no_piece() {
    let (disk, states) = start();
    let manifest = |number: u64| PathBuf::from(format!("{BACKUPS}/{number:06}.backup"));
    let sound = disk.image().read(&manifest(1)).unwrap();
    disk.edit(|image| image.flip(&manifest(1), 20, 1)).unwrap();
    let backups = backups(&disk, &SteppedRuntime::new(2)).unwrap();
    let pieces = |disk: &SimDisk| {
        objects(disk)
            .iter()
            .filter(|it| name(it).contains("piece"))
            .count()
    };
    let before = pieces(&disk);
    let error = backups.purge(Purge::KeepNewest(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("000001.backup"), "{error}");
    assert_eq!(objects(&disk).len(), before + 2);
    // Backup 2 goes, and backup 1 may still need all of them.
    let purged = backups.purge(Purge::Backup(2)).unwrap();
    assert_eq!((purged.backups, purged.pieces), (vec![2], 0));
    assert_eq!(pieces(&disk), before);
    disk.edit(|image| image.write(&manifest(1), &sound))
        .unwrap();
    assert_eq!(restored(&disk, &backups, 1), states[0]);
    // A damaged backup goes by its number.
    disk.edit(|image| image.flip(&manifest(1), 20, 1)).unwrap();
    let purged = backups.purge(Purge::Backup(1)).unwrap();
    assert_eq!((purged.backups, purged.pieces), (vec![1], before as u64));
    assert!(objects(&disk).is_empty() && numbers(&backups).is_empty());
}

#[test]
fn what_does_not_exist_or_is_not_empty_is_refused() {
    let (disk, _) = start();
    let own = backups(&disk, &SteppedRuntime::new(2)).unwrap();
    let kind = |result: windrow::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(own.restore(7, RESTORED)), ErrorKind::NotFound);
    assert_eq!(kind(own.verify(Some(7)).map(drop)), ErrorKind::NotFound);
    assert_eq!(
        kind(own.purge(Purge::Backup(7)).map(drop)),
        ErrorKind::NotFound
    );
    let none = own.purge(Purge::KeepNewest(0)).map(drop);
    assert_eq!(kind(none), ErrorKind::InvalidArgument);
    let before = files(&disk, FOLDER);
    assert_eq!(kind(own.restore(1, FOLDER)), ErrorKind::AlreadyExists);
    assert_eq!(files(&disk, FOLDER), before);
    assert!(files(&disk, RESTORED).is_empty());
    // One writer, or readers.
    let second: windrow::Result<Backups> = backups(&disk, &SteppedRuntime::new(3));
    assert_eq!(kind(second.map(drop)), ErrorKind::Locked);
}
