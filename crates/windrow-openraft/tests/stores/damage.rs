//! Damaged and misplaced snapshots.

#![expect(
    clippy::disallowed_methods,
    reason = "damages the files that are no part of a database"
)]

use openraft::storage::RaftStateMachine;
use windrow::Options;

use crate::common::{Node, bytes, folder, id, install, node, receive, request};

#[tokio::test]
async fn nothing_of_a_damaged_snapshot_is_installed() {
    let (source_folder, target_folder) = (folder(), folder());
    let (mut source, _) = node(&source_folder, 30).await;
    let mut snapshot = source.build().await;
    let whole = bytes(&mut snapshot).await;
    let meta = snapshot.meta;
    let mut damaged = Vec::new();
    for at in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        damaged.extend([flipped, whole[..at].to_vec()]);
    }
    damaged.push([&whole[..], b"x"].concat());

    let mut target = Node::open(target_folder.path(), Options::default()).await;
    target.apply(vec![request(1, 1, "other", "x")]).await;
    let before = target.contents().await;
    for (number, bytes) in damaged.iter().enumerate() {
        let received = receive(&mut target.machine, bytes).await;
        let installed = target.machine.install_snapshot(&meta, received).await;
        assert!(installed.is_err(), "damage {number} of {}", whole.len());
        assert_eq!(target.contents().await, before);
    }
    assert!(
        target
            .machine
            .get_current_snapshot()
            .await
            .unwrap()
            .is_none()
    );
    drop(target);
    let mut target = Node::open(target_folder.path(), Options::default()).await;
    assert_eq!(target.contents().await, before);
    let files = std::fs::read_dir(target_folder.path()).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["database"], "unfinished files are gone");
    let received = receive(&mut target.machine, &whole).await;
    target
        .machine
        .install_snapshot(&meta, received)
        .await
        .unwrap();
    assert_eq!(target.state(), source.state());
}

#[tokio::test]
async fn a_new_snapshot_is_built_instead_of_a_damaged_one() {
    let source_folder = folder();
    let (mut source, state) = node(&source_folder, 30).await;
    source.build().await;
    drop(source);
    let name = source_folder.path().join("snapshot");
    let whole = std::fs::read(&name).unwrap();
    for at in (0..whole.len()).step_by(89) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        for (damaged, is_built_first) in [(flipped, at % 2 == 0), (whole[..at].to_vec(), false)] {
            std::fs::write(&name, damaged).unwrap();
            let mut source = Node::open(source_folder.path(), Options::default()).await;
            if is_built_first {
                source.build().await;
            }
            let current = source.machine.get_current_snapshot().await.unwrap();
            let current = current.unwrap();
            assert_eq!(current.meta.last_log_id, Some(id(1, 31)));
            let target_folder = folder();
            let mut target = Node::open(target_folder.path(), Options::default()).await;
            install(&mut target, current).await;
            assert_eq!(target.state(), state);
        }
    }
}

/// As if the database had been replaced by an older one.
#[tokio::test]
async fn a_snapshot_ahead_of_the_state_is_removed() {
    let (source_folder, target_folder) = (folder(), folder());
    let (mut source, _) = node(&source_folder, 30).await;
    source.build().await;
    let name = target_folder.path().join("snapshot");
    std::fs::copy(source_folder.path().join("snapshot"), &name).unwrap();
    let mut target = Node::open(target_folder.path(), Options::default()).await;
    let current = target.machine.get_current_snapshot().await.unwrap();
    assert!(current.is_none() && !name.exists());
}
