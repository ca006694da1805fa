//! What is done with hostile files.

use super::archive::forge_archive;
use super::bytes::{change, checksum, number};
use super::choices::Choices;
use super::corpus::{
    BACKUPS, EXTERNAL, Original, archived_originals, external_table, files_of, originals,
};
use super::forge::{Files, Forgery};
use super::store::forge_store;
use crate::SteppedRuntime;
use crate::disk::{Fault, OperationKind, SimDisk};
use crate::session::FOLDER;
use crate::settings::Setting;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use windrow::backup::{Backups, FolderStore, Purge, Reachable, RestoreTo};
use windrow::inspect;
use windrow::vfs::Vfs as _;
use windrow::{
    BlockSource, Db, Error, ErrorKind, FileCheck, KeyspaceOptions, Options, Recovery, Result, Scrub,
};

/// The folder of a repaired or restored database.
const NEW: &str = "/data/new";

/// The most entries that a pass reads.
const ENTRIES_MAX: usize = 20_000;

/// The most background jobs that are run.
const JOBS_MAX: usize = 300;

/// The most reads of the disk in a case, beside those for each byte that a hostile file has: a loop that does not end passes it.
const READS_MAX: u64 = 500_000;

/// A way to read hostile files.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Makes hostile files as the bytes choose, and reads them.
    pub run: fn(&[u8]) -> Seen,
}

/// What a case was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// The bytes of the hostile files.
    pub bytes: u64,
    /// Whether the files were accepted: a database has opened, a table was added, a repair has ended.
    pub is_accepted: bool,
}

/// All targets.
pub const TARGETS: [Target; 7] = [
    Target {
        name: "database",
        run: database,
    },
    Target {
        name: "repair",
        run: repair,
    },
    Target {
        name: "dump",
        run: dump,
    },
    Target {
        name: "ingest",
        run: ingest,
    },
    Target {
        name: "restore",
        run: restore,
    },
    Target {
        name: "archive",
        run: archive,
    },
    Target {
        name: "batch",
        run: batch,
    },
];

/// Runs the target `name` once, for a fuzzer.
///
/// # Panics
/// There is no such target, or it finds a fault.
pub fn run_target(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("the target exists").run)(bytes);
}

/// The content of `outcome`, or `None` for a refusal that names the fault.
///
/// # Panics
/// The error is of a kind that files cannot cause.
fn accepted<T>(outcome: Result<T>) -> Option<T> {
    match outcome {
        Ok(content) => Some(content),
        Err(error) => {
            check_refusal(&error);
            None
        }
    }
}

fn check_refusal(error: &Error) {
    let is_named = matches!(
        error.kind(),
        ErrorKind::Corruption
            | ErrorKind::Unsupported
            | ErrorKind::InvalidArgument
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Merge
            | ErrorKind::Conflict
            | ErrorKind::FellBehind
            | ErrorKind::ReadOnly
    );
    assert!(is_named, "hostile files cause {:?}: {error}", error.kind());
}

/// Does what changes the database. It may find damage and stop for it.
///
/// # Panics
/// The error is of a kind that files cannot cause, or a job has panicked.
fn try_write<T>(outcome: Result<T>) {
    match outcome {
        Err(error) if error.kind() == ErrorKind::Poisoned => {
            // The engine catches the panic of a job, and says so in this error.
            assert!(!error.to_string().contains("panicked"), "{error}");
        }
        Err(error) => check_refusal(&error),
        Ok(_) => {}
    }
}

/// A disk with a hostile folder.
pub(super) struct Place {
    disk: SimDisk,
    runtime: SteppedRuntime,
    bytes: u64,
}

impl Place {
    pub(super) fn new(folder: &str, files: &Files, moment: Duration) -> Self {
        let disk = SimDisk::new();
        let bytes = files.values().map(|content| content.len() as u64).sum();
        let runtime = SteppedRuntime::new(1);
        runtime.set_unix_time(moment);
        let last = READS_MAX + 4 * bytes;
        disk.set_faults([Fault::io(OperationKind::Read, last).from_then_on()]);
        let place = Self {
            disk,
            runtime,
            bytes,
        };
        place.put(folder, files);
        place
    }

    /// Puts `files` into a new folder.
    fn put(&self, folder: &str, files: &Files) {
        let created = self.disk.create_dir_all(Path::new(folder));
        created.expect("a disk works");
        self.disk.edit(|image| {
            for (name, content) in files {
                let path = Path::new(folder).join(name);
                image.write(&path, content).expect("the folder exists");
            }
        });
    }

    /// The folder of backups.
    pub(super) fn backups(&self) -> Backups {
        let vfs = Arc::new(self.disk.clone());
        let folder = FolderStore::open(Arc::<SimDisk>::clone(&vfs), BACKUPS);
        let backups = Backups::new(Arc::new(folder.expect("the folder exists")));
        let backups = backups.with_vfs(vfs);
        backups.with_runtime(Arc::new(self.runtime.clone()))
    }

    fn seen(&self, is_accepted: bool) -> Seen {
        let reads = self.disk.operations(OperationKind::Read);
        assert!(
            reads <= READS_MAX + 4 * self.bytes,
            "it reads {reads} times"
        );
        Seen {
            bytes: self.bytes,
            is_accepted,
        }
    }
}

/// The original that the choices pick.
fn pick(choices: &mut Choices<'_>) -> &'static Original {
    let originals = originals();
    &originals[choices.below(originals.len())]
}

/// A forged folder.
fn forged(original: &Original, choices: &mut Choices<'_>) -> Files {
    let mut forgery = Forgery::new(original.files.clone(), &original.keys);
    forgery.change(choices);
    forgery.files
}

/// Opens a forged database, reads all of it, writes, and opens it again.
fn database(bytes: &[u8]) -> Seen {
    let mut choices = Choices::new(bytes);
    let original = pick(&mut choices);
    let way = choices.below(8);
    let files = forged(original, &mut choices);
    let place = Place::new(FOLDER, &files, original.moment);
    let mut options = original.setting.on(&place.disk, &place.runtime);
    match way {
        0 => options.recovery = Recovery::UpToDamage,
        1 => options.block_source = BlockSource::Buffered,
        2 => options.block_source = BlockSource::Mapped,
        _ => {}
    }
    let is_read_only = way == 3;
    if way == 4 {
        let opened = accepted(Db::open_secondary(FOLDER, options.clone()));
        if let Some(secondary) = opened {
            read_all(&secondary.db(), &original.keys);
            accepted(secondary.catch_up());
        }
    }
    let opened = if is_read_only {
        accepted(Db::open_read_only(FOLDER, options.clone()))
    } else {
        accepted(Db::open(FOLDER, options.clone()))
    };
    let Some(db) = opened else {
        return place.seen(false);
    };
    read_all(&db, &original.keys);
    if !is_read_only {
        write(&db, &place.runtime);
        read_all(&db, &original.keys);
    }
    try_write(db.close());
    if let Some(db) = accepted(Db::open(FOLDER, options)) {
        read_all(&db, &original.keys);
    }
    place.seen(true)
}

/// Repairs a forged database. The new one is sound, and the old one is as it was.
fn repair(bytes: &[u8]) -> Seen {
    let mut choices = Choices::new(bytes);
    let original = pick(&mut choices);
    let lost = choices.below(6);
    let mut files = forged(original, &mut choices);
    match lost {
        0 => drop(files.remove("CURRENT")),
        1 => files.retain(|name, _| !name.ends_with(".manifest")),
        _ => {}
    }
    let place = Place::new(FOLDER, &files, original.moment);
    let options = original.setting.on(&place.disk, &place.runtime);
    let report = accepted(Db::repair(FOLDER, NEW, &options));
    assert!(
        files_of(&place.disk.image(), FOLDER) == files,
        "a repair changes what it reads"
    );
    let Some(report) = report else {
        return place.seen(false);
    };
    let names = report.keyspaces.into_iter().map(|keyspace| keyspace.name);
    let options = original
        .setting
        .appending_to(names, &place.disk, &place.runtime);
    if let Some(db) = accepted(Db::open(NEW, options)) {
        assert!(
            read_all(&db, &original.keys),
            "a repair makes what is not sound"
        );
        write(&db, &place.runtime);
    }
    place.seen(true)
}

/// Shows each file of a forged database.
fn dump(bytes: &[u8]) -> Seen {
    let mut choices = Choices::new(bytes);
    let original = pick(&mut choices);
    let mut files = forged(original, &mut choices);
    let mut backups = original.backups.clone();
    forge_store(&mut backups, &original.keys, &mut choices);
    files.extend(
        backups
            .into_iter()
            .filter(|(name, _)| name.ends_with(".backup")),
    );
    files.retain(|name, content| original.files.get(name) != Some(content));
    let place = Place::new(FOLDER, &files, original.moment);
    let mut are_accepted = true;
    for name in files.keys() {
        let path = Path::new(FOLDER).join(name);
        let shown = inspect::dump(&place.disk, &path, &mut io::sink());
        are_accepted &= accepted(shown).is_some();
    }
    place.seen(are_accepted)
}

/// Adds a forged table to a database.
fn ingest(bytes: &[u8]) -> Seen {
    let mut choices = Choices::new(bytes);
    let check = match choices.below(3) {
        0 => FileCheck::Metadata,
        _ => FileCheck::Whole,
    };
    let keys: Vec<Vec<u8>> = (0..90)
        .map(|number| format!("key-{number:04}").into_bytes())
        .collect();
    let external = Files::from([(EXTERNAL.to_owned(), external_table().to_vec())]);
    let mut forgery = Forgery::new(external, &[]);
    for _ in 0..=choices.below(4) {
        forgery.change_table(&mut choices);
    }
    let place = Place::new("/data", &forgery.files, Duration::from_secs(1_000_000));
    let setting = Setting::named("tiny").expect("the setting exists");
    let options = setting.on(&place.disk, &place.runtime);
    let db = Db::open(FOLDER, options.clone()).expect("a new database opens");
    let keyspace = db.keyspace("ingested").expect("it is created");
    keyspace
        .insert("key-0007", "before")
        .expect("it is written");
    let path = PathBuf::from("/data").join(EXTERNAL);
    let added = accepted(db.ingest_with([(&keyspace, &path)], check));
    let is_sound = read_all(&db, &keys);
    assert!(
        is_sound || added.is_some() && check == FileCheck::Metadata,
        "it adds what is not sound"
    );
    write(&db, &place.runtime);
    read_all(&db, &keys);
    drop(keyspace);
    try_write(db.close());
    if let Some(db) = accepted(Db::open(FOLDER, options)) {
        read_all(&db, &keys);
    }
    place.seen(added.is_some())
}

/// Lists, checks, restores and purges forged backups.
fn restore(bytes: &[u8]) -> Seen {
    let mut choices = Choices::new(bytes);
    let original = pick(&mut choices);
    let mut store = original.backups.clone();
    forge_store(&mut store, &original.keys, &mut choices);
    let place = Place::new(BACKUPS, &store, original.moment);
    let backups = place.backups();
    accepted(backups.list());
    accepted(backups.verify(None));
    let is_restored = accepted(backups.restore(2, NEW)).is_some();
    use_restored(&place, original, is_restored);
    accepted(backups.purge(Purge::KeepNewest(1)));
    place.seen(is_restored)
}

/// Checks that a restore has written nothing outside of its folder, and uses what it has made.
fn use_restored(place: &Place, original: &Original, is_restored: bool) {
    let outside = files_of(&place.disk.image(), "/data");
    assert!(
        outside.is_empty(),
        "a restore writes outside of its folder: {outside:?}"
    );
    if is_restored {
        let options = original.setting.on(&place.disk, &place.runtime);
        if let Some(db) = accepted(Db::open(NEW, options)) {
            read_all(&db, &original.keys);
            write(&db, &place.runtime);
        }
    }
}

/// The last state of each range that can be reached.
pub(super) fn ends(reachable: &Reachable) -> Vec<u64> {
    let states = reachable.states.iter().flat_map(|it| &it.sequences);
    states.map(|sequences| *sequences.end()).collect()
}

/// Lists, checks, shows and restores the states of a forged archive, and goes on with it.
fn archive(bytes: &[u8]) -> Seen {
    let mut choices = Choices::new(bytes);
    let originals = archived_originals();
    let original = &originals[choices.below(originals.len())];
    let mut store = original.backups.clone();
    forge_archive(&mut store, &original.keys, &mut choices);
    let place = Place::new(BACKUPS, &store, original.moment);
    let backups = place.backups();
    accepted(backups.list());
    accepted(backups.verify(None));
    for (name, content) in &store {
        let path = Path::new(BACKUPS).join(name);
        let is_piece = path.extension().is_some_and(|it| it == "piece");
        if !is_piece && original.backups.get(name) != Some(content) {
            accepted(inspect::dump(&place.disk, &path, &mut io::sink()));
        }
    }
    let reachable = accepted(backups.reachable());
    let ends = reachable.map_or(Vec::new(), |reachable| ends(&reachable));
    let to = match choices.below(4) {
        0 => RestoreTo::Time(SystemTime::UNIX_EPOCH + original.moment),
        1 => RestoreTo::Sequence(number(&mut choices)),
        _ => RestoreTo::Sequence(choices.pick(&ends).copied().unwrap_or(1)),
    };
    let from = choices
        .is_one_in(3)
        .then(|| 1 + u64::from(choices.byte() % 2));
    let is_restored = accepted(backups.restore_to(to, from, NEW)).is_some();
    use_restored(&place, original, is_restored);
    place.put(FOLDER, &original.files);
    let options = original.setting.on(&place.disk, &place.runtime);
    let db = Db::open(FOLDER, options).expect("the database is not forged");
    let keyspace = db.keyspace(crate::history::FIRST_KEYSPACE);
    let written = keyspace.and_then(|keyspace| keyspace.insert("last", "last"));
    written.expect("the database is not forged");
    accepted(db.archive(&backups));
    accepted(db.backup(&backups));
    db.close().expect("the database is not forged");
    accepted(backups.purge(Purge::KeepNewest(1)));
    place.seen(is_restored)
}

/// Reads the bytes of forged batches, options and names.
fn batch(bytes: &[u8]) -> Seen {
    let mut choices = Choices::new(bytes);
    let original = pick(&mut choices);
    let mut batch = original.batch[4..].to_vec();
    for _ in 0..=choices.below(4) {
        change(&mut batch, &mut choices);
    }
    let mut sealed = checksum(0, &batch).to_vec();
    sealed.extend_from_slice(&batch);
    if let Ok(text) = std::str::from_utf8(bytes) {
        accepted(text.parse::<KeyspaceOptions>());
    }
    let place = Place::new(FOLDER, &Files::new(), original.moment);
    let options: Options = original.setting.on(&place.disk, &place.runtime);
    let db = Db::open(FOLDER, options).expect("a new database opens");
    db.keyspace(crate::history::FIRST_KEYSPACE)
        .expect("it is created");
    let decoded = accepted(db.batch_from_bytes(&sealed));
    if let Some(batch) = &decoded {
        assert!(batch.iter().count() <= batch.len());
        try_write(db.write(batch));
        assert!(
            read_all(&db, &original.keys),
            "a batch writes what is not sound"
        );
        try_write(db.flush());
        assert!(
            read_all(&db, &original.keys),
            "a batch writes what is not sound"
        );
    }
    let seen = place.seen(decoded.is_some());
    Seen {
        bytes: sealed.len() as u64,
        ..seen
    }
}

/// Reads all of `db` in several ways. Returns whether a full check finds nothing; then the answers must agree.
fn read_all(db: &Db, keys: &[Vec<u8>]) -> bool {
    let report = accepted(db.verify());
    let is_sound = report.is_some_and(|report| report.is_sound());
    db.prepared_transactions();
    db.stats();
    db.memory();
    for name in db.keyspace_names() {
        let Some(keyspace) = accepted(db.existing_keyspace(&name)).flatten() else {
            continue;
        };
        let forward: Vec<Result<_>> = accepted(keyspace.iter())
            .into_iter()
            .flatten()
            .take(ENTRIES_MAX)
            .scan(false, |has_failed, entry| {
                let ends = std::mem::replace(has_failed, entry.is_err());
                (!ends).then_some(entry)
            })
            .collect();
        let backward: Vec<Result<_>> = accepted(keyspace.iter())
            .into_iter()
            .flat_map(Iterator::rev)
            .take(ENTRIES_MAX)
            .scan(false, |has_failed, entry| {
                let ends = std::mem::replace(has_failed, entry.is_err());
                (!ends).then_some(entry)
            })
            .collect();
        let (forward, backward) = (entries_of(forward), entries_of(backward));
        if is_sound && let (Some(forward), Some(mut backward)) = (&forward, backward) {
            backward.reverse();
            assert!(*forward == backward, "the two directions of {name} differ");
            for (key, value) in forward.iter().take(200) {
                let found = accepted(keyspace.get(key));
                assert!(
                    found.is_none_or(|found| found.as_ref() == Some(value)),
                    "a get differs"
                );
            }
        }
        for key in keys {
            accepted(keyspace.get(key));
            accepted(keyspace.get_pinned(key));
        }
        accepted(keyspace.multi_get(keys));
        accepted(keyspace.first_key_value());
        accepted(keyspace.last_key_value());
        accepted(keyspace.approximate_len::<&[u8]>(..));
        accepted(keyspace.approximate_size::<&[u8]>(..));
        accepted(keyspace.value_files());
        if let Some(key) = keys.first() {
            accepted(keyspace.explain_get(key));
            accepted(keyspace.explain_seek(key));
        }
    }
    is_sound
}

/// The entries, if all could be read.
fn entries_of<T>(read: Vec<Result<T>>) -> Option<Vec<T>> {
    read.into_iter().map(accepted).collect()
}

/// Writes to all keyspaces of `db`, and lets all jobs run that follow.
fn write(db: &Db, runtime: &SteppedRuntime) {
    if let Some(report) = accepted(db.scrub(&Scrub::default())) {
        // The engine catches the panic of a check, and leaves its file out.
        for error in &report.left_out {
            check_refusal(error);
        }
    }
    for name in db.keyspace_names() {
        let Some(keyspace) = accepted(db.existing_keyspace(&name)).flatten() else {
            continue;
        };
        try_write(keyspace.insert("key-0001", "hostile"));
        try_write(keyspace.remove("last"));
    }
    for name in db.prepared_transactions() {
        if let Some(prepared) = db.prepared_transaction(&name) {
            try_write(prepared.commit());
        }
    }
    if let Some(mut changes) = accepted(db.changes(1)) {
        for _ in 0..100 {
            if accepted(changes.next(Duration::ZERO)).flatten().is_none() {
                break;
            }
        }
    }
    try_write(db.flush());
    for _ in 0..JOBS_MAX {
        if !runtime.step() {
            break;
        }
    }
    for name in db.keyspace_names() {
        if let Some(keyspace) = accepted(db.existing_keyspace(&name)).flatten() {
            try_write(keyspace.compact_range::<&[u8]>(..));
        }
    }
    try_write(db.wait_idle());
}
