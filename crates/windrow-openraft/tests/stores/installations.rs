//! Installations of snapshots: what stays of the state's keyspace, and what readers see.

#![expect(
    clippy::disallowed_methods,
    reason = "lets a file that is no part of a database fail"
)]

use std::sync::Arc;

use openraft::storage::RaftStateMachine;
use windrow::operators;
use windrow::{Keyspace, Options, Transaction};
use windrow_openraft::Application;

use crate::common::{Config, Node, bytes, folder, install, node, receive, request};

/// As `Append`, by operands.
struct Merge;

impl Application<Config> for Merge {
    fn apply(
        &self,
        state: &Keyspace,
        transaction: &Transaction,
        (key, more): (String, String),
    ) -> windrow::Result<u64> {
        transaction.merge(state, key, more)?;
        Ok(0)
    }
}

#[tokio::test]
async fn the_name_and_the_merge_operator_of_the_state_survive_installations() {
    let (source_folder, target_folder) = (folder(), folder());
    let (mut source, _) = node(&source_folder, 0).await;
    source.apply(vec![request(1, 2, "a", "1")]).await;
    let options = || {
        let operator = Arc::new(operators::Append::new(","));
        Options::default()
            .with_merge_operator("state", Arc::clone(&operator) as _)
            .with_merge_operator("state-new", operator)
    };
    for (index, expected) in [(3, "1,2"), (4, "12,2")] {
        let opened = windrow_openraft::open(target_folder.path(), options(), Merge).await;
        let (_log, mut machine) = opened.unwrap();
        let reader = machine.reader();
        let mut snapshot = source.build().await;
        let bytes = bytes(&mut snapshot).await;
        let received = receive(&mut machine, &bytes).await;
        let installed = machine.install_snapshot(&snapshot.meta, received).await;
        installed.unwrap();
        assert_eq!(reader.keyspace().name(), "state");
        let more = [request(1, index, "a", "2")];
        machine.apply(more.clone()).await.unwrap();
        let value = reader.keyspace().get("a").unwrap().unwrap();
        assert_eq!(value, expected.as_bytes());
        source.apply(more.into()).await;
    }
}

#[tokio::test]
async fn readers_see_the_new_state_even_if_its_file_cannot_be_published() {
    let (source_folder, target_folder) = (folder(), folder());
    let (mut source, state) = node(&source_folder, 30).await;
    let mut snapshot = source.build().await;
    let bytes = bytes(&mut snapshot).await;
    let (mut target, _) = node(&target_folder, 5).await;
    // No file can have this name now.
    let name = target_folder.path().join("snapshot");
    std::fs::create_dir(&name).unwrap();
    let received = receive(&mut target.machine, &bytes).await;
    let installed = target
        .machine
        .install_snapshot(&snapshot.meta, received)
        .await;
    installed.unwrap_err();
    assert_eq!(target.state(), state);
    drop(target);
    std::fs::remove_dir(&name).unwrap();
    let mut target = Node::open(target_folder.path(), Options::default()).await;
    assert_eq!(target.state(), state);
    install(&mut target, snapshot_of(&mut source).await).await;
    assert_eq!(target.state(), source.state());
}

async fn snapshot_of(source: &mut Node) -> openraft::storage::Snapshot<Config> {
    source.apply(vec![request(1, 32, "later", "x")]).await;
    source.build().await
}
