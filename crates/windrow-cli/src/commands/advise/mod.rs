//! `advise`: recommends options for a load, by the simulation and a model of what operations cost.

mod demand;
mod report;
mod sources;
mod sweep;

use std::path::PathBuf;

use clap::Args;
use windrow::{KeyspaceOptions, Result};
use windrow_bench::{PolicyArgs, check_destination};

use self::demand::{DemandArgs, Known};
use self::report::Report;
use self::sweep::{Bounds, Free, Request};
use crate::commands::cost::Demand;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress;

/// Arguments of `advise`.
#[derive(Debug, Args)]
#[command(after_help = "\
Flags describe a load, or the statistics of a store, or a trace; flags have precedence. Options of the \
tree that are given hold. The command searches the others: T, c, segment limit, thresholds of placement, \
filter bits. If --max-space-amp is given, settings that take more disk are left out.

Unless --device or --calibration is given, all data is assumed to be in the page cache. With --memory they \
describe a store that does not fit.

The statistics of a running program describe the load best: the program writes its `Db::stats` as \
JSON. Those of `windrow stats DB --json` describe only the stored data; give the weights of \
operations as flags.

Examples:
  windrow advise --bytes 500GB --value-size 100 --updates 90 --gets 10
  windrow advise --keys 50000000 --mix MD --gets 95 --device nvme --memory 8G
  windrow device /mnt/data --json > device.json && \
    windrow advise --bytes 2TB --value-size 1000 --gets 95 --updates 5 --memory 64G --calibration device.json
  windrow advise --bytes 2TB --value-size 100:9,4000:1 --inserts 5 --gets 95
  windrow advise --bytes 100GB --value-size 32 --updates 20 --merges 60 --gets 20
  windrow advise --bytes 100GB --value-size 100 --updates 60 --range-deletes 0.01 --range-delete-part 0.00001 --gets 40
  windrow advise --bytes 100GB --value-size 100 --updates 60 --expiring 1 --time-to-live 150GB --gets 40
  windrow advise --stats stats.json --scan-length 20 --output store.options
  windrow advise --trace requests.csv.gz --json
  windrow bench ycsb-load,ycsb-a --options store.options")]
pub(crate) struct AdviseArgs {
    /// Statistics of a store as JSON, whose load it is
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    stats: Option<PathBuf>,

    /// The keyspace of the statistics whose entries count [default: all]; operations are those of all
    #[arg(long, value_name = "NAME", requires = "stats")]
    keyspace: Option<String>,

    /// A trace that `windrow bench replay` can replay; it begins with an empty store, unless --bytes or --keys
    /// says what is stored
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    #[command(flatten, next_help_heading = "The load")]
    demand: DemandArgs,

    #[command(flatten, next_help_heading = "Options of the tree")]
    tree: PolicyArgs,

    /// Write the recommended options to a file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the recommended options, the default, and each setting one step away to a file in this folder, so
    /// that they can be measured; a folder with files of options in it is refused
    #[arg(long, value_name = "DIR")]
    neighbours: Option<PathBuf>,
}

pub(crate) fn run(args: &AdviseArgs, output: &mut Output) -> Result<Outcome> {
    args.check_destinations()?;
    let known = args.known()?;
    let demand = Demand::new(&args.demand, &known)?;
    let (base, now) = args.options(&known)?;
    let bar = progress::counter("trees simulated");
    let tick = || bar.inc(1);
    let request = Request {
        demand: &demand,
        base: &base,
        now: now.as_ref(),
        free: args.free(),
        bounds: args.bounds(),
        wants_neighbours: args.neighbours.is_some(),
    };
    let advice = sweep::advise(&request, &tick);
    bar.finish_and_clear();
    let report = Report::new(demand, advice?);
    output.object(&report)?;
    output.line(&report)?;
    if let Some(path) = &args.output {
        report.write(path)?;
    }
    if let Some(folder) = &args.neighbours {
        report.write_neighbours(folder)?;
    }
    Ok(Outcome::Done)
}

impl AdviseArgs {
    /// Makes sure that what comes out can be written.
    fn check_destinations(&self) -> Result<()> {
        if let Some(path) = &self.output {
            let sources = [&self.stats, &self.trace, &self.tree.options_file];
            check_destination(path, sources.into_iter().flatten())?;
        }
        let folder = self.neighbours.as_deref();
        folder.map_or(Ok(()), report::make_folder)
    }

    fn known(&self) -> Result<Known> {
        if let Some(path) = &self.stats {
            return sources::statistics(path, self.keyspace.as_deref());
        }
        if let Some(path) = &self.trace {
            let is_filled = self.demand.bytes.is_some() || self.demand.keys.is_some();
            return sources::trace(path, is_filled);
        }
        Ok(Known::default())
    }

    /// The default, and what the store has now.
    ///
    /// If the options of the store are known, the default has those of them that are not searched, except for
    /// options that are given.
    fn options(&self, known: &Known) -> Result<(KeyspaceOptions, Option<KeyspaceOptions>)> {
        let mut base = self.tree.options()?.keyspace;
        let Some(now) = known.options.clone() else {
            base.validate()?;
            return Ok((base, None));
        };
        let tree = &self.tree;
        if tree.options_file.is_none() {
            let mut of_store = now.clone();
            of_store.size_ratio = base.size_ratio;
            of_store.scaling = base.scaling;
            of_store.segment_limit = base.segment_limit;
            of_store.bits_per_key = base.bits_per_key;
            of_store.medium_from = base.medium_from;
            of_store.large_from = base.large_from;
            of_store.medium_in_place = base.medium_in_place;
            tree.change(&mut of_store)?;
            base = of_store;
        }
        base.validate()?;
        Ok((base, Some(now)))
    }

    fn free(&self) -> Free {
        let tree = &self.tree;
        Free {
            size_ratio: tree.size_ratio.is_none(),
            scaling: tree.scaling.is_none(),
            segment_limit: tree.segment_limit.is_none(),
            placement: tree.medium_from.is_none()
                && tree.large_from.is_none()
                && tree.medium_in_place.is_none(),
            bits_per_key: tree.bits_per_key.is_none(),
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            space_amplification: self.tree.max_space_amp,
            memory: self.demand.machine.memory,
        }
    }
}
