//! What the scenarios share: how databases open, what observers and listeners receive, and what is on the disk.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use windrow::{Db, ErrorKind, Event, Keyspace, Options, Result};
use windrow_sim::disk::{self, Image};
use windrow_sim::{SimDisk, SteppedRuntime, unobserved};

/// The folder of the database.
pub(crate) const FOLDER: &str = "/data/db";

/// The entries of a keyspace.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// `options` on `disk`, [unobserved]. Callers step the background jobs or run them.
pub(crate) fn on(options: Options, disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    unobserved(options)
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(runtime.clone()))
}

/// Options under which a few entries make several files.
pub(crate) fn small() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 4 << 10;
    options.keyspace.file_bytes = 2 << 10;
    options.keyspace.base_bytes = 4 << 10;
    options.keyspace.level0_runs = 2;
    options.keyspace.block_bytes = 256;
    options
}

/// Opens the database and its keyspace `k`.
pub(crate) fn open(options: Options) -> (Db, Keyspace) {
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (db, keyspace)
}

/// The kind of the error that `result` must be.
pub(crate) fn kind<T: Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Panics unless the full structural check finds nothing.
pub(crate) fn check_sound(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.damage);
}

/// Everything in `keyspace`.
pub(crate) fn entries(keyspace: &Keyspace) -> Entries {
    let entries = keyspace.iter().unwrap();
    entries.collect::<Result<_>>().unwrap()
}

/// The number of files with `extension`.
pub(crate) fn count(disk: &SimDisk, extension: &str) -> usize {
    disk.image().files_with(extension).len()
}

/// The bytes of all logs.
pub(crate) fn log_bytes(disk: &SimDisk) -> u64 {
    let image = disk.image();
    let length = |path| image.read(path).unwrap().len() as u64;
    image
        .files_with("wal")
        .iter()
        .map(|path| length(path))
        .sum()
}

/// What `look` returns of each change of `disk`.
pub(crate) fn observe<T: Send + 'static>(
    disk: &SimDisk,
    mut look: impl FnMut(&disk::Event, &Image) -> T + Send + 'static,
) -> Receiver<T> {
    let (sender, seen) = channel();
    disk.on_change(move |event, image| drop(sender.send(look(event, image))));
    seen
}

/// `options` with a listener, and what `look` returns of its events.
pub(crate) fn listen<T: Send + 'static>(
    options: Options,
    look: impl Fn(&Event) -> Option<T> + Send + Sync + 'static,
) -> (Options, Receiver<T>) {
    let (sender, events) = channel();
    let listener = move |event: &Event| {
        if let Some(event) = look(event) {
            sender.send(event).unwrap();
        }
    };
    (options.with_listener(Arc::new(listener)), events)
}
