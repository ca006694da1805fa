//! Errors of the disk at each of its operations: what a call has promised holds, and what failed is there or not.

use std::path::Path;
use std::sync::Arc;

use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{Entry, RaftSnapshotBuilder, SnapshotMeta, StorageError, Vote};
use windrow::Options;
use windrow_sim::disk::{Effect, Fault, OperationKind};
use windrow_sim::{CrashPolicy, SimDisk, SteppedRuntime};

use crate::common::{Config, Contents, Node, append, bytes, folder, id, membership, node};
use crate::common::{receive, request};

/// The kinds of I/O that a running node needs.
const KINDS: [OperationKind; 5] = [
    OperationKind::Write,
    OperationKind::Sync,
    OperationKind::Create,
    OperationKind::Rename,
    OperationKind::SyncDir,
];

/// A snapshot that a leader sends.
struct Sent {
    meta: SnapshotMeta<u64, openraft::BasicNode>,
    bytes: Vec<u8>,
    contents: Contents,
}

async fn sent() -> Sent {
    let folder = folder();
    let (mut leader, state) = node(&folder, 40).await;
    let mut snapshot = leader.build().await;
    let contents = Contents {
        applied: snapshot.meta.last_log_id,
        membership: snapshot.meta.last_membership.clone(),
        state,
        ..Contents::default()
    };
    Sent {
        bytes: bytes(&mut snapshot).await,
        meta: snapshot.meta,
        contents,
    }
}

fn options(disk: &SimDisk) -> Options {
    let runtime = SteppedRuntime::new(1);
    let options = Options::default().with_vfs(Arc::new(disk.clone()));
    options.with_runtime(Arc::new(runtime))
}

/// The contents after each operation, and which one is durable.
struct Script<'a> {
    node: Node,
    sent: &'a Sent,
    contents: Vec<Contents>,
    durable: usize,
}

const STEPS: usize = 9;

impl Script<'_> {
    fn begin(&mut self, change: impl FnOnce(&mut Contents)) {
        let mut now = self.contents.last().unwrap().clone();
        change(&mut now);
        self.contents.push(now);
    }

    fn entries(term: u64, first: u64) -> Vec<Entry<Config>> {
        let index = first..first + 8;
        index.map(|index| request(term, index, "a", "x")).collect()
    }

    async fn append(&mut self, entries: Vec<Entry<Config>>) -> Result<(), StorageError<u64>> {
        self.begin(|now| now.log.extend(entries.clone()));
        self.node.log.blocking_append(entries).await?;
        self.durable = self.contents.len() - 1;
        Ok(())
    }

    async fn step(&mut self, number: usize) -> Result<(), StorageError<u64>> {
        match number {
            0 => {
                let vote = Vote::new(1, 2);
                self.begin(|now| now.vote = Some(vote));
                self.node.log.save_vote(&vote).await?;
                self.durable = self.contents.len() - 1;
            }
            1 => self.append(Self::entries(1, 1)).await?,
            2 => {
                let entries = Self::entries(1, 1)[..6].to_vec();
                for entry in &entries {
                    self.begin(|now| {
                        now.applied = Some(entry.log_id);
                        append(&mut now.state, &("a".to_owned(), "x".to_owned()));
                    });
                }
                self.node.machine.apply(entries).await?;
            }
            3 => {
                let mut builder = self.node.machine.get_snapshot_builder().await;
                builder.build_snapshot().await?;
                self.durable = self.contents.len() - 1;
            }
            4 => {
                self.begin(|now| {
                    now.log.drain(..4);
                    now.purged = Some(id(1, 4));
                });
                self.node.log.purge(id(1, 4)).await?;
            }
            5 => {
                self.begin(|now| now.log.truncate(3));
                self.node.log.truncate(id(1, 8)).await?;
            }
            6 => self.append(Self::entries(2, 8)).await?,
            7 => {
                let sent = self.sent;
                self.begin(|now| {
                    now.applied = sent.contents.applied;
                    now.membership = sent.contents.membership.clone();
                    now.state.clone_from(&sent.contents.state);
                });
                let received = receive(&mut self.node.machine, &sent.bytes).await;
                let machine = &mut self.node.machine;
                machine.install_snapshot(&sent.meta, received).await?;
                self.durable = self.contents.len() - 1;
            }
            _ => self.append(vec![membership(id(2, 16)).0]).await?,
        }
        Ok(())
    }
}

/// Runs the script until its first error, then crashes. Returns whether there was one.
async fn run(folder: &Path, sent: &Sent, disk: &SimDisk, faults: &[Fault], at: &str) -> bool {
    let mut script = Script {
        node: Node::open(folder, options(disk)).await,
        sent,
        contents: vec![Contents::default()],
        durable: 0,
    };
    disk.set_faults(faults.iter().copied());
    let mut number = 0;
    while number < STEPS && script.step(number).await.is_ok() {
        number += 1;
    }
    let image = disk.image();
    let snapshot = folder.join("snapshot");
    let (has_snapshot, has_failed) = (snapshot.exists(), number < STEPS);
    let Script {
        node,
        contents,
        durable,
        ..
    } = script;
    drop(node);
    for policy in [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll] {
        let disk = SimDisk::from_image(image.crash(policy));
        let mut node = Node::open(folder, options(&disk)).await;
        let found = node.contents().await;
        let is_allowed = contents[durable..].contains(&found);
        assert!(is_allowed, "{at}, {policy:?}, step {number}: {found:#?}");
        assert_eq!(snapshot.exists(), has_snapshot, "{at}, {policy:?}");
    }
    has_failed
}

#[tokio::test]
async fn an_error_of_the_disk_breaks_no_promise() {
    let sent = sent().await;
    let (mut runs, mut failed) = (0, 0);
    let counts = {
        let (folder, disk) = (folder(), SimDisk::new());
        assert!(!run(folder.path(), &sent, &disk, &[], "no fault").await);
        KINDS.map(|kind| disk.operations(kind))
    };
    for (kind, count) in KINDS.into_iter().zip(counts) {
        for at in 0..count {
            let once = Fault::io(kind, at);
            for fault in [once, once.with(Effect::NoSpace).from_then_on()] {
                let (folder, disk) = (folder(), SimDisk::new());
                let name = fault.to_string();
                let has_failed = run(folder.path(), &sent, &disk, &[fault], &name).await;
                runs += 1;
                failed += usize::from(has_failed);
            }
        }
    }
    println!("{runs} faults, of which {failed} made a call fail");
    assert!(failed > 20, "{failed} of {runs}");
}
