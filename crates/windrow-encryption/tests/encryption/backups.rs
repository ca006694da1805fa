//! Encrypted backups, and damage of their headers.

use std::sync::Arc;

use windrow::backup::{Backups, FolderStore, Purge};
use windrow::vfs::Vfs;
use windrow::{Db, ErrorKind};
use windrow_sim::SimDisk;

use crate::{encrypted, open, options, value};

const BACKUPS: &str = "/backups";
const RESTORED: &str = "/restored";

fn backups(disk: &SimDisk) -> Backups {
    let vfs = Arc::new(encrypted(disk));
    let store = FolderStore::open(Arc::clone(&vfs) as Arc<dyn Vfs>, BACKUPS).unwrap();
    Backups::new(Arc::new(store)).with_vfs(vfs)
}

fn write(db: &Db, rounds: std::ops::Range<u64>) {
    let keyspace = db.keyspace("main").unwrap();
    for round in rounds {
        keyspace.insert(round.to_be_bytes(), value(round)).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

/// A damaged object is damage of the backups that need it. The others stay usable, a list names it, and so does a purge.
#[test]
fn a_damaged_header_of_an_object_spoils_no_other_backup() {
    let disk = SimDisk::new();
    let db = open(&encrypted(&disk)).unwrap();
    let own = backups(&disk);
    write(&db, 0..40);
    db.archive(&own).unwrap();
    write(&db, 40..80);
    db.archive(&own).unwrap();
    db.backup(&own).unwrap();
    drop(own);
    let image = disk.image();
    db.close().unwrap();

    let objects = image.files().into_iter();
    let objects = objects.filter(|path| path.starts_with(BACKUPS) && !path.ends_with("LOCK"));
    let (mut spoiled, mut replaced) = ([0, 0], 0);
    for path in objects {
        let disk = SimDisk::from_image(image.clone());
        disk.edit(|image| image.flip(&path, 100, 1)).unwrap();
        let own = backups(&disk);
        let listed = own.list().unwrap();
        assert_eq!(listed.len(), 2);
        let name = path.file_name().unwrap().to_str().unwrap();
        for (listed, spoiled) in listed.iter().zip(&mut spoiled) {
            match &listed.backup {
                Ok(_) => own.restore(listed.number, RESTORED).unwrap(),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                    assert!(error.to_string().contains(name), "{error}");
                    own.restore(listed.number, RESTORED).unwrap_err();
                    *spoiled += 1;
                }
            }
            for file in disk.image().files() {
                if file.starts_with(RESTORED) {
                    disk.edit(|image| image.remove(&file)).unwrap();
                }
            }
        }
        let check = own.verify(None).unwrap();
        let named = check
            .damage
            .iter()
            .any(|it| it.error.to_string().contains(name));
        assert!(named, "{name}: {check:?}");

        // A new backup has what it needs.
        let db = Db::open(crate::FOLDER, options(&encrypted(&disk))).unwrap();
        let made = db.backup(&own).unwrap();
        let check = own.verify(Some(made.number)).unwrap();
        assert!(check.is_sound(), "{name}: {check:?}");
        db.close().unwrap();
        replaced += u64::from(own.verify(None).unwrap().is_sound());
        if name.ends_with(".backup") {
            let error = own.purge(Purge::KeepNewest(1)).unwrap_err();
            assert!(error.to_string().contains("by its number"), "{error}");
        }
    }
    assert!(spoiled.iter().all(|count| *count > 1), "{spoiled:?}");
    assert!(replaced > 1, "{replaced}");
}
