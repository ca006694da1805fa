//! A writer that goes on while a reader reads: at each file that the reader opens, and at each folder that it lists, the writer
//! does the next step of a history. Whatever the reader then shows, the writer had.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use windrow::{Batch, Db, Durability, Options, Scrub};
use windrow_sim::model::differences;
use windrow_sim::session::contents;
use windrow_sim::{Random, SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, on, small};
use crate::hooked_disk::HookedDisk;

/// So many histories take a second or two. A thousand have passed.
const SEEDS: u64 = 20;

/// Logs and files are so small that most steps begin another one.
fn options(disk: &SimDisk, runtime: &SteppedRuntime) -> Options {
    let mut options = on(small(), disk, runtime);
    options.max_wal_bytes = 8 << 10;
    options
}

/// A writer, and everything that it has shown.
struct Writer {
    db: Db,
    runtime: SteppedRuntime,
    random: Random,
    number: u64,
    shown: Vec<windrow_sim::model::Contents>,
}

impl Writer {
    fn new(disk: &SimDisk, seed: u64) -> Self {
        let runtime = SteppedRuntime::new(seed);
        let db = Db::open(FOLDER, options(disk, &runtime)).unwrap();
        let mut writer = Self {
            db,
            runtime,
            random: Random::new(seed),
            number: 0,
            shown: Vec::new(),
        };
        writer.show();
        writer
    }

    fn show(&mut self) {
        self.shown.push(contents(&self.db).unwrap());
    }

    /// One change that readers can see, and perhaps a job.
    fn step(&mut self) {
        self.number += 1;
        let names = ["a", "b"];
        let name = names[self.random.index(2)];
        match self.random.below(20) {
            0 => {
                let fresh = format!("new {}", self.number);
                self.db.keyspace(&fresh).unwrap();
                self.show();
                let keyspace = self.db.keyspace(&fresh).unwrap();
                keyspace.insert(self.number.to_be_bytes(), "new").unwrap();
            }
            1 => {
                let both = names.map(|name| self.db.keyspace(name).is_ok());
                self.show();
                if both == [true, true] {
                    self.db.swap_keyspaces("a", "b").unwrap();
                }
            }
            2 if self.db.keyspace_names().len() > 3 => {
                let names = self.db.keyspace_names();
                let last = names.iter().rfind(|name| name.starts_with("new"));
                if let Some(last) = last {
                    self.db.drop_keyspace(last).unwrap();
                }
            }
            3 => {
                let keyspace = self.db.keyspace(name).unwrap();
                self.show();
                let key = self.number.to_be_bytes();
                keyspace.bulk_load([(key, vec![3; 200])]).unwrap();
            }
            4 => self.db.flush().unwrap(),
            5 | 6 => drop(self.runtime.step()),
            kind => {
                let keyspace = self.db.keyspace(name).unwrap();
                self.show();
                let length = if kind < 10 { 1500 } else { 300 };
                let durability = match kind % 2 {
                    0 => Durability::Sync,
                    _ => Durability::Buffered,
                };
                let key = [self.random.byte() % 40];
                let value = [&self.number.to_be_bytes()[..], &vec![1; length]].concat();
                keyspace.insert_with(key, value, durability).unwrap();
            }
        }
        self.show();
    }
}

#[test]
fn what_a_reader_shows_the_writer_had() {
    let mut steps = 0;
    for seed in 0..SEEDS {
        let disk = SimDisk::new();
        let writer = Arc::new(Mutex::new(Writer::new(&disk, seed)));
        for _ in 0..seed {
            writer.lock().unwrap().step();
        }
        let hooked = HookedDisk::new(&disk);
        // Not at each file: otherwise each pass meets a change of keyspaces, and goes on.
        let pauses = Arc::new(Mutex::new(Random::new(seed)));
        let step = {
            let (writer, pauses) = (Arc::clone(&writer), Arc::clone(&pauses));
            move |_: &Path| {
                // Now and then it does so much that logs are closed which the manifest that was read calls open.
                let steps = match pauses.lock().unwrap().below(32) {
                    0 => 40,
                    1..8 => 1,
                    _ => 0,
                };
                for _ in 0..steps {
                    writer.lock().unwrap().step();
                }
            }
        };
        *hooked.hook.lock().unwrap() = Some(Box::new(step));
        let theirs = small()
            .with_vfs(Arc::new(hooked.clone()))
            .with_runtime(Arc::new(SteppedRuntime::new(seed + 1000)));
        let mut newest = 0;
        let mut look = |state: &Db| {
            // The writer goes on meanwhile, and removes what it no longer needs.
            let scrubbed = state.scrub(&Scrub::default()).unwrap();
            assert!(scrubbed.is_sound(), "seed {seed}: {scrubbed:?}");
            let hook = hooked.hook.lock().unwrap().take();
            let found = contents(state).unwrap();
            let shown = &writer.lock().unwrap().shown;
            let place = shown.iter().rposition(|it| *it == found);
            let place = place.unwrap_or_else(|| panic!("seed {seed}: no state of the writer"));
            assert!(place >= newest, "seed {seed}: {place} after {newest}");
            newest = place;
            check_sound(state);
            *hooked.hook.lock().unwrap() = hook;
        };
        let reader = Db::open_secondary(FOLDER, theirs).unwrap();
        look(&reader.db());
        for _ in 0..12 {
            look(&reader.catch_up().unwrap());
        }
        *hooked.hook.lock().unwrap() = None;
        let last = contents(&reader.catch_up().unwrap()).unwrap();
        let writer = writer.lock().unwrap();
        let end = contents(&writer.db).unwrap();
        let differences = differences(&end, &last);
        assert!(differences.is_empty(), "seed {seed}: {differences:?}");
        steps += writer.number - seed;
    }
    assert!(steps > 10 * SEEDS, "{steps}");
}

#[test]
fn a_log_that_is_durable_when_it_is_reached_needs_the_manifest_too() {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let db = Db::open(FOLDER, options(&disk, &runtime)).unwrap();
    let keyspace = db.keyspace("a").unwrap();
    let logs = || disk.image().files_with("wal").len();
    let write = move |number: u32| {
        let value = vec![5; 300];
        keyspace
            .insert_with(number.to_be_bytes(), value, Durability::Sync)
            .unwrap();
    };
    // Until the next log is prepared, and named by the manifest.
    let mut number = 0;
    let before = logs();
    while logs() == before {
        write(number);
        number += 1;
        runtime.step();
    }
    let hooked = HookedDisk::new(&disk);
    let counted = disk.clone();
    let writer = db.clone();
    let mut is_over = false;
    *hooked.hook.lock().unwrap() = Some(Box::new(move |path| {
        // The manifest is read before the logs.
        let is_log = path.extension().is_some_and(|it| it == "wal");
        if !is_log || std::mem::replace(&mut is_over, true) {
            return;
        }
        let late = writer.keyspace("late").unwrap();
        let mut batch = Batch::new();
        batch.insert(&late, "key", "1").unwrap();
        let names = writer.keyspace("a").unwrap();
        batch.insert(&names, "key", "1").unwrap();
        writer.write_with(&batch, Durability::Sync).unwrap();
        // Until that log is closed, and the next one begun.
        let begun = || {
            let image = counted.image();
            let logs = image.files_with("wal");
            let is_begun = |path: &&PathBuf| !image.read(path).unwrap().is_empty();
            logs.iter().filter(is_begun).count()
        };
        let before = begun();
        for number in 1000.. {
            write(number);
            if begun() > before {
                break;
            }
        }
    }));
    let theirs = small()
        .with_vfs(Arc::new(hooked))
        .with_runtime(Arc::new(SteppedRuntime::new(2)));
    let reader = Db::open_secondary(FOLDER, theirs).unwrap();
    let state = reader.db();
    let has = |keyspace: &str| {
        let keyspace = state.keyspace(keyspace);
        keyspace.is_ok_and(|it| it.contains_key("key").unwrap())
    };
    assert!(has("a") && has("late"));
    let last = reader.catch_up().unwrap();
    assert!(contents(&last).unwrap() == contents(&db).unwrap());
}
