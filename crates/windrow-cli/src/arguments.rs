//! The commands and options of the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::{
    advise, backup, changes, checkpoint, compact, dump, explain, keyspaces, load, log, point,
    prepared, repair, scan, scrub, serve, shell, simulate, stats, top, values, verify,
};
use crate::demo;

const EXAMPLES: &str = "\
Examples:
  windrow demo                                 the whole store on real data
  windrow put shop.db user:1 Ada               write an entry (creates shop.db)
  windrow get shop.db user:1                   read it
  windrow scan shop.db --prefix user: --json   list entries
  ls -R | windrow load shop.db --keyspace log  load lines from standard input
  windrow levels shop.db                       draw the tree

Exit codes: 0 done, 1 not found or wrong request, 2 environment, 3 damaged data, 130 interrupted by \
Ctrl-C.

With --json, an error is an object on standard error: {\"error\": {\"kind\": .., \"message\": ..}}, with \
\"file\" and \"offset\" if the error has them.";

/// An embedded, ordered, persistent key-value store
#[derive(Debug, Parser)]
#[command(name = "windrow", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Print JSON, one object per line, instead of text; errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// A file with keys: databases and backups are encrypted. A line for each key: name, space, 64 hexadecimal digits
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) key_file: Option<PathBuf>,

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
    /// Count the entries of a range of keys
    Count(scan::CountArgs),
    /// List the keyspaces of a database
    Keyspaces(keyspaces::KeyspacesArgs),
    /// Remove a keyspace with everything in it
    DropKeyspace(keyspaces::DropKeyspaceArgs),
    /// Show the statistics of a database
    Stats(stats::StatsArgs),
    /// Draw the tree: the bytes and the capacity of each level, and the value files
    Levels(stats::LevelsArgs),
    /// Watch a database live: levels, jobs, stalls, rates, memory, latencies
    Top(top::TopArgs),
    /// Serve the statistics over HTTP, for Prometheus and for a browser
    Serve(serve::ServeArgs),
    /// Show how a get or a seek comes to its answer: memtables, tables, filters, blocks, times
    Explain(explain::ExplainArgs),
    /// Print the job log: flushes, compactions, stalls, opens, errors
    Log(log::LogArgs),
    /// List the value files: how much of each is live, and which tables refer to it
    Values(values::ValuesArgs),
    /// List the prepared transactions, or commit one or roll it back
    Prepared(prepared::PreparedArgs),
    /// Print what was written, in its order, and follow it
    Changes(changes::ChangesArgs),
    /// List the consumers of changes, or remove one
    Consumers(changes::ConsumersArgs),
    /// Check the manifest, the logs, every byte of the tables, and the values they point to
    Verify(verify::VerifyArgs),
    /// Compare the checksums of all files, slowly if need be, and name whole copies in backups
    Scrub(scrub::ScrubArgs),
    /// Write what is sound of a damaged database to a new one
    Repair(repair::RepairArgs),
    /// Write the memtables to tables
    Flush(compact::FlushArgs),
    /// Compact a range of keys down to the last level
    Compact(compact::CompactArgs),
    /// Copy a database as it is now to another folder
    Checkpoint(checkpoint::CheckpointArgs),
    /// Make a backup of a database in a folder of backups, which copies what is new
    Backup(backup::BackupArgs),
    /// Add the changes since the last time to a folder of backups, to restore states between them
    Archive(backup::ArchiveArgs),
    /// List the backups of a folder, or verify them
    Backups(backup::BackupsArgs),
    /// Write the database of a backup, or of a state between two, to a new folder
    Restore(backup::RestoreArgs),
    /// Remove old backups
    Purge(backup::PurgeArgs),
    /// Print the content of one file of a database
    Dump(dump::DumpArgs),
    /// Measure speed and amplification under well-known loads
    #[command(after_help = "\
Examples:
  windrow bench fillrandom,readrandom,seek10 --num 1000000
  windrow bench fillrandom,overwrite --size-ratio 4 --base-bytes 64M --json
  windrow bench ycsb-load,ycsb-a,ycsb-b --mix SD --records 1000000 --ops 500000
  windrow bench fillrandom,mixgraph --duration 60 --threads 4 --warm-up 10s
  windrow bench fillseq,readwhilewriting,compact,levelstats --histogram
  windrow bench replay --trace requests.csv.gz --json

docs/benchmarks.md describes each load and each field of the JSON.")]
    Bench(Box<windrow_bench::BenchArgs>),
    /// Measure the limits of a device, to compare the figures of a bench with
    #[command(after_help = "\
Examples:
  windrow device .
  windrow device /mnt/data --size 4G --seconds 5 --json")]
    Device(windrow_bench::DeviceArgs),
    /// Predict what a load of any size costs: levels, I/O, runs per read, filters, space
    Simulate(Box<simulate::SimulateArgs>),
    /// Recommend options for a load that is described, recorded or traced, and predict its costs
    Advise(Box<advise::AdviseArgs>),
    /// Print the completions of a shell
    Completions(shell::CompletionsArgs),
    /// Write the manual pages
    Man(shell::ManArgs),
    /// The second load of the demo, in a process that can be killed
    #[command(hide = true)]
    DemoWriter(demo::WriterArgs),
    /// Removes the folder of a demo that has ended
    #[command(hide = true)]
    DemoCleaner(demo::CleanerArgs),
    /// Holds all memory but a rest for a bench with --memory
    #[command(hide = true)]
    HoldMemory(windrow_bench::HoldArgs),
}
