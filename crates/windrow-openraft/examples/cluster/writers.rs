//! Writers that put through whichever node takes it, and remember what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::application::Put;
use crate::nodes::PATIENCE;
use crate::wire::{Call, Connection};

const WRITERS: u64 = 8;
/// A put that takes longer is tried at another node.
const LONGEST_PUT: Duration = Duration::from_secs(2);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The writers.
pub(crate) struct Writers {
    acknowledged: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<u64>>,
}

impl Writers {
    pub(crate) fn start(addresses: &[String]) -> Self {
        let acknowledged = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let start = |writer| {
            let nodes = addresses.iter().map(|address| Connection::new(address));
            let nodes = nodes.collect();
            let (count, is_over) = (Arc::clone(&acknowledged), Arc::clone(&is_over));
            tokio::spawn(write(writer, nodes, count, is_over))
        };
        let tasks = (0..WRITERS).map(start).collect();
        Self {
            acknowledged,
            is_over,
            tasks,
        }
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until `more` further puts are acknowledged.
    pub(crate) async fn progress(&self, more: u64) {
        let goal = self.acknowledged() + more;
        let reached = async {
            while self.acknowledged() < goal {
                sleep(BETWEEN_TRIES).await;
            }
        };
        timeout(PATIENCE, reached).await.unwrap();
    }

    /// Ends the writers when their last put is acknowledged. Returns the last number of each.
    pub(crate) async fn finish(&mut self) -> Vec<u64> {
        self.is_over.store(true, Ordering::SeqCst);
        let mut last = Vec::new();
        for task in self.tasks.drain(..) {
            last.push(timeout(PATIENCE, task).await.unwrap().unwrap());
        }
        last
    }
}

/// Puts one number after the other, each until it is acknowledged. Returns the last one.
async fn write(
    writer: u64,
    mut nodes: Vec<Connection>,
    acknowledged: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
) -> u64 {
    let mut number = 0;
    let mut node = 0;
    while number == 0 || !is_over.load(Ordering::SeqCst) {
        number += 1;
        let put = Call::Put(Put { writer, number });
        while !matches!(
            timeout(LONGEST_PUT, nodes[node].call(&put)).await,
            Ok(Ok(true))
        ) {
            node = (node + 1) % nodes.len();
            sleep(BETWEEN_TRIES).await;
        }
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    number
}
