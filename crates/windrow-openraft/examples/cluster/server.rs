//! A node: its stores, openraft, and the calls of others.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use openraft::{BasicNode, Config as RaftConfig, Raft, SnapshotPolicy};
use tokio::net::{TcpListener, TcpStream};
use windrow::Options;
use windrow_openraft::StateReader;

use crate::application::{Config, Puts, contents};
use crate::wire::{Call, Network, receive, send};

/// Log entries between snapshots.
pub(crate) const SNAPSHOT_AFTER: u64 = 200;

/// Runs the node until it is killed.
pub(crate) async fn serve(node: u64, folder: &str, addresses: &[String]) {
    let config = RaftConfig {
        heartbeat_interval: 150,
        election_timeout_min: 600,
        election_timeout_max: 1200,
        install_snapshot_timeout: 5000,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_AFTER),
        max_in_snapshot_log_to_keep: 20,
        snapshot_max_chunk_size: 8 << 10,
        ..RaftConfig::default()
    };
    let config = Arc::new(config.validate().unwrap());
    let opened = windrow_openraft::open::<Config, _>(folder, Options::default(), Puts).await;
    let (log, machine) = opened.unwrap();
    let reader = machine.reader();
    let raft = Raft::new(node, config, Network, log, machine);
    let raft = raft.await.unwrap();
    let address = &addresses[usize::try_from(node).unwrap()];
    let listener = TcpListener::bind(address).await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (raft, reader) = (raft.clone(), reader.clone());
        // A caller that goes away ends its connection, and nothing else.
        tokio::spawn(async move { drop(answer(stream, raft, reader).await) });
    }
}

async fn answer(mut stream: TcpStream, raft: Raft<Config>, reader: StateReader) -> io::Result<()> {
    loop {
        match receive(&mut stream).await? {
            Call::AppendEntries(request) => {
                send(&mut stream, &raft.append_entries(request).await).await?;
            }
            Call::Vote(request) => send(&mut stream, &raft.vote(request).await).await?,
            Call::InstallSnapshot(request) => {
                send(&mut stream, &raft.install_snapshot(request).await).await?;
            }
            Call::Initialize(addresses) => {
                let nodes = (0..).zip(addresses.into_iter().map(BasicNode::new));
                let nodes: BTreeMap<u64, _> = nodes.collect();
                send(&mut stream, &raft.initialize(nodes).await.is_ok()).await?;
            }
            Call::Put(put) => {
                send(&mut stream, &raft.client_write(put).await.is_ok()).await?;
            }
            Call::Contents => {
                let state = reader.keyspace();
                let contents = contents(&state).map_err(io::Error::other)?;
                send(&mut stream, &(state.name(), contents)).await?;
            }
        }
    }
}
