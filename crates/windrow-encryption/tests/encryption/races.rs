//! A reader in another process beside a writer, step by step, and a writer whose syncs fail.

#![expect(
    clippy::disallowed_types,
    reason = "the locks of the engine's facade belong to the engine"
)]

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use windrow::vfs::{Advice, File, LockGuard, OpenMode, Region, Vfs, read_exact_at, write_all_at};
use windrow_encryption::{EncryptedVfs, KeyRing};
use windrow_sim::disk::{Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk};

use crate::{FOLDER, encrypted, key};

type Hook = Arc<Mutex<Box<dyn FnMut(&mut [u8], u64) + Send>>>;

/// A disk on which something happens between the two halves of a read, or to what was read. It is only read.
struct Hooked(SimDisk, Hook);

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Vfs for Hooked {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.0.open(path, mode)?;
        Ok(Arc::new(HookedFile(file, Arc::clone(&self.1))))
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn create(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

struct HookedFile(Arc<dyn File>, Hook);

impl fmt::Debug for HookedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl File for HookedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.0.read_at(buffer, offset)?;
        (self.1.lock().unwrap())(&mut buffer[..count], offset);
        Ok(count)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn advise(&self, _: Range<u64>, _: Advice) {}

    fn map(&self, _: u64) -> io::Result<Arc<Region>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file of 100 bytes, a handle that appends to it, and what reads it in another process, through `hook`.
fn file_and_reader(
    hook: impl FnOnce(Arc<dyn File>) -> Box<dyn FnMut(&mut [u8], u64) + Send>,
) -> Arc<dyn File> {
    let disk = SimDisk::new();
    let vfs = encrypted(&disk);
    vfs.create_dir_all(Path::new(FOLDER)).unwrap();
    let path = Path::new(FOLDER).join("file");
    let writer = vfs.create(&path).unwrap();
    write_all_at(&*writer, &[1; 100], 0).unwrap();
    let hooked = Hooked(disk, Arc::new(Mutex::new(hook(writer))));
    let reader = EncryptedVfs::new(Arc::new(hooked), Arc::new(KeyRing::new("first", key(1))));
    reader.open(&path, OpenMode::Read).unwrap()
}

/// The last cell looks torn twice, as different writes of it meet each read, and then is the last one no more.
#[test]
fn a_cell_that_ceases_to_be_the_last_one_is_read_again() {
    let reader = file_and_reader(|writer| {
        let mut reads = 0;
        Box::new(move |read, offset| {
            if offset < 512 || read.is_empty() || reads == 2 {
                return;
            }
            reads += 1;
            read[50] ^= 1;
            if reads == 2 {
                write_all_at(&*writer, &[1; 1000], 100).unwrap();
            }
        })
    });
    let mut bytes = [0; 100];
    read_exact_at(&*reader, &mut bytes, 0).unwrap();
    assert_eq!(bytes, [1; 100]);
}

/// A read finds the last cell as it was, and then the one behind it, which an append has written with the rest of the first.
#[test]
fn a_cell_that_has_ceased_to_be_the_last_one_is_full() {
    let reader = file_and_reader(|writer| {
        let mut is_first = true;
        Box::new(move |read, offset| {
            // The first half of the read has the old cell alone, and the second half what comes behind it.
            if offset == 512 && is_first && read.len() == 512 {
                is_first = false;
                write_all_at(&*writer, &[1; 1000], 100).unwrap();
            }
        })
    });
    let mut bytes = [0; 900];
    let found = reader.read_at(&mut bytes, 0).unwrap();
    assert!(found > 480, "{found}");
    assert!(bytes[..found].iter().all(|byte| *byte == 1));
}

/// The sync of a header fails, and the next write is durable all the same once it is synced.
#[test]
fn a_header_whose_sync_has_failed_is_written_anew() {
    for is_opened_again in [false, true] {
        let disk = SimDisk::new();
        let vfs = encrypted(&disk);
        vfs.create_dir_all(Path::new(FOLDER)).unwrap();
        let path = Path::new(FOLDER).join("file");
        // Its creation was interrupted.
        drop(disk.create(&path).unwrap());
        disk.sync_dir(Path::new(FOLDER)).unwrap();

        let mut file = vfs.open(&path, OpenMode::ReadWrite).unwrap();
        disk.set_faults([Fault::io(OperationKind::Sync, 0)]);
        write_all_at(&*file, &[1; 10], 0).unwrap_err();
        disk.set_faults([]);
        if is_opened_again {
            file = vfs.open(&path, OpenMode::ReadWrite).unwrap();
        }
        write_all_at(&*file, &[1; 10], 0).unwrap();
        file.sync_data().unwrap();
        let disk = disk.crash(CrashPolicy::DropUnsynced);
        let mut bytes = [0; 10];
        let file = encrypted(&disk).open(&path, OpenMode::Read).unwrap();
        read_exact_at(&*file, &mut bytes, 0).unwrap();
        assert_eq!(bytes, [1; 10]);
    }
}
