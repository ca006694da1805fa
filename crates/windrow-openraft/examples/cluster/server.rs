//! A node: its stores, openraft, and the calls of others.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openraft::{BasicNode, Config as RaftConfig, Raft, SnapshotPolicy};
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use windrow::Options;
use windrow_openraft::StateReader;

use crate::application::{Config, Puts, contents};
use crate::nodes::PATIENCE;
use crate::wire::{Call, Network, receive, send};

/// Log entries between snapshots.
pub(crate) const SNAPSHOT_AFTER: u64 = 200;

/// An installation must not take longer.
const INSTALLATION_MS_MAX: u64 = 5000;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The file in a node's folder with a byte for each installed snapshot.
pub(crate) const INSTALLED: &str = "installed";

/// Runs the node until it is killed, its parent ends, or openraft ends by an error, which is a panic.
pub(crate) async fn serve(node: u64, folder: &str, addresses: &[String]) {
    end_with_parent();
    let config = RaftConfig {
        heartbeat_interval: 150,
        election_timeout_min: 600,
        election_timeout_max: 1200,
        install_snapshot_timeout: INSTALLATION_MS_MAX,
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
    let listener = bind(&addresses[usize::try_from(node).unwrap()]).await;
    let installed = Path::new(folder).join(INSTALLED);
    let mut metrics = raft.metrics();
    let ended = metrics.wait_for(|metrics| metrics.running_state.is_err());
    tokio::select! {
        () = accept(listener, raft.clone(), reader, installed) => {}
        ended = ended => {
            let state = ended.unwrap().running_state.clone();
            assert!(state.is_ok(), "node {node}: {state:?}");
        }
    }
}

/// Another process may have the port for a moment.
async fn bind(address: &str) -> TcpListener {
    let bound = async {
        loop {
            match TcpListener::bind(address).await {
                Ok(listener) => return listener,
                Err(_) => sleep(BETWEEN_TRIES).await,
            }
        }
    };
    timeout(PATIENCE, bound).await.unwrap()
}

/// Ends the process when its parent has closed the other end of the standard input.
fn end_with_parent() {
    std::thread::spawn(|| {
        drop(io::copy(&mut io::stdin(), &mut io::sink()));
        std::process::exit(0);
    });
}

async fn accept(
    listener: TcpListener,
    raft: Raft<Config>,
    reader: StateReader,
    installed: PathBuf,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (raft, reader, installed) = (raft.clone(), reader.clone(), installed.clone());
        // A caller that goes away ends its connection, and nothing else.
        tokio::spawn(async move { drop(answer(stream, raft, reader, &installed).await) });
    }
}

async fn answer(
    mut stream: TcpStream,
    raft: Raft<Config>,
    reader: StateReader,
    installed: &Path,
) -> io::Result<()> {
    loop {
        match receive(&mut stream).await? {
            Call::AppendEntries(request) => {
                send(&mut stream, &raft.append_entries(request).await).await?;
            }
            Call::Vote(request) => send(&mut stream, &raft.vote(request).await).await?,
            Call::InstallSnapshot(request) => {
                let is_last = request.done;
                let answer = raft.install_snapshot(request).await;
                if is_last && answer.is_ok() {
                    let mut append = OpenOptions::new();
                    let mut file = append.create(true).append(true).open(installed).await?;
                    file.write_all(b"x").await?;
                    file.flush().await?;
                }
                send(&mut stream, &answer).await?;
            }
            Call::Initialize(addresses) => {
                let nodes = (0..).zip(addresses.into_iter().map(BasicNode::new));
                let nodes: BTreeMap<u64, _> = nodes.collect();
                // The answer to an earlier call may have been lost.
                let is_initialized = raft.initialize(nodes).await.is_ok()
                    || raft.is_initialized().await.is_ok_and(|is| is);
                send(&mut stream, &is_initialized).await?;
            }
            Call::Put(put) => {
                send(&mut stream, &raft.client_write(put).await.is_ok()).await?;
            }
            Call::Contents => {
                let contents = contents(&reader.keyspace()).map_err(io::Error::other)?;
                send(&mut stream, &contents).await?;
            }
        }
    }
}
