//! The folder of a node: who may open it, with what options, and whose files are in it.

#![expect(
    clippy::disallowed_methods,
    reason = "looks at the files that are no part of a database"
)]

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openraft::storage::RaftStateMachine;
use windrow::{ErrorKind, Options};
use windrow_sim::SimDisk;

use crate::common::{Append, Config, Node, folder, node, request};

async fn open_error(folder: &Path, options: Options) -> ErrorKind {
    let opened = windrow_openraft::open::<Config, _>(folder, options, Append).await;
    opened.unwrap_err().kind()
}

#[tokio::test]
async fn a_second_open_of_a_folder_is_refused_and_takes_nothing_away() {
    let folder = folder();
    let _node = Node::open(folder.path(), Options::default()).await;
    let unfinished = folder.path().join("1.new");
    std::fs::write(&unfinished, "a snapshot that the node writes").unwrap();
    let kind = open_error(folder.path(), Options::default()).await;
    assert_eq!(kind, ErrorKind::Locked);
    assert!(unfinished.exists());
}

#[tokio::test]
async fn an_open_removes_unfinished_snapshots_and_nothing_else() {
    let folder = folder();
    let at = |name| folder.path().join(name);
    std::fs::create_dir(at("more.new")).unwrap();
    for name in ["1.new", "12.new", "config.new", "2.old"] {
        std::fs::write(at(name), "x").unwrap();
    }
    drop(Node::open(folder.path(), Options::default()).await);
    let left = std::fs::read_dir(folder.path()).unwrap();
    let mut left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["2.old", "config.new", "database", "more.new"]);
}

/// A database syncs the parents of the folders that it creates.
#[tokio::test]
async fn the_database_is_the_first_to_create_the_folder() {
    let folder = folder();
    let path = folder.path().join("nodes/1");
    let disk = SimDisk::new();
    let existed = Arc::new(OnceLock::new());
    let (seen, seen_path) = (Arc::clone(&existed), path.clone());
    disk.on_change(move |_, _| {
        seen.get_or_init(|| seen_path.exists());
    });
    let options = Options::default().with_vfs(Arc::new(disk));
    drop(Node::open(&path, options).await);
    assert_eq!(existed.get(), Some(&false));
}

#[tokio::test]
async fn what_raft_stores_cannot_get_a_time_to_live() {
    let folder = folder();
    let mut options = Options::default();
    options.keyspace.default_ttl = Some(Duration::from_secs(3600));
    let kind = open_error(folder.path(), options).await;
    assert_eq!(kind, ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn a_panic_of_the_application_is_an_error_and_changes_nothing() {
    let folder = folder();
    let (mut node, state) = node(&folder, 5).await;
    let requests = [request(1, 7, "a", "x"), request(1, 8, "panic", "x")];
    let error = node.machine.apply(requests).await.unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    drop(node);
    // What the request before it has changed stays.
    let mut node = Node::open(folder.path(), Options::default()).await;
    let applied = node.machine.applied_state().await.unwrap().0;
    assert_eq!(applied, Some(crate::common::id(1, 7)));
    let mut expected = state;
    expected.insert(b"a".to_vec(), b"x".to_vec());
    assert_eq!(node.state(), expected);
}
