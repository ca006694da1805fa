//! Models of [`LogSync`]: every interleaving of a writer and threads that sync.
//! Run with `--cfg loom`.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::sync::LogSync;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::vfs::{Advice, File, Region};

/// A file that only counts its bytes.
#[derive(Debug, Default)]
struct CountedFile {
    written: AtomicU64,
    durable: AtomicU64,
    syncs: AtomicU64,
    /// Whether the first sync fails.
    fails: bool,
}

impl File for CountedFile {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        let end = offset + buffer.len() as u64;
        self.written.store(end, Ordering::SeqCst);
        Ok(buffer.len())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.written.load(Ordering::SeqCst))
    }

    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        let written = self.written.load(Ordering::SeqCst);
        if self.syncs.fetch_add(1, Ordering::SeqCst) == 0 && self.fails {
            return Err(io::ErrorKind::Other.into());
        }
        self.durable.store(written, Ordering::SeqCst);
        Ok(())
    }

    fn advise(&self, _: Range<u64>, _: Advice) {}

    fn map(&self, _: u64) -> io::Result<Arc<Region>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn log(fails: bool) -> (Arc<CountedFile>, Arc<LogSync>) {
    let file = Arc::new(CountedFile {
        fails,
        ..CountedFile::default()
    });
    let shared: Arc<dyn File> = file.clone();
    (file, Arc::new(LogSync::new(shared, PathBuf::new(), None)))
}

fn write(file: &CountedFile, sync: &LogSync, end: u64) {
    file.write_at(&[0], end - 1).unwrap();
    sync.publish_written(end);
}

// I1, I2
#[test]
fn what_counts_as_synced_is_durable() {
    loom::model(|| {
        let (file, sync) = log(false);
        write(&file, &sync, 1);
        let threads = [1, 2].map(|_| {
            let (file, sync) = (Arc::clone(&file), Arc::clone(&sync));
            loom::thread::spawn(move || {
                sync.sync_through(1).unwrap();
                let synced = sync.synced();
                assert!(synced >= 1 && synced <= file.durable.load(Ordering::SeqCst));
            })
        });
        write(&file, &sync, 2);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

// I3
#[test]
fn a_failed_sync_is_seen_by_all_and_never_repeated() {
    loom::model(|| {
        let (file, sync) = log(true);
        write(&file, &sync, 1);
        let threads = [1, 2].map(|_| {
            let sync = Arc::clone(&sync);
            loom::thread::spawn(move || assert!(sync.sync_through(1).is_err()))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(file.syncs.load(Ordering::SeqCst), 1);
    });
}
