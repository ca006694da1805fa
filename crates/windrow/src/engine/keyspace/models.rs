//! Loom models of the state that readers of a keyspace hold, over the real types.
//! Run with `--cfg loom`.

use loom::thread;
use std::sync::Arc;

use super::KeyspaceCore;
use super::Memory;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Handover, Shared};
use crate::base::{FileNumber, KeyspaceId, SegmentId};
use crate::manifest::names::FileName;
use crate::manifest::{FileHandle, Obsolete, Version};
use crate::merge_operator::KeyspaceOperator;
use crate::options::KeyspaceOptions;
use crate::read::state::ReadState;
use crate::table::{FenceKeys, FileMeta, SegmentMeta, SegmentReferences};

/// The files of the model: a compaction turns the first into the second.
const INPUT: FileNumber = FileNumber(0);
const OUTPUT: FileNumber = FileNumber(1);

/// A disk on which loom reports every read that is not ordered after the write of its file and before
/// its removal.
struct Disk(Vec<StoredFile>);

struct StoredFile {
    bytes: Handover,
    removed: AtomicBool,
}

impl Disk {
    fn new() -> Self {
        let file = || StoredFile {
            bytes: Handover::new(),
            removed: AtomicBool::new(false),
        };
        Self(vec![file(), file()])
    }

    fn file(&self, number: FileNumber) -> &StoredFile {
        &self.0[usize::try_from(number.0).unwrap()]
    }

    fn write(&self, number: FileNumber) {
        self.file(number).bytes.give();
    }

    fn read(&self, number: FileNumber) {
        assert!(!self.is_removed(number), "a reader finds its files");
        self.file(number).bytes.receive();
    }

    fn read_all(&self, state: &ReadState) {
        let levels = state.version.levels().iter();
        for file in levels.flat_map(|level| level.files()) {
            self.read(file.meta.number);
        }
    }

    /// Removes obsolete files, as the job does.
    fn remove(&self, obsolete: &Obsolete) {
        for number in obsolete.take().into_iter().filter_map(FileName::number) {
            let removed = self.file(number).removed.swap(true, Ordering::Relaxed);
            assert!(!removed, "a file is removed twice");
            self.file(number).bytes.give();
        }
    }

    fn is_removed(&self, number: FileNumber) -> bool {
        self.file(number).removed.load(Ordering::Relaxed)
    }
}

fn handle(number: FileNumber, obsolete: &Arc<Obsolete>) -> Shared<FileHandle> {
    let segment = SegmentMeta {
        id: SegmentId(number.0),
        offset: 0,
        length: 4096,
        entries: 1,
        tombstones: 0,
        range_tombstones: 0,
        operands: 0,
        hidden_below: 0,
        expiring: None,
        keys: FenceKeys::new(b"a", b"b"),
        sequence_min: 1,
        sequence_max: 1,
        logical_bytes: 2,
        overwrites: 0,
        filter_units: [64, 0, 0, 0],
        footer_checksum: 0,
        references: SegmentReferences::default(),
    };
    let meta = FileMeta {
        number,
        sealed: false,
        external: false,
        segments: vec![segment].into(),
    };
    FileHandle::new(meta, obsolete)
}

struct Model {
    keyspace: KeyspaceCore,
    obsolete: Arc<Obsolete>,
    disk: Disk,
}

impl Model {
    /// A keyspace with the input in level 0.
    fn new() -> Arc<Self> {
        let obsolete = Arc::new(Obsolete::default());
        let disk = Disk::new();
        disk.write(INPUT);
        let version = Version::new(vec![vec![handle(INPUT, &obsolete)]]).unwrap();
        let options = KeyspaceOptions::default();
        let memory = Arc::new(Memory::new(&crate::options::Options::default()));
        let keyspace = KeyspaceCore::new(
            KeyspaceId(1),
            String::new(),
            options,
            KeyspaceOperator::default(),
            version,
            1,
            &memory,
        );
        Arc::new(Self {
            keyspace,
            obsolete,
            disk,
        })
    }

    /// Compacts the input into the output, as `Engine::compact_files` does, and releases it.
    fn merge(&self) {
        let version = Shared::clone(&self.keyspace.state().version);
        let input = Shared::clone(&version.levels()[0].newest_first()[0]);
        self.disk.read(INPUT);
        self.disk.write(OUTPUT);
        let adds = [(1, handle(OUTPUT, &self.obsolete))];
        let removes = [(0, Shared::clone(&input))];
        let next = self.keyspace.state().version.apply(&adds, &removes);
        self.keyspace.install_version(next.unwrap());
        input.mark_obsolete();
    }

    /// The files of the current version, by level.
    fn files(&self) -> Vec<(usize, FileNumber)> {
        let state = self.keyspace.state();
        let levels = state.version.levels().iter().enumerate();
        levels
            .flat_map(|(level, files)| files.files().map(move |file| (level, file)))
            .map(|(level, file)| (level, file.meta.number))
            .collect()
    }
}

/// Model 6: a file is removed after its last reader has released it, and readers find their files. One
/// reader borrows the state as a get does, the other holds it as a cursor does.
#[test]
fn a_file_is_removed_after_its_last_reader_releases_it() {
    loom::model(|| {
        let model = Model::new();
        let job = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.merge();
                model.disk.remove(&model.obsolete);
            })
        };
        let get = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.disk.read_all(&model.keyspace.state()))
        };
        let cursor = model.keyspace.state_full();
        model.disk.read_all(&cursor);
        model.disk.remove(&model.obsolete);
        model.disk.read_all(&cursor);
        drop(cursor);
        job.join().unwrap();
        get.join().unwrap();
        model.disk.remove(&model.obsolete);
        assert_eq!(model.files(), [(1, OUTPUT)]);
        assert!(model.disk.is_removed(INPUT) && !model.disk.is_removed(OUTPUT));
    });
}

/// Model 6: a concurrent rotation and compaction both take effect.
#[test]
fn no_change_of_the_state_is_lost() {
    loom::model(|| {
        let model = Model::new();
        let job = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.merge())
        };
        model.keyspace.rotate(7);
        job.join().unwrap();
        assert_eq!(model.files(), [(1, OUTPUT)]);
        let state = model.keyspace.state();
        assert_eq!(state.frozen.len(), 1);
        assert_eq!(state.frozen[0].through, 7);
    });
}
