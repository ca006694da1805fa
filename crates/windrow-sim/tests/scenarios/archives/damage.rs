//! Changed, cut, exchanged and missing objects of the archive: each is named, and nothing is restored from it.

use std::path::{Path, PathBuf};

use windrow::ErrorKind;
use windrow::backup::{Purge, RestoreTo};
use windrow_sim::{SimDisk, SteppedRuntime};

use super::{Contents, contents, newest, open, restored, sequence, start};
use crate::backups::{BACKUPS, RESTORED, backups, files};
use crate::common::FOLDER;

/// A database with a backup and four stretches behind it, and the state behind the last.
fn small() -> (SimDisk, (u64, Contents)) {
    let start = start();
    start.db.archive(&start.backups).unwrap();
    let main = start.db.keyspace("main").unwrap();
    start.db.archive(&start.backups).unwrap();
    for key in 0..3_u8 {
        main.insert([key], [key; 30]).unwrap();
        main.remove([key / 2]).unwrap();
        start.db.archive(&start.backups).unwrap();
    }
    let state = (sequence(&start.db), contents(&start.db));
    start.db.close().unwrap();
    (start.disk, state)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The descriptions of the stretches, oldest first.
fn descriptions(disk: &SimDisk) -> Vec<PathBuf> {
    let mut found = files(disk, BACKUPS);
    found.retain(|path| path.extension().is_some_and(|it| it == "archive"));
    let first = |path: &PathBuf| {
        let name = name(path);
        name.split('-').nth(1).unwrap().parse::<u64>().unwrap()
    };
    found.sort_by_key(first);
    found
}

/// The pieces that only the archive has: they are not in the store before it.
fn pieces(disk: &SimDisk) -> Vec<PathBuf> {
    let mut shown = Vec::new();
    for path in descriptions(disk) {
        let bytes = disk.image().read(&path).unwrap();
        shown.extend(bytes);
    }
    let mut found = files(disk, BACKUPS);
    found.retain(|path| {
        let name = name(path);
        let Some((digits, _)) = name
            .strip_suffix(".piece")
            .and_then(|piece| piece.split_once('-'))
        else {
            return false;
        };
        let checksum = u128::from_str_radix(digits, 16).unwrap().to_le_bytes();
        shown.windows(16).any(|it| it == checksum)
    });
    found
}

/// Checks that a restore of the newest state is right, or refused with the name of `changed`.
fn is_refused(disk: &SimDisk, state: &(u64, Contents), changed: &str) -> bool {
    let backups = backups(disk, &SteppedRuntime::new(2)).unwrap();
    let check = backups.verify(None).unwrap();
    match restored(disk, &backups, RestoreTo::Sequence(state.0), None) {
        Ok(found) => {
            assert!(found == *state, "after a change of {changed}");
            assert!(check.is_sound(), "{check:?} after a change of {changed}");
            false
        }
        Err(error) => {
            let is_named = |error: &windrow::Error| error.to_string().contains(changed);
            assert!(is_named(&error), "{error} after a change of {changed}");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            let named = check.damage.iter().any(|it| is_named(&it.error));
            assert!(named, "{check:?} after a change of {changed}");
            assert!(
                files(disk, RESTORED)
                    .iter()
                    .all(|path| path.ends_with("LOCK"))
            );
            true
        }
    }
}

#[test]
fn each_changed_byte_of_an_archive_is_found() {
    let (disk, state) = small();
    let objects = [descriptions(&disk), pieces(&disk)].concat();
    assert_eq!(objects.len(), 8, "{objects:?}");
    assert!(!is_refused(&disk, &state, "nothing"));
    for path in objects {
        let sound = disk.image().read(&path).unwrap();
        for at in 0..sound.len() {
            disk.edit(|image| image.flip(&path, at, 1 << (at % 8)))
                .unwrap();
            assert!(is_refused(&disk, &state, &name(&path)), "{at}");
            disk.edit(|image| image.write(&path, &sound)).unwrap();
        }
        for length in [0, 1, sound.len() - 1] {
            disk.edit(|image| image.write(&path, &sound[..length]))
                .unwrap();
            assert!(is_refused(&disk, &state, &name(&path)), "cut to {length}");
        }
        let longer = [&sound[..], b"x"].concat();
        disk.edit(|image| image.write(&path, &longer)).unwrap();
        assert!(is_refused(&disk, &state, &name(&path)), "a byte more");
        disk.edit(|image| image.write(&path, &sound)).unwrap();
    }
    assert!(!is_refused(&disk, &state, "nothing"));
}

#[test]
fn a_missing_piece_is_named_by_a_list_already() {
    let (disk, state) = small();
    for path in pieces(&disk) {
        let sound = disk.image().read(&path).unwrap();
        disk.edit(|image| image.remove(&path)).unwrap();
        let backups = backups(&disk, &SteppedRuntime::new(2)).unwrap();
        let reachable = backups.reachable().unwrap();
        assert_eq!(reachable.damage.len(), 1);
        let error = reachable.damage[0].to_string();
        assert!(error.contains(&name(&path)), "{error}");
        assert!(*reachable.states[0].sequences[0].end() < state.0);
        drop(backups);
        assert!(is_refused(&disk, &state, &name(&path)));
        disk.edit(|image| image.write(&path, &sound)).unwrap();
    }
}

/// A number behind a gap is not reached, and the gap is named.
#[test]
fn a_missing_stretch_is_a_gap() {
    let (disk, state) = small();
    let all = descriptions(&disk);
    let last = all.len() - 1;
    for (index, path) in all.iter().enumerate() {
        let sound = disk.image().read(path).unwrap();
        disk.edit(|image| image.remove(path)).unwrap();
        let own = backups(&disk, &SteppedRuntime::new(2)).unwrap();
        let error = own.restore_to(RestoreTo::Sequence(state.0), None, RESTORED);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        let check = own.verify(None).unwrap();
        // Nobody misses the newest but the database.
        assert_eq!(check.is_sound(), index == last, "{check:?}");
        if index < last {
            let words = check.damage[0].error.to_string();
            assert!(words.contains("missing"), "{words}");
        }
        // The next archiving notices, and begins with a backup.
        let again = SimDisk::from_image(disk.image()).end_process();
        drop(own);
        let again_backups = backups(&again, &SteppedRuntime::new(3)).unwrap();
        let db = open(&again, &SteppedRuntime::new(3), FOLDER).unwrap();
        db.keyspace("main").unwrap().insert("x", "y").unwrap();
        let archived = db.archive(&again_backups).unwrap();
        assert!(archived.backup.is_some(), "{index}");
        let to = RestoreTo::Sequence(sequence(&db));
        let found = restored(&again, &again_backups, to, None).unwrap();
        assert!(found.1 == contents(&db), "{index}");
        disk.edit(|image| image.write(path, &sound)).unwrap();
    }
    assert!(!is_refused(&disk, &state, "nothing"));
}

#[test]
fn exchanged_objects_are_refused() {
    let (disk, state) = small();
    for all in [descriptions(&disk), pieces(&disk)] {
        for (one, other) in [(0, 1), (1, 2), (2, 0)] {
            let [one, other] = [one, other].map(|index: usize| all[index].clone());
            let [first, second] = [&one, &other].map(|path| disk.image().read(path).unwrap());
            disk.edit(|image| {
                image.write(&one, &second)?;
                image.write(&other, &first)
            })
            .unwrap();
            let own = backups(&disk, &SteppedRuntime::new(2)).unwrap();
            let error = own.restore_to(RestoreTo::Sequence(state.0), None, RESTORED);
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            let check = own.verify(None).unwrap();
            for path in [&one, &other] {
                let name = name(path);
                let is_named =
                    |it: &windrow::backup::BackupDamage| it.error.to_string().contains(&name);
                assert!(check.damage.iter().any(is_named), "{check:?}");
            }
            disk.edit(|image| {
                image.write(&one, &first)?;
                image.write(&other, &second)
            })
            .unwrap();
        }
    }
    assert!(!is_refused(&disk, &state, "nothing"));
}

/// Nobody knows which pieces it needs.
#[test]
fn while_a_stretch_cannot_be_read_no_piece_is_removed() {
    let (disk, state) = small();
    let path = descriptions(&disk)[1].clone();
    let sound = disk.image().read(&path).unwrap();
    disk.edit(|image| image.flip(&path, 30, 1)).unwrap();
    let own = backups(&disk, &SteppedRuntime::new(2)).unwrap();
    let before = files(&disk, BACKUPS).len();
    let purged = own.purge(Purge::KeepNewest(1)).unwrap();
    assert_eq!(purged.unreadable_stretches, [name(&path)]);
    assert_eq!(files(&disk, BACKUPS).len(), before);
    disk.edit(|image| image.write(&path, &sound)).unwrap();
    let found = restored(&disk, &own, RestoreTo::Sequence(state.0), None).unwrap();
    assert!(found == state);
}

/// A damaged backup may have the state, so a restore asks for another one by its number.
#[test]
fn a_restore_names_a_damaged_backup() {
    let start = start();
    start.db.archive(&start.backups).unwrap();
    let main = start.db.keyspace("main").unwrap();
    main.insert("key", "archived").unwrap();
    start.db.archive(&start.backups).unwrap();
    let archived = (sequence(&start.db), contents(&start.db));
    main.insert("key", "backed up").unwrap();
    let made = start.db.backup(&start.backups).unwrap();
    let newest_state = (sequence(&start.db), contents(&start.db));
    let name = format!("{:06}.backup", made.number);
    let path = Path::new(BACKUPS).join(&name);

    let restore = |to, from| restored(&start.disk, &start.backups, to, from);
    assert!(restore(newest(), None).unwrap() == newest_state);
    start.disk.edit(|image| image.flip(&path, 30, 1)).unwrap();
    let numbers = [archived.0, newest_state.0].map(RestoreTo::Sequence);
    for to in numbers.into_iter().chain([newest()]) {
        let error = restore(to, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(&name), "{error}");
    }
    assert!(restore(newest(), Some(1)).unwrap() == archived);
    assert!(restore(RestoreTo::Sequence(archived.0), Some(1)).unwrap() == archived);
}
