//! One module per command, or per family of small ones.

pub(crate) mod advise;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod changes;
pub(crate) mod checkpoint;
pub(crate) mod compact;
mod cost;
pub(crate) mod dump;
pub(crate) mod explain;
pub(crate) mod keyspaces;
pub(crate) mod load;
pub(crate) mod log;
pub(crate) mod point;
pub(crate) mod prepared;
pub(crate) mod repair;
pub(crate) mod scan;
pub(crate) mod scrub;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod simulate;
pub(crate) mod stats;
pub(crate) mod top;
pub(crate) mod values;
pub(crate) mod verify;

use clap::CommandFactory;
use windrow::Result;

use crate::arguments::{Arguments, Command};
use crate::demo;
use crate::outcome::Outcome;
use crate::output::Output;

/// Runs `command`.
pub(crate) fn run(command: Command, output: &mut Output) -> Result<Outcome> {
    match command {
        Command::Demo(args) => demo::run(&args, output),
        Command::Load(args) => load::run(&args, output),
        Command::Get(args) => point::get(&args, output),
        Command::Put(args) => point::put(&args, output),
        Command::Delete(args) => point::delete(&args, output),
        Command::Scan(args) => scan::run(&args, output),
        Command::Count(args) => scan::count(&args, output),
        Command::Keyspaces(args) => keyspaces::list(&args, output),
        Command::DropKeyspace(args) => keyspaces::drop_keyspace(&args, output),
        Command::Stats(args) => stats::stats(&args, output),
        Command::Levels(args) => stats::levels(&args, output),
        Command::Explain(args) => explain::run(&args, output),
        Command::Top(args) => top::run(&args, output),
        Command::Serve(args) => serve::run(&args, output),
        Command::Log(args) => log::run(&args, output),
        Command::Values(args) => values::run(&args, output),
        Command::Prepared(args) => prepared::run(&args, output),
        Command::Changes(args) => changes::run(&args, output),
        Command::Consumers(args) => changes::consumers(&args, output),
        Command::Verify(args) => verify::run(&args, output),
        Command::Scrub(args) => scrub::run(&args, output),
        Command::Repair(args) => repair::run(&args, output),
        Command::Flush(args) => compact::flush(&args, output),
        Command::Compact(args) => compact::compact(&args, output),
        Command::Checkpoint(args) => checkpoint::run(&args, output),
        Command::Backup(args) => backup::backup(&args, output),
        Command::Archive(args) => backup::archive(&args, output),
        Command::Backups(args) => backup::list(&args, output),
        Command::Restore(args) => backup::restore(&args, output),
        Command::Purge(args) => backup::purge(&args, output),
        Command::Dump(args) => dump::run(&args, output),
        Command::Bench(args) => bench::run(&args, output),
        Command::Device(args) => bench::device(&args, output),
        Command::Simulate(args) => simulate::run(&args, output),
        Command::Advise(args) => advise::run(&args, output),
        Command::Completions(args) => shell::completions(&args, Arguments::command(), output),
        Command::Man(args) => shell::man(&args, Arguments::command(), output),
        Command::DemoWriter(args) => demo::write_until_killed(&args),
        Command::DemoCleaner(args) => demo::remove_at_end(&args),
        Command::HoldMemory(args) => windrow_bench::hold_memory(&args).map(|()| Outcome::Done),
    }
}
