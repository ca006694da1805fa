//! Runs the programmes.

#![expect(clippy::print_stdout, reason = "reports are for people")]

use clap::{Parser, Subcommand};
use windrow_sim::programmes::crash;

/// Tries to break Windrow on a simulated disk.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    programme: Programme,
}

#[derive(Debug, Subcommand)]
enum Programme {
    /// Lets the power fail after each I/O of random histories, and during recovery.
    Crash {
        /// Stop after so many distinct disk images.
        #[arg(long, default_value_t = 100_000)]
        images: usize,
        /// Operations in each history.
        #[arg(long, default_value_t = 120)]
        operations: usize,
        #[arg(long, default_value_t = 1)]
        first_seed: u64,
        #[arg(long, default_value_t = 2)]
        threads: usize,
        /// Run the first seed only.
        #[arg(long)]
        only: bool,
    },
}

fn main() {
    match Arguments::parse().programme {
        Programme::Crash {
            images,
            operations,
            first_seed,
            threads,
            only,
        } => {
            let plan = crash::Plan {
                images,
                operations,
                first_seed,
                threads,
                ..crash::Plan::default()
            };
            let tally = if only {
                crash::run_seed(&plan, first_seed)
            } else {
                crash::run(&plan)
            };
            print!("{tally}");
        }
    }
}
