//! The processes of the nodes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::application::Contents;
use crate::server::INSTALLED;
use crate::wire::{Call, Connection};

/// How long the cluster may take for what it does in a second on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Three nodes. They end with this.
pub(crate) struct Nodes {
    pub(crate) addresses: Vec<String>,
    folder: PathBuf,
    processes: Vec<Option<Child>>,
}

impl Nodes {
    /// Starts the nodes and makes a cluster of them.
    pub(crate) async fn start(folder: &Path) -> Self {
        // All are bound before the first one is free again, so they differ.
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let address = |listener: TcpListener| listener.local_addr().unwrap().to_string();
        let mut nodes = Self {
            addresses: listeners.map(address).into(),
            folder: folder.to_owned(),
            processes: vec![None, None, None],
        };
        for node in 0..nodes.count() {
            nodes.spawn(node);
        }
        let initialized = async {
            let mut first = Connection::new(&nodes.addresses[0]);
            let call = Call::Initialize(nodes.addresses.clone());
            while !first.call::<bool>(&call).await.unwrap_or(false) {
                sleep(BETWEEN_TRIES).await;
            }
        };
        timeout(PATIENCE, initialized).await.unwrap();
        nodes
    }

    pub(crate) fn count(&self) -> u64 {
        self.addresses.len() as u64
    }

    /// Starts a node, for the first time or again.
    pub(crate) fn spawn(&mut self, node: u64) {
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["node", &node.to_string()])
            .arg(self.folder.join(node.to_string()))
            .args(&self.addresses)
            // It ends with this process.
            .stdin(Stdio::piped())
            .spawn();
        self.processes[usize::try_from(node).unwrap()] = Some(process.unwrap());
    }

    /// Kills a node.
    pub(crate) fn kill(&mut self, node: u64) {
        self.check();
        let process = self.processes[usize::try_from(node).unwrap()].take();
        let mut process = process.unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Panics if a node has ended by itself.
    pub(crate) fn check(&mut self) {
        for process in self.processes.iter_mut().flatten() {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "a node has ended by itself");
        }
    }

    /// The number of snapshots that the nodes have installed.
    pub(crate) fn installations(&self) -> u64 {
        let of_node = |node: u64| {
            let path = self.folder.join(node.to_string()).join(INSTALLED);
            std::fs::metadata(path).map_or(0, |file| file.len())
        };
        (0..self.count()).map(of_node).sum()
    }

    /// Waits until all nodes have the same contents, and returns these.
    pub(crate) async fn equal_contents(&self) -> Contents {
        let equal = async {
            loop {
                let mut all = Vec::new();
                for address in &self.addresses {
                    let answer = Connection::new(address).call(&Call::Contents).await;
                    all.extend(answer);
                }
                let all: Vec<Contents> = all;
                if all.len() == self.addresses.len() && all.iter().all(|it| *it == all[0]) {
                    return all[0].clone();
                }
                sleep(BETWEEN_TRIES).await;
            }
        };
        timeout(PATIENCE, equal).await.unwrap()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().flatten() {
            drop(process.kill());
            drop(process.wait());
        }
    }
}
