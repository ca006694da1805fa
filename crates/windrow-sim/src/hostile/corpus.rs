//! The real databases, tables and backups that hostile files are made of. They are made once, in memory.

use super::forge::Files;
use crate::disk::Image;
use crate::history::{FIRST_KEYSPACE, Generator, Operation, Profile};
use crate::model::Effect;
use crate::session::{FOLDER, JOBS_MAX, Session};
use crate::settings::Setting;
use crate::{SimDisk, SteppedRuntime};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use windrow::backup::{Backups, FolderStore};
use windrow::{Batch, Db, Durability, Result, TableWriter};

/// The folder of backups.
pub(super) const BACKUPS: &str = "/data/backups";

/// The name of the external table.
pub(super) const EXTERNAL: &str = "external.table";

/// What a database was before somebody forged it.
#[derive(Debug)]
pub(super) struct Original {
    pub(super) setting: Setting,
    pub(super) files: Files,
    /// The keys of all its entries.
    pub(super) keys: Vec<Vec<u8>>,
    /// What the system's clock shows.
    pub(super) moment: Duration,
    /// The objects of a store with two backups of it, or with its archive.
    pub(super) backups: Files,
    /// The bytes of a batch; none of an archived database.
    pub(super) batch: Vec<u8>,
}

/// The databases: of several sets of options, closed and killed.
pub(super) fn originals() -> &'static [Original] {
    static ORIGINALS: OnceLock<Vec<Original>> = OnceLock::new();
    ORIGINALS.get_or_init(|| {
        let names = ["tiny", "compressed", "buffered", "many-runs", "unlogged"];
        let closed = names
            .iter()
            .zip(0..)
            .map(|(name, seed)| (*name, seed, true));
        let killed = names
            .iter()
            .zip(40..)
            .map(|(name, seed)| (*name, seed, false));
        let all = closed.chain(killed);
        all.map(|(name, seed, is_closed)| {
            original(name, seed, is_closed).expect("it can be filled")
        })
        .collect()
    })
}

/// Databases that are archived, and closed.
pub(super) fn archived_originals() -> &'static [Original] {
    static ORIGINALS: OnceLock<Vec<Original>> = OnceLock::new();
    ORIGINALS.get_or_init(|| {
        let names = ["tiny", "compressed", "many-runs"];
        let all = names.iter().zip(60..);
        all.map(|(name, seed)| archived(name, seed).expect("it can be filled"))
            .collect()
    })
}

/// The files of `folder`, by name.
pub(super) fn files_of(image: &Image, folder: &str) -> Files {
    let paths = image.files().into_iter();
    let within = paths.filter(|path| path.parent() == Some(Path::new(folder)));
    let file = |path: std::path::PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let bytes = image.read(&path).expect("the file exists");
        (name, bytes)
    };
    within.map(file).collect()
}

fn original(name: &str, seed: u64, is_closed: bool) -> Result<Original> {
    let setting = Setting::named(name).expect("the setting exists");
    let mut session = Session::new(seed, setting.clone());
    let operations = Generator::new(seed, Profile::SMALL).operations(80);
    session.open()?;
    for operation in &operations {
        session.apply(operation)?;
    }
    session.runtime.run_until_idle(JOBS_MAX);
    session.db().backup(&store(&session)?)?;
    let keyspace = session.db().keyspace(FIRST_KEYSPACE)?;
    let mut batch = Batch::new();
    batch.insert(&keyspace, "batch", [7; 300])?;
    batch.remove(&keyspace, "removed")?;
    batch.delete_range(&keyspace, "r".."s")?;
    let batch = batch.to_bytes()?;
    if setting.has_log() {
        let transaction = session.db().transaction();
        transaction.get(&keyspace, "read")?;
        transaction.insert(&keyspace, "prepared", "prepared")?;
        transaction.prepare("prepared")?;
        session.db().consumer("consumer")?;
    }
    keyspace.insert_with("last", "last", Durability::Buffered)?;
    drop(keyspace);
    session.db().backup(&store(&session)?)?;
    if is_closed {
        session.close()?;
    } else {
        session.db().persist()?;
    }
    Ok(taken(&session, setting, &operations, batch))
}

/// A store of backups on the disk of `session`.
fn store(session: &Session) -> Result<Backups> {
    let vfs = Arc::new(session.disk.clone());
    let folder = FolderStore::open(Arc::<SimDisk>::clone(&vfs), BACKUPS)?;
    let backups = Backups::new(Arc::new(folder)).with_vfs(vfs);
    Ok(backups.with_runtime(Arc::new(session.runtime.clone())))
}

/// What `session` has made by `operations`.
fn taken(
    session: &Session,
    setting: Setting,
    operations: &[Operation],
    batch: Vec<u8>,
) -> Original {
    let image = session.disk.image();
    let keys: BTreeSet<Vec<u8>> = operations.iter().flat_map(keys_of).collect();
    let mut keys: Vec<Vec<u8>> = keys.into_iter().collect();
    keys.extend([&b"last"[..], b"prepared", b"batch"].map(<[u8]>::to_vec));
    Original {
        setting,
        files: files_of(&image, FOLDER),
        keys,
        moment: Duration::from_millis(session.lock_model().moment()),
        backups: files_of(&image, BACKUPS),
        batch,
    }
}

/// An archive with several stretches, events of keyspaces, and a backup between them.
fn archived(name: &str, seed: u64) -> Result<Original> {
    let setting = Setting::named(name).expect("the setting exists");
    let mut session = Session::new(seed, setting.clone());
    let operations = Generator::new(seed, Profile::SMALL).operations(60);
    session.open()?;
    for (at, operation) in operations.iter().enumerate() {
        session.apply(operation)?;
        if at % 15 == 14 {
            session.runtime.run_until_idle(JOBS_MAX);
            session.db().archive(&store(&session)?)?;
        }
        if at == 37 {
            session.db().backup(&store(&session)?)?;
        }
    }
    let db = session.db();
    let passing = db.keyspace("passing")?;
    passing.insert("last", "of it")?;
    passing.rename("renamed")?;
    drop(passing);
    db.archive(&store(&session)?)?;
    db.drop_keyspace("renamed")?;
    let transaction = db.transaction();
    transaction.insert(&db.keyspace(FIRST_KEYSPACE)?, "prepared", "prepared")?;
    transaction.prepare("prepared")?;
    db.archive(&store(&session)?)?;
    session.close()?;
    Ok(taken(&session, setting, &operations, Vec::new()))
}

/// The keys that an operation writes.
fn keys_of(operation: &Operation) -> Vec<Vec<u8>> {
    match operation {
        Operation::Write(changes, _) => {
            let kept = changes
                .iter()
                .filter(|(_, _, effect)| !matches!(effect, Effect::Remove));
            kept.map(|(_, key, _)| key.clone()).collect()
        }
        Operation::BulkLoad(_, entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        _ => Vec::new(),
    }
}

/// An external table with all kinds of entries that one may have, in several blocks.
pub(super) fn external_table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| write_external().expect("the table can be written"))
}

fn write_external() -> Result<Vec<u8>> {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(3);
    let setting = Setting::named("tiny").expect("the setting exists");
    let options = setting.on(&disk, &runtime);
    // It creates the folder.
    Db::open(Path::new(FOLDER), options.clone())?.close()?;
    let path = Path::new(FOLDER).join(EXTERNAL);
    let mut writer = TableWriter::create(&path, &options)?;
    for number in 0..80_u32 {
        let key = format!("key-{number:04}");
        let value = vec![number.to_le_bytes()[0]; 1 + number as usize * 3];
        match number % 5 {
            0 => writer.remove(key)?,
            _ => writer.insert(key, value)?,
        }
    }
    writer.finish()?;
    Ok(disk.image().read(&path).expect("the file exists"))
}
