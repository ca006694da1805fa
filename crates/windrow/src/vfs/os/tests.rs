//! The contract of the file-system traits, on the real file system.

use super::super::{read_exact_at, write_all_at};
use super::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn written_bytes_are_read_back() {
    let directory = directory();
    let path = directory.path().join("file");
    let file = OsVfs.create(&path).unwrap();
    write_all_at(&*file, b"hello", 0).unwrap();
    write_all_at(&*file, b"world", 10).unwrap();
    file.sync_data().unwrap();
    OsVfs.sync_dir(directory.path()).unwrap();

    let file = OsVfs.open(&path, OpenMode::Read).unwrap();
    assert_eq!(file.length().unwrap(), 15);
    let mut bytes = [9; 15];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"hello\0\0\0\0\0world");
    let past = read_exact_at(&*file, &mut bytes, 1).unwrap_err();
    assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
    assert!(file.write_at(b"no", 0).is_err(), "opened for reading only");
}

#[test]
fn truncation_never_grows_a_file() {
    let directory = directory();
    let path = directory.path().join("file");
    let file = OsVfs.create(&path).unwrap();
    write_all_at(&*file, &[7; 9000], 0).unwrap();
    let region = file.map(5000).unwrap();
    file.truncate(10_000).unwrap();
    assert_eq!(file.length().unwrap(), 9000);
    file.truncate(5000).unwrap();
    assert_eq!(file.length().unwrap(), 5000);
    assert_eq!(region.bytes(), [7; 5000]);
    let file = OsVfs.open(&path, OpenMode::Read).unwrap();
    assert!(file.truncate(1).is_err(), "opened for reading only");
}

#[test]
fn create_refuses_an_existing_file_and_open_a_missing_one() {
    let directory = directory();
    let path = directory.path().join("file");
    drop(OsVfs.create(&path).unwrap());
    let again = OsVfs.create(&path).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    let missing = OsVfs.open(&directory.path().join("missing"), OpenMode::Read);
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn names_are_listed_renamed_and_removed() {
    let directory = directory();
    let nested = directory.path().join("a/b");
    OsVfs.create_dir_all(&nested).unwrap();
    OsVfs.create_dir_all(&nested).unwrap();
    drop(OsVfs.create(&nested.join("one")).unwrap());
    drop(OsVfs.create(&nested.join("two")).unwrap());
    OsVfs
        .rename(&nested.join("one"), &nested.join("two"))
        .unwrap();
    assert_eq!(OsVfs.list(&nested).unwrap(), ["two"]);
    OsVfs.remove(&nested.join("two")).unwrap();
    assert!(OsVfs.list(&nested).unwrap().is_empty());
}

/// Directories with names that are durable or not, in a process that may end at any step.
#[derive(Debug, Default)]
struct Levels {
    made: BTreeSet<PathBuf>,
    unsynced: BTreeSet<PathBuf>,
    steps_left: usize,
}

impl Levels {
    fn step(&mut self) -> io::Result<()> {
        self.steps_left = self
            .steps_left
            .checked_sub(1)
            .ok_or(io::ErrorKind::Interrupted)?;
        Ok(())
    }
}

#[test]
fn a_directory_and_its_parents_are_durable_despite_interrupted_creations() {
    let root = Path::new("/data");
    let run = |levels: &RefCell<Levels>, steps: usize| {
        levels.borrow_mut().steps_left = steps;
        create_levels(
            Path::new("/data/a/b/c"),
            |path| path == Path::new("/") || levels.borrow().made.contains(path),
            |path| {
                let mut levels = levels.borrow_mut();
                levels.step()?;
                assert!(levels.made.contains(parent(path)));
                levels.unsynced.insert(path.to_owned());
                levels.made.insert(path.to_owned());
                Ok(())
            },
            |path| {
                let mut levels = levels.borrow_mut();
                levels.step()?;
                levels.unsynced.retain(|name| parent(name) != path);
                Ok(())
            },
        )
    };
    for first in 0..8 {
        for second in 0..8 {
            let levels = RefCell::new(Levels::default());
            levels.borrow_mut().made.insert(root.to_owned());
            for steps in [first, second, usize::MAX] {
                if run(&levels, steps).is_ok() {
                    let levels = levels.borrow();
                    assert_eq!(levels.made.len(), 4);
                    assert!(levels.unsynced.is_empty(), "{levels:?}");
                }
            }
        }
    }
}

#[test]
fn a_file_in_the_way_of_a_directory_is_an_error() {
    let directory = directory();
    let file = directory.path().join("file");
    drop(OsVfs.create(&file).unwrap());
    assert!(OsVfs.create_dir_all(&file).is_err());
    assert!(OsVfs.create_dir_all(&file.join("below")).is_err());
}

#[test]
fn the_parent_directory_holds_a_name() {
    for (path, expected) in [("/a/b", "/a"), ("a/b", "a"), ("a", "."), ("/", "/")] {
        assert_eq!(parent(Path::new(path)), Path::new(expected));
    }
}

#[test]
fn a_removed_file_stays_readable_through_its_handle() {
    let directory = directory();
    let path = directory.path().join("file");
    let file = OsVfs.create(&path).unwrap();
    write_all_at(&*file, b"still here", 0).unwrap();
    OsVfs.remove(&path).unwrap();
    let mut bytes = [0; 10];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"still here");
}

#[test]
fn reserving_does_not_change_the_length() {
    let directory = directory();
    let file = OsVfs.create(&directory.path().join("file")).unwrap();
    write_all_at(&*file, b"abc", 0).unwrap();
    match file.reserve(3, 1 << 20) {
        Ok(()) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
    }
    assert_eq!(file.length().unwrap(), 3);
    file.reserve(0, 0)
        .or_else(|error| match error.kind() {
            io::ErrorKind::Unsupported => Ok(()),
            _ => Err(error),
        })
        .unwrap();
}

#[test]
fn advice_changes_nothing() {
    let directory = directory();
    let file = OsVfs.create(&directory.path().join("file")).unwrap();
    write_all_at(&*file, b"abc", 0).unwrap();
    for advice in [Advice::Random, Advice::Sequential, Advice::DontNeed] {
        file.advise(0..3, advice);
        file.advise(3..3, advice);
    }
    let mut bytes = [0; 3];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"abc");
}

#[test]
fn a_directory_has_space_and_a_missing_one_is_an_error() {
    let directory = directory();
    assert!(OsVfs.available_bytes(directory.path()).unwrap() > 0);
    let missing = OsVfs.available_bytes(&directory.path().join("missing"));
    assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_mapping_outlives_the_name_and_the_handle() {
    let directory = directory();
    let path = directory.path().join("file");
    let file = OsVfs.create(&path).unwrap();
    write_all_at(&*file, &[7; 10_000], 0).unwrap();
    let region = file.map(10_000).unwrap();
    let part = file.map(5).unwrap();
    let empty = file.map(0).unwrap();
    let past = file.map(10_001).unwrap_err();
    assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof); // I1
    drop(file);
    OsVfs.remove(&path).unwrap();
    assert_eq!(region.bytes(), [7; 10_000]);
    assert_eq!(part.bytes(), [7; 5]);
    assert!(empty.bytes().is_empty());
}

#[test]
fn a_load_from_a_mapping_moves_one_page() {
    let directory = directory();
    let file = OsVfs.create(&directory.path().join("file")).unwrap();
    let page = page_bytes();
    let length = 64 * page;
    write_all_at(&*file, &vec![7; length], 0).unwrap();
    file.sync_data().unwrap();
    let region = file.map(length as u64).unwrap();
    assert!(region.is_resident(0..length) && region.is_resident(0..0));
    file.advise(0..length as u64, Advice::DontNeed);
    // A file system in memory keeps its pages.
    let is_on_device = !region.is_resident(0..1);
    assert_eq!(region.bytes()[20 * page + 5], 7);
    assert!(region.is_resident(20 * page..21 * page));
    assert_eq!(!region.is_resident(20 * page - 1..20 * page), is_on_device);
    assert_eq!(!region.is_resident(21 * page..21 * page + 1), is_on_device);
    assert_eq!(!region.is_resident(20 * page..length), is_on_device);
    // Past the end there is nothing to wait for.
    assert!(region.is_resident(length..length + page));
}

#[test]
#[cfg(target_os = "linux")]
fn pages_leave_the_page_cache_after_their_write_back() {
    let directory = directory();
    let file = OsVfs.create(&directory.path().join("file")).unwrap();
    let piece = PIECE_BYTES;
    for number in 0..3 {
        let bytes = vec![7; usize::try_from(piece).unwrap()];
        write_all_at(&*file, &bytes, number * piece).unwrap();
    }
    assert_eq!(file.resident_pages(piece), u64::MAX);
    // Beyond the end is nothing.
    assert_eq!(file.resident_pages(3 * piece), 0);
    for half in [WriteBack::Begin, WriteBack::End] {
        file.write_back(piece..2 * piece, half).unwrap();
        file.write_back(0..0, half).unwrap();
    }
    file.advise(piece..2 * piece, Advice::DontNeed);
    // A file system in memory keeps its pages.
    if file.resident_pages(piece) != u64::MAX {
        assert_eq!(file.resident_pages(piece), 0);
    }
    assert_eq!(file.resident_pages(0), u64::MAX);
    let mut page = vec![0; 4096];
    read_exact_at(&*file, &mut page, 2 * piece - 4096).unwrap();
    assert_eq!(page, [7; 4096]);
    assert_ne!(file.resident_pages(piece) & 1 << 63, 0);
}

#[test]
fn the_lock_is_held_once_and_released_on_drop() {
    // I1 of the lock.
    let directory = directory();
    let path = directory.path().join("LOCK");
    let lock = OsVfs.lock(&path).unwrap();
    let second = OsVfs.lock(&path).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    drop(OsVfs.lock(&path).unwrap());
    drop(OsVfs.lock(&path).unwrap());
}

#[test]
fn a_lock_of_the_operating_system_is_respected() {
    // I1 of the lock: another process would hold it like this, and this one's own list lacks it.
    let directory = directory();
    let path = directory.path().join("LOCK");
    let other = fs::File::create(&path).unwrap();
    other.try_lock().unwrap();
    let second = OsVfs.lock(&path).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
    drop(other);
    drop(OsVfs.lock(&path).unwrap());
}

/// A folder from elsewhere may have a link where the engine writes. What is read may be a link.
#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_symbolic_link() {
    let directory = directory();
    let target = directory.path().join("target");
    let linked = directory.path().join("linked");
    std::os::unix::fs::symlink(&target, &linked).unwrap();
    let changes = || {
        let opened = OsVfs.open(&linked, OpenMode::ReadWrite).map(drop);
        let locked = OsVfs.lock(&linked).map(drop);
        [opened, locked, OsVfs.create(&linked).map(drop)]
    };
    assert!(changes().iter().all(io::Result::is_err));
    assert!(!target.exists());
    fs::write(&target, "of somebody else").unwrap();
    let [opened, locked, created] = changes();
    for refused in [opened, locked] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }
    assert!(created.is_err());
    let mut found = [0; 2];
    let file = OsVfs.open(&linked, OpenMode::Read).unwrap();
    file.read_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"of");
    assert_eq!(fs::read(&target).unwrap(), b"of somebody else");
}
