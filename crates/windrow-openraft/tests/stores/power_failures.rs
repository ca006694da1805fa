//! Random histories of the stores on a simulated disk, with a power failure after each change of the disk.
//!
//! All writes of a node go through one log. So after a crash the node must have all of its contents as they were after
//! some operation: not before the last one that promised to be durable, and not after the last one that had begun. The file
//! `snapshot` is not on the simulated disk: after a crash it is as it was then. openraft's own start must take what is left.

#![expect(
    clippy::disallowed_methods,
    reason = "keeps the file that is no part of a database"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use openraft::storage::{RaftLogStorage, RaftStateMachine, StorageHelper};
use openraft::{EntryPayload, LogIdOptionExt, RaftLogReader, Vote};
use windrow::Options;
use windrow_sim::disk::Event;
use windrow_sim::{CrashPolicy, Image, Random, SimDisk, SteppedRuntime};

use crate::common::{Contents, Node, append, bytes, id, membership, receive, request};

/// Options under which a few entries make several files.
fn options(disk: &SimDisk) -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 4 << 10;
    options.keyspace.file_bytes = 2 << 10;
    options.keyspace.base_bytes = 4 << 10;
    options.keyspace.level0_runs = 2;
    options.keyspace.block_bytes = 256;
    options.with_vfs(Arc::new(disk.clone()))
}

/// Which contents a crash may leave, as indexes.
#[derive(Debug, Clone, Default)]
struct Bounds {
    durable: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
}

/// A disk after a change, and the bounds at that time.
struct Moment {
    image: Image,
    snapshot: Option<Vec<u8>>,
    durable: usize,
    begun: usize,
}

/// A node with the contents after each of its operations.
struct History {
    node: Node,
    random: Random,
    term: u64,
    contents: Vec<Contents>,
    bounds: Bounds,
}

impl History {
    fn now(&self) -> Contents {
        self.contents.last().unwrap().clone()
    }

    /// An operation begins that leads to `contents`.
    fn begin(&mut self, contents: Contents) {
        self.contents.push(contents);
        let last = self.contents.len() - 1;
        self.bounds.begun.store(last, Ordering::SeqCst);
    }

    /// The operation that leads to the contents at `index` is durable.
    fn is_durable(&self, index: usize) {
        self.bounds.durable.store(index, Ordering::SeqCst);
    }

    fn last(&self) -> usize {
        self.contents.len() - 1
    }

    /// The index behind the log, whose first entry has index 0, as openraft's has.
    fn next_index(&self) -> u64 {
        let now = self.now();
        let last = now.log.last().map(|entry| entry.log_id).or(now.purged);
        last.next_index()
    }

    async fn append(&mut self) {
        let mut now = self.now();
        let first = self.next_index();
        let mut entries = Vec::new();
        for index in first..=first + self.random.below(6) {
            let key = format!("key {}", self.random.below(20));
            let more = "x".repeat(self.random.index(60));
            entries.push(request(self.term, index, &key, &more));
        }
        now.log.extend(entries.iter().cloned());
        self.begin(now);
        self.node.append(entries).await;
        self.is_durable(self.last());
    }

    async fn append_membership(&mut self) {
        let mut now = self.now();
        let (entry, _) = membership(id(self.term, self.next_index()));
        now.log.push(entry.clone());
        self.begin(now);
        self.node.append([entry]).await;
        self.is_durable(self.last());
    }

    async fn vote(&mut self) {
        self.term += 1;
        let mut now = self.now();
        let vote = Vote::new(self.term, self.random.below(3));
        now.vote = Some(vote);
        self.begin(now);
        self.node.log.save_vote(&vote).await.unwrap();
        self.is_durable(self.last());
    }

    async fn truncate(&mut self) {
        let mut now = self.now();
        let applied = now.applied.next_index();
        let free = now.log.iter().filter(|entry| entry.log_id.index >= applied);
        let free: Vec<_> = free.map(|entry| entry.log_id).collect();
        if free.is_empty() {
            return;
        }
        let from = *self.random.pick(&free);
        now.log.retain(|entry| entry.log_id.index < from.index);
        self.begin(now);
        self.node.log.truncate(from).await.unwrap();
    }

    async fn apply(&mut self) {
        let mut now = self.now();
        let applied = now.applied.next_index();
        let mut entries = now.log.clone();
        entries.retain(|entry| entry.log_id.index >= applied);
        entries.truncate(self.random.index(5));
        let Some(last) = entries.last() else { return };
        now.committed = Some(last.log_id);
        self.begin(now.clone());
        let committed = now.committed;
        self.node.log.save_committed(committed).await.unwrap();
        for entry in &entries {
            now.applied = Some(entry.log_id);
            match &entry.payload {
                EntryPayload::Normal(request) => append(&mut now.state, request),
                _ => now.membership = membership(entry.log_id).1,
            }
            self.begin(now.clone());
        }
        self.node.apply(entries).await;
    }

    async fn build(&mut self) {
        let built = self.node.build().await;
        assert_eq!(built.meta.last_log_id, self.now().applied);
        self.is_durable(self.last());
    }

    /// As openraft does after it has built a snapshot.
    async fn purge(&mut self) {
        let mut now = self.now();
        let Some(applied) = now.applied else { return };
        let mut old = now.log.clone();
        old.retain(|entry| entry.log_id.index <= applied.index);
        if old.is_empty() {
            return;
        }
        let upto = self.random.pick(&old).log_id;
        now.purged = Some(upto);
        now.log.retain(|entry| entry.log_id.index > upto.index);
        self.begin(now);
        self.node.log.purge(upto).await.unwrap();
    }

    /// A leader sends a snapshot that is ahead of the log. openraft purges meanwhile.
    async fn install(&mut self) {
        let folder = tempfile::tempdir().unwrap();
        let mut leader = Node::open(folder.path(), Options::default()).await;
        self.term += 1;
        let upto = id(self.term, self.next_index() + 1 + self.random.below(10));
        let mut now = self.now();
        now.state.clear();
        let (entry, members) = membership(id(self.term, upto.index - 1));
        let mut entries = vec![entry];
        for number in 0..self.random.below(40) {
            let of_one = (format!("key {number}"), format!("leader {}", self.term));
            append(&mut now.state, &of_one);
            entries.push(request(self.term, upto.index, &of_one.0, &of_one.1));
        }
        entries.push(request(self.term, upto.index, "last", "x"));
        append(&mut now.state, &("last".to_owned(), "x".to_owned()));
        leader.apply(entries).await;
        let mut snapshot = leader.build().await;
        let bytes = bytes(&mut snapshot).await;

        now.applied = Some(upto);
        now.membership = members;
        self.begin(now.clone());
        let installed = self.last();
        now.purged = Some(upto);
        now.log.clear();
        self.begin(now);
        let received = receive(&mut self.node.machine, &bytes).await;
        let machine = &mut self.node.machine;
        let (installation, purge) = tokio::join!(
            machine.install_snapshot(&snapshot.meta, received),
            self.node.log.purge(upto)
        );
        installation.unwrap();
        purge.unwrap();
        self.is_durable(installed);
    }

    async fn step(&mut self) {
        match self.random.below(20) {
            0..6 => self.append().await,
            6 => self.append_membership().await,
            7..9 => self.vote().await,
            9..11 => self.truncate().await,
            11..15 => self.apply().await,
            15..17 => self.build().await,
            17..19 => self.purge().await,
            _ => self.install().await,
        }
    }
}

/// Runs a history. Returns the contents, and the disk after each change.
async fn run(folder: &Path, seed: u64, operations: usize) -> (Vec<Contents>, Vec<Moment>) {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(seed);
    let bounds = Bounds::default();
    let (sender, moments) = channel();
    let seen = bounds.clone();
    let snapshot = folder.join("snapshot");
    disk.on_change(move |_: &Event, image: &Image| {
        let moment = Moment {
            image: image.clone(),
            snapshot: std::fs::read(&snapshot).ok(),
            durable: seen.durable.load(Ordering::SeqCst),
            begun: seen.begun.load(Ordering::SeqCst),
        };
        drop(sender.send(moment));
    });
    let options = options(&disk).with_runtime(Arc::new(runtime.clone()));
    let mut history = History {
        node: Node::open(folder, options).await,
        random: Random::new(seed),
        term: 1,
        contents: vec![Contents::default()],
        bounds,
    };
    for _ in 0..operations {
        history.step().await;
        if history.random.chance(1, 3) {
            runtime.run_until_idle(1000);
        }
        assert_eq!(history.node.contents().await, history.now(), "seed {seed}");
    }
    disk.stop_observing();
    (history.contents, moments.try_iter().collect())
}

/// Starts as openraft does, which applies committed entries again, and needs a snapshot of what is purged.
async fn start(node: &mut Node, at: &str) {
    let Node { log, machine, .. } = node;
    let started = StorageHelper::new(log, machine).get_initial_state().await;
    assert!(started.is_ok(), "{at}: {started:?}");
    let started = started.unwrap();
    let snapshot = machine.get_current_snapshot().await.unwrap();
    let last = snapshot.and_then(|snapshot| snapshot.meta.last_log_id);
    let (applied, _) = machine.applied_state().await.unwrap();
    let purged = log.get_log_state().await.unwrap().last_purged_log_id;
    assert_eq!(last, started.snapshot_meta.last_log_id, "{at}");
    assert!(purged <= last && last <= applied, "{at}: {last:?}");
}

#[tokio::test]
async fn a_power_failure_leaves_the_contents_after_some_operation_since_the_last_durable_one() {
    let (mut images, mut lost, mut kept) = (0, 0, 0);
    for seed in 1..=8 {
        let folder = tempfile::tempdir().unwrap();
        let (contents, moments) = run(folder.path(), seed, 60).await;
        for (number, moment) in moments.iter().enumerate() {
            let policy = match (number as u64 + seed) % 6 {
                0 => CrashPolicy::DropUnsynced,
                1 => CrashPolicy::KeepAll,
                3 => CrashPolicy::Random(seed * 100_000 + number as u64),
                _ => continue,
            };
            let disk = SimDisk::from_image(moment.image.crash(policy));
            let runtime = Arc::new(SteppedRuntime::new(seed));
            let options = options(&disk).with_runtime(runtime);
            // The image has the database at the path of the history.
            std::fs::remove_dir_all(folder.path()).unwrap();
            std::fs::create_dir(folder.path()).unwrap();
            let snapshot = folder.path().join("snapshot");
            if let Some(bytes) = &moment.snapshot {
                std::fs::write(&snapshot, bytes).unwrap();
            }
            let mut node = Node::open(folder.path(), options).await;
            let at = format!("seed {seed}, change {number}, {policy:?}");
            assert_eq!(snapshot.exists(), moment.snapshot.is_some(), "{at}");
            let found = node.contents().await;
            let allowed = &contents[moment.durable..=moment.begun];
            let position = allowed.iter().position(|it| *it == found);
            let Some(position) = position else {
                panic!(
                    "{at}: {found:#?} is none of the contents from {} to {}",
                    moment.durable, moment.begun
                );
            };
            images += 1;
            lost += usize::from(position + 1 < allowed.len());
            kept += usize::from(position > 0);
            start(&mut node, &at).await;
            // The node goes on.
            let last = found.log.last().map(|entry| entry.log_id).or(found.purged);
            let last = last.max(found.applied);
            let index = last.next_index();
            node.append([request(1000, index, "a", "x")]).await;
            let entries = node.log.try_get_log_entries(index..).await.unwrap();
            assert_eq!(entries.len(), 1);
        }
    }
    let figures =
        format!("{images} images, {lost} that have lost something, {kept} that kept more");
    assert!(images > 500 && lost > 100 && kept > 100, "{figures}");
    println!("{figures}");
}
