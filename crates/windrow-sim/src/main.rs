//! Runs the stress tests.
//!
//! Each stress test is a function of its plan, which tests call with a small one. It ends with 0 only where it
//! found nothing.

#![expect(clippy::print_stdout, reason = "reports are for people")]

use clap::{Args, Parser, Subcommand};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use windrow_sim::programmes::{bank, crash, damage, faults, kill, metamorphic, quota};

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
        #[command(flatten)]
        seeds: Seeds,
        /// Stop after so many distinct disk images.
        #[arg(long, default_value_t = crash::Plan::default().images)]
        images: usize,
        /// Fail unless the power failed so often after each step.
        #[arg(long, default_value_t = 100)]
        crossings: u64,
        /// Operations in the longest histories.
        #[arg(long, default_value_t = crash::Plan::default().operations)]
        operations: usize,
    },
    /// Lets each I/O of random histories go wrong in each way.
    Faults {
        #[command(flatten)]
        seeds: Seeds,
        /// Operations in each history.
        #[arg(long, default_value_t = faults::Plan::default().operations)]
        operations: usize,
        /// Try one in so many of the possible faults.
        #[arg(long, default_value_t = faults::Plan::default().one_in)]
        one_in: u64,
    },
    /// Damages the files of closed databases.
    Damage {
        #[command(flatten)]
        seeds: Seeds,
        /// Operations that fill each database.
        #[arg(long, default_value_t = damage::Plan::default().operations)]
        operations: usize,
        /// Flip one in so many bits.
        #[arg(long, default_value_t = damage::Plan::default().one_in)]
        one_in: u64,
    },
    /// Compares random histories of all operations with a sorted map.
    Metamorphic {
        #[command(flatten)]
        seeds: Seeds,
        /// Operations in each history.
        #[arg(long, default_value_t = metamorphic::Plan::default().operations)]
        operations: usize,
    },
    /// Lets the disk fill up at every size.
    Quota {
        #[command(flatten)]
        seeds: Seeds,
        /// Operations in each history.
        #[arg(long, default_value_t = quota::Plan::default().operations)]
        operations: usize,
        /// Distance between two sizes.
        #[arg(long, default_value_t = quota::Plan::default().step_bytes)]
        step_bytes: u64,
    },
    /// Kills a process that writes, again and again, on the real file system.
    Kill {
        /// How often.
        #[arg(long, default_value_t = 500)]
        rounds: u64,
        /// The longest time that a process gets, in milliseconds.
        #[arg(long, default_value_t = 200)]
        millis_max: u64,
        /// Fixes what is written, and the time that each process gets.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// The process that is killed.
    #[command(hide = true)]
    KillWriter {
        directory: PathBuf,
        seed: u64,
        round: u64,
    },
    /// Moves money between accounts while it is counted, on the real file system with threads.
    Bank {
        /// For how long.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// Fixes what each thread draws.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// Which histories are run.
#[derive(Debug, Clone, Copy, Args)]
struct Seeds {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// How many seeds, where nothing else says when to stop.
    #[arg(long = "seeds", default_value_t = 8)]
    count: u64,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Run the first seed only.
    #[arg(long)]
    only: bool,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    match Arguments::parse().programme {
        Programme::Crash {
            seeds,
            images,
            crossings,
            operations,
        } => {
            let crossings = if seeds.only { 0 } else { crossings };
            let plan = crash::Plan {
                images: if seeds.only { 1 } else { images },
                crossings,
                operations,
                first_seed: seeds.first_seed,
                threads: seeds.threads(),
                ..crash::Plan::default()
            };
            let tally = crash::run(&plan);
            print!("{tally}");
            let rare = tally.rare_steps(crossings);
            if !rare.is_empty() {
                println!("less than {crossings} times: {}", rare.join(", "));
                return Ok(ExitCode::FAILURE);
            }
        }
        Programme::Faults {
            seeds,
            operations,
            one_in,
        } => {
            let plan = faults::Plan {
                seeds: seeds.count(),
                operations,
                one_in,
                threads: seeds.threads(),
                first_seed: seeds.first_seed,
            };
            print!("{}", faults::run(&plan));
        }
        Programme::Damage {
            seeds,
            operations,
            one_in,
        } => {
            let plan = damage::Plan {
                seeds: seeds.count(),
                operations,
                one_in,
                threads: seeds.threads(),
                first_seed: seeds.first_seed,
            };
            let tally = damage::run(&plan);
            print!("{tally}");
            if !tally.faults.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
        }
        Programme::Metamorphic { seeds, operations } => {
            let plan = metamorphic::Plan {
                seeds: seeds.count(),
                operations,
                threads: seeds.threads(),
                first_seed: seeds.first_seed,
            };
            print!("{}", metamorphic::run(&plan));
        }
        Programme::Quota {
            seeds,
            operations,
            step_bytes,
        } => {
            let plan = quota::Plan {
                seeds: seeds.count(),
                operations,
                step_bytes,
                threads: seeds.threads(),
                first_seed: seeds.first_seed,
            };
            print!("{}", quota::run(&plan));
        }
        Programme::Kill {
            rounds,
            millis_max,
            seed,
        } => {
            let plan = kill::Plan {
                rounds,
                millis_max,
                seed,
                programme: std::env::current_exe()?,
            };
            print!("{}", kill::run(&plan)?);
        }
        Programme::KillWriter {
            directory,
            seed,
            round,
        } => kill::write(&directory, seed, round)?,
        Programme::Bank { seconds, seed } => {
            let plan = bank::Plan {
                duration: Duration::from_secs(seconds),
                seed,
            };
            print!("{}", bank::run(&plan)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Seeds {
    fn count(self) -> u64 {
        if self.only { 1 } else { self.count }
    }

    fn threads(self) -> usize {
        if self.only { 1 } else { self.threads }
    }
}
