//! What can be asked on the command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    advise, checkpoint, compact, drop_keyspace, dump, load, point, scan, simulate, values, verify,
};
use crate::demo;

const EXAMPLES: &str = "\
Examples:
  windrow demo                                 see the whole store at work on real data
  windrow put shop.db user:1 Ada               write an entry (creates shop.db)
  windrow get shop.db user:1                   read it
  windrow scan shop.db --prefix user: --json   list entries
  ls -R | windrow load shop.db --keyspace log  load lines from standard input
  windrow levels shop.db                       draw the tree

Exit codes: 0 done, 1 not found or wrong request, 2 environment, 3 damaged data";

/// An embedded, ordered, persistent key-value store
#[derive(Debug, Parser)]
#[command(name = "windrow", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Print JSON, one object a line, instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load real files, change, delete, read, kill, recover, and check everything
    Demo(demo::DemoArgs),
    /// Load many entries from a file, a folder or standard input
    Load(load::LoadArgs),
    /// Print the value of a key
    Get(point::GetArgs),
    /// Set a key to a value
    Put(point::PutArgs),
    /// Delete a key
    Delete(point::DeleteArgs),
    /// List entries in the order of their keys
    Scan(scan::ScanArgs),
    /// Show the statistics of a database
    #[command(
        after_help = "Examples:\n  windrow stats shop.db --json\n  windrow stats shop.db --prometheus"
    )]
    Stats {
        /// Folder of the database
        #[arg(value_name = "DB")]
        db: std::path::PathBuf,

        /// Print the text format of Prometheus
        #[arg(long, conflicts_with = "json")]
        prometheus: bool,
    },
    /// Draw the tree: each level's bytes against its capacity, and what is in transient logs
    #[command(after_help = "Example:\n  windrow levels shop.db")]
    Levels {
        /// Folder of the database
        #[arg(value_name = "DB")]
        db: std::path::PathBuf,
    },
    /// List the value files: how much of each is live, and what keeps it
    Values(values::ValuesArgs),
    /// Check the manifest, the logs, every byte of the tables, and the values they point to
    Verify(verify::VerifyArgs),
    /// Merge a range of keys down to the last level
    Compact(compact::CompactArgs),
    /// Make a copy of a database in another folder, of this moment
    Checkpoint(checkpoint::CheckpointArgs),
    /// Remove a keyspace with everything in it
    DropKeyspace(drop_keyspace::DropKeyspaceArgs),
    /// Print the content of one file of a database
    Dump(dump::DumpArgs),
    /// Measure speed and amplification under well-known loads
    #[command(after_help = "\
Examples:
  windrow bench fillrandom,readrandom,seek10 --num 1000000
  windrow bench fillrandom,overwrite --size-ratio 4 --base-bytes 64M --json
  windrow bench ycsb-load,ycsb-a,ycsb-b --mix SD --records 1000000 --ops 500000
  windrow bench fillrandom,readrandom,mixgraph --duration 60 --threads 4 --warm-up 10s
  windrow bench fillseq,readwhilewriting,compact,levelstats --write-rate 50000 --histogram
  windrow bench replay --trace requests.csv.gz --json

docs/benchmarks.md says what each load does and what each field of the JSON holds.")]
    Bench(Box<windrow_bench::BenchArgs>),
    /// Tell what a load of any size costs: levels, bytes moved, runs per read, filters, room
    Simulate(Box<simulate::SimulateArgs>),
    /// Recommend options for a load, which is described, recorded or traced, and tell what they will cost
    Advise(Box<advise::AdviseArgs>),
    /// The second load of the demo, in a process that can be killed
    #[command(hide = true)]
    DemoWriter(demo::WriterArgs),
    /// What removes the folder of a demo that has ended
    #[command(hide = true)]
    DemoCleaner(demo::CleanerArgs),
}

/// Bounds of a range of keys, shared by several commands.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RangeArgs {
    /// First key
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<String>,

    /// Key before which the range ends
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<String>,
}
