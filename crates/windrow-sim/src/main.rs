//! Runs the stress tests.
//!
//! Each stress test is a function of its plan. The program ends with 0 only if the stress test found nothing.

#![expect(clippy::print_stdout, reason = "reports are for people")]

use clap::{Parser, Subcommand};
use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;
use windrow_sim::contract;
use windrow_sim::stress::{
    bank, crash, damage, faults, hostile, kill, metamorphic, quota, soak, transactions,
};

/// Tries to break Windrow.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    stress_test: StressTest,
}

#[derive(Debug, Subcommand)]
enum StressTest {
    /// Lets the power fail after each I/O of random histories, and during recovery.
    Crash(crash::Plan),
    /// Lets each I/O of random histories fail in each way.
    Faults(faults::Plan),
    /// Damages the files of closed databases.
    Damage(damage::Plan),
    /// Reads files that an attacker has made, whose checksums are right.
    Hostile(hostile::Plan),
    /// Compares random histories of all operations with a sorted map.
    Metamorphic(metamorphic::Plan),
    /// Checks histories of transactions for cycles, with crashes and faults.
    Transactions(transactions::Plan),
    /// Lets the disk fill up at every size.
    Quota(quota::Plan),
    /// Kills a writing process repeatedly, on the real file system.
    Kill(kill::Plan),
    /// The process that is killed.
    #[command(name = kill::WRITER, hide = true)]
    KillWriter(kill::Writer),
    /// Kills a writer, secondaries, backups and a replica, and compares all of them, on the real file system.
    Soak(soak::Plan),
    /// One of the processes of the soak.
    #[command(name = soak::CHILD, hide = true)]
    SoakChild(soak::Child),
    /// Prints the contract suite of the bindings: `bindings/contract/suite.json`.
    Contract,
    /// Moves money by batches and counts it, on the real file system with threads.
    Bank(bank::Plan),
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let passed = match Arguments::parse().stress_test {
        StressTest::Crash(plan) => {
            let tally = crash::run(&plan);
            show(&tally) && tally.rare.is_empty()
        }
        StressTest::Faults(plan) => show(&faults::run(&plan)),
        StressTest::Damage(plan) => {
            let tally = damage::run(&plan);
            show(&tally) && tally.wrong.is_empty()
        }
        StressTest::Hostile(plan) => show(&hostile::run(&plan)),
        StressTest::Metamorphic(plan) => show(&metamorphic::run(&plan)),
        StressTest::Transactions(plan) => show(&transactions::run(&plan)),
        StressTest::Quota(plan) => show(&quota::run(&plan)),
        StressTest::Kill(plan) => show(&kill::run(&plan, &std::env::current_exe()?)?),
        StressTest::KillWriter(writer) => {
            kill::write(&writer)?;
            true
        }
        StressTest::Soak(plan) => show(&soak::run(&plan, &std::env::current_exe()?)?),
        StressTest::SoakChild(child) => {
            soak::run_child(&child)?;
            true
        }
        StressTest::Contract => {
            print!("{}", contract::to_json(&contract::suite()));
            true
        }
        StressTest::Bank(plan) => show(&bank::run(&plan)?),
    };
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints what was done.
fn show(tally: &impl Display) -> bool {
    print!("{tally}");
    true
}
