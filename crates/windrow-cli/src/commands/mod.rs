//! One module per command, or per family of small ones.

pub(crate) mod advise;
pub(crate) mod bench;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod drop_keyspace;
pub(crate) mod dump;
pub(crate) mod load;
pub(crate) mod point;
pub(crate) mod scan;
mod show;
pub(crate) mod simulate;
pub(crate) mod values;
pub(crate) mod verify;

use windrow::Result;

use crate::arguments::Command;
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
        Command::Stats { db, prometheus } => show::stats(&db, prometheus, output),
        Command::Levels { db } => show::levels(&db, output),
        Command::Values(args) => values::run(&args, output),
        Command::Verify(args) => verify::run(&args, output),
        Command::Compact(args) => compact::run(&args, output),
        Command::Checkpoint(args) => checkpoint::run(&args, output),
        Command::DropKeyspace(args) => drop_keyspace::run(&args, output),
        Command::Dump(args) => dump::run(&args, output),
        Command::Bench(args) => bench::run(&args, output),
        Command::Simulate(args) => simulate::run(&args, output),
        Command::Advise(args) => advise::run(&args, output),
        Command::DemoWriter(args) => demo::write_until_killed(&args),
        Command::DemoCleaner(args) => demo::remove_at_end(&args),
    }
}
