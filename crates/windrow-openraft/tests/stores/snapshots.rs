//! Snapshots: what they contain, when they count, and what a purge at the wrong time does.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use openraft::RaftLogReader;
use openraft::RaftSnapshotBuilder;
use openraft::storage::{RaftLogStorage, RaftStateMachine};
use windrow::Options;

use crate::common::{Node, bytes, folder, id, install, membership, node, receive, request};

#[tokio::test]
async fn requests_of_one_call_see_each_other_and_are_answered_in_order() {
    let folder = folder();
    let mut node = Node::open(folder.path(), Options::default()).await;
    let entries = vec![
        membership(id(1, 1)).0,
        request(1, 2, "a", "xx"),
        request(1, 3, "b", "y"),
        request(1, 4, "a", "xxx"),
    ];
    assert_eq!(node.apply(entries).await, [0, 2, 1, 5]);
    assert_eq!(node.state()[&b"a"[..]], b"xxxxx");
}

#[tokio::test]
async fn a_snapshot_has_the_state_of_the_time_when_its_builder_was_made() {
    let (source_folder, target_folder) = (folder(), folder());
    let (mut source, state) = node(&source_folder, 500).await;
    let mut builder = source.machine.get_snapshot_builder().await;
    source.apply(vec![request(1, 502, "later", "x")]).await;
    let mut snapshot = builder.build_snapshot().await.unwrap();
    assert_eq!(snapshot.meta.last_log_id, Some(id(1, 501)));

    let mut target = Node::open(target_folder.path(), Options::default()).await;
    target.apply(vec![request(1, 1, "other", "x")]).await;
    let bytes = bytes(&mut snapshot).await;
    let received = receive(&mut target.machine, &bytes).await;
    let meta = &snapshot.meta;
    target
        .machine
        .install_snapshot(meta, received)
        .await
        .unwrap();
    assert_eq!(target.state(), state);
    let (applied, members) = target.machine.applied_state().await.unwrap();
    assert_eq!(
        (applied, members),
        (Some(id(1, 501)), membership(id(1, 1)).1)
    );

    // It is there after a reopen, with its file, and the next requests follow.
    drop(target);
    let mut target = Node::open(target_folder.path(), Options::default()).await;
    assert_eq!(target.state(), state);
    let mut current = target
        .machine
        .get_current_snapshot()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(current.meta, *meta);
    assert_eq!(crate::common::bytes(&mut current).await, bytes);
    target.apply(vec![request(1, 502, "later", "x")]).await;
    assert_eq!(target.state(), source.state());
}

#[tokio::test]
async fn an_older_snapshot_does_not_replace_a_newer_one() {
    let folder = folder();
    let (mut node, _) = node(&folder, 10).await;
    let mut older = node.machine.get_snapshot_builder().await;
    node.apply(vec![request(1, 12, "later", "x")]).await;
    let newer = node.build().await;
    older.build_snapshot().await.unwrap();
    let current = node.machine.get_current_snapshot().await.unwrap();
    assert_eq!(current.unwrap().meta, newer.meta);
}

#[tokio::test]
async fn a_new_snapshot_is_built_instead_of_one_that_ends_before_the_log_begins() {
    let folder = folder();
    let (mut node, _) = node(&folder, 10).await;
    node.build().await;
    node.log.purge(id(1, 11)).await.unwrap();
    let current = node.machine.get_current_snapshot().await.unwrap();
    assert_eq!(current.unwrap().meta.last_log_id, Some(id(1, 11)));
    node.apply(vec![request(1, 12, "later", "x")]).await;
    node.log.purge(id(1, 12)).await.unwrap();
    let current = node.machine.get_current_snapshot().await.unwrap();
    assert_eq!(current.unwrap().meta.last_log_id, Some(id(1, 12)));
}

/// An installation may drop the state before a builder begins.
#[tokio::test]
async fn a_builder_outlives_the_state_that_it_is_of() {
    let (source_folder, target_folder) = (folder(), folder());
    let (mut source, _) = node(&source_folder, 30).await;
    let snapshot = source.build().await;
    let (mut target, _) = node(&target_folder, 5).await;
    let mut builder = target.machine.get_snapshot_builder().await;
    install(&mut target, snapshot).await;
    let built = builder.build_snapshot().await.unwrap();
    assert_eq!(built.meta.last_log_id, Some(id(1, 6)));
}

/// Polls `future` once.
async fn is_done<F: Future>(future: &mut Pin<Box<F>>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// openraft 0.9 purges the log that a received snapshot covers while the snapshot is installed.
#[tokio::test]
async fn a_purge_waits_for_the_snapshot_that_covers_it() {
    for is_sound in [true, false] {
        let (source_folder, target_folder) = (folder(), folder());
        let (mut source, _) = node(&source_folder, 30).await;
        let mut snapshot = source.build().await;
        let mut bytes = bytes(&mut snapshot).await;
        bytes.truncate(if is_sound { bytes.len() } else { 50 });

        let mut target = Node::open(target_folder.path(), Options::default()).await;
        let entry = request(1, 1, "a", "x");
        target.append([entry.clone()]).await;
        let mut log_reader = target.log.get_log_reader().await;
        let received = receive(&mut target.machine, &bytes).await;
        let mut purge = Box::pin(target.log.purge(id(1, 31)));
        // Each read goes the way that a purge would go.
        for _ in 0..50 {
            assert!(!is_done(&mut purge).await);
            let entries = log_reader.try_get_log_entries(..).await.unwrap();
            assert_eq!(entries, std::slice::from_ref(&entry));
        }
        let installed = target
            .machine
            .install_snapshot(&snapshot.meta, received)
            .await;
        let purged = purge.await;
        assert_eq!((installed.is_ok(), purged.is_ok()), (is_sound, is_sound));
        let entries = log_reader.try_get_log_entries(..).await.unwrap();
        assert_eq!(entries.len(), usize::from(!is_sound));
    }
}

/// As above, if openraft shuts down instead.
#[tokio::test]
async fn a_purge_fails_if_the_state_machine_goes_before_the_snapshot_is_installed() {
    let folder = folder();
    let Node {
        mut log,
        mut machine,
        ..
    } = Node::open(folder.path(), Options::default()).await;
    drop(receive(&mut machine, b"").await);
    drop(machine);
    log.purge(id(1, 31)).await.unwrap_err();
    assert_eq!(log.get_log_state().await.unwrap().last_purged_log_id, None);
}
