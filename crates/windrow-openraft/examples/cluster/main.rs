//! Three nodes on loopback, each a process of its own, that keep their promises while they are killed.
//!
//! ```text
//! cluster [ROUNDS [SEED]]
//! ```
//!
//! Writers put values through whichever node leads. In each round some nodes are killed (`SIGKILL`) and started again; in
//! every other round one stays away until the others have purged what it lacks, so that it needs a snapshot. At the end
//! every acknowledged write must be there exactly once, and the nodes must be equal.

#![expect(
    clippy::disallowed_methods,
    clippy::exit,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example shows what it does, fails by a panic, and counts by a file that is no part of a database"
)]

mod application;
mod nodes;
mod server;
mod wire;
mod writers;

use std::env;
use std::time::Duration;

use nodes::Nodes;
use writers::Writers;

const ROUNDS: u64 = 6;
/// As many writes as let the leader take a snapshot and purge.
const WRITES_BEHIND: u64 = 2 * server::SNAPSHOT_AFTER;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [mode, node, folder, addresses @ ..] = &arguments[..]
        && mode == "node"
    {
        return server::serve(node.parse().unwrap(), folder, addresses).await;
    }
    let number = |at: usize| arguments.get(at).map(|number| number.parse().unwrap());
    let rounds = number(0).unwrap_or(ROUNDS);
    let seed = number(1).unwrap_or_else(|| u64::from(std::process::id()));
    println!("{rounds} rounds, seed {seed}");
    run(rounds, &mut Random(seed)).await;
}

async fn run(rounds: u64, random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let mut nodes = Nodes::start(folder.path()).await;
    let mut writers = Writers::start(&nodes.addresses);
    for round in 1..=rounds {
        writers.progress(1 + random.below(200)).await;
        let first = random.below(nodes.count());
        let mut killed = vec![first];
        if round % 2 == 0 {
            nodes.kill(first);
            writers.progress(WRITES_BEHIND).await;
        } else {
            killed.extend((0..nodes.count()).filter(|node| *node != first && random.below(2) == 0));
            for node in &killed {
                nodes.kill(*node);
            }
            random.pause().await;
        }
        for node in &killed {
            nodes.spawn(*node);
            random.pause().await;
        }
        nodes.check();
        println!(
            "round {round}: killed {killed:?}, {} writes acknowledged",
            writers.acknowledged()
        );
    }
    let acknowledged = writers.finish().await;
    let contents = nodes.equal_contents().await;
    nodes.check();
    let installations = nodes.installations();
    application::check(&contents, &acknowledged);
    let total: u64 = acknowledged.iter().sum();
    println!(
        "all {total} acknowledged writes are there once, and the nodes are equal; {installations} snapshots were installed"
    );
    assert!(
        rounds < 2 || installations > 0,
        "no node has needed a snapshot"
    );
}

/// Random numbers from a seed. The times of the processes come on top.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13 | 1;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    async fn pause(&mut self) {
        let pause = Duration::from_millis(self.below(400));
        tokio::time::sleep(pause).await;
    }
}
