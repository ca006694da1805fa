//! The stress tests in their short forms. `windrow-sim` runs the long forms, for example:
//!
//!     cargo run --release -p windrow-sim -- crash --images 2000000
//!     cargo run --release -p windrow-sim -- faults --seeds 1000
//!     cargo run --release -p windrow-sim -- damage --seeds 8 --one-in 1
//!     cargo run --release -p windrow-sim -- metamorphic --seeds 10000
//!     cargo run --release -p windrow-sim -- transactions --seeds 1000
//!     cargo run --release -p windrow-sim -- quota --seeds 100 --step-bytes 512
//!     cargo run --release -p windrow-sim -- kill --rounds 500
//!     cargo run --release -p windrow-sim -- bank --seconds 600
//!     cargo run --release -p windrow-sim -- soak --seconds 3600

use std::error::Error;
use std::path::Path;
use windrow_sim::stress::{
    Seeds, bank, crash, damage, default_plan, faults, kill, metamorphic, quota, soak, transactions,
};

/// The first `count` seeds.
fn seeds(count: u64) -> Seeds {
    Seeds {
        count,
        ..default_plan()
    }
}

#[test]
fn crash_leaves_a_prefix_with_every_durable_commit() {
    let plan = crash::Plan {
        images: 30_000,
        crossings: 0,
        ..default_plan()
    };
    let tally = crash::run(&plan);
    assert!(tally.images() >= plan.images);
    assert!(tally.nested.iter().all(|count| *count > 100), "{tally}");
    assert!(tally.afterlives > 50, "{tally}");
    assert_eq!(tally.rare_steps(1), Vec::<String>::new());
}

#[test]
fn faults_of_the_device_are_reported_and_survived() {
    let tally = faults::run(&faults::Plan {
        one_in: 4,
        ..default_plan()
    });
    assert!(tally.errors > 1000, "{tally}");
}

#[test]
fn damage_gives_no_wrong_answer() {
    let tally = damage::run(&damage::Plan {
        seeds: seeds(4),
        one_in: 32,
        ..default_plan()
    });
    assert!(tally.wrong.is_empty(), "{tally}");
    let repairs = |kind: &str| tally.repairs.get(kind).copied().unwrap_or_default();
    for kind in ["bit flipped: table", "bit flipped: wal"] {
        // Filters and indexes are written again; records that are in tables already are not needed.
        let [all, rest, ..] = repairs(kind);
        assert!(all > 50 && rest > 50, "{tally}");
    }
    let [all, rest, ..] = repairs("bit flipped: manifest");
    assert!(all + rest > 1000, "{tally}");
    let [cut, _, refused, _] = tally.prefixes["bit flipped: wal"];
    assert!(cut > 50 && refused > 50, "{tally}");
}

#[test]
fn metamorphic_histories_answer_like_a_sorted_map() {
    let tally = metamorphic::run(&metamorphic::Plan {
        seeds: seeds(6),
        operations: 300,
    });
    assert!(tally.histories >= 6 * 6, "{tally}");
    assert!(tally.checks > 100 && tally.folds > 0, "{tally}");
}

#[test]
fn transactions_leave_no_forbidden_cycle() {
    let tally = transactions::run(&transactions::Plan {
        seeds: seeds(60),
        ..default_plan()
    });
    assert!(tally.conflicts > 100 && tally.crashes > 60, "{tally}");
    assert!(tally.transactions > 1000 && tally.lost > 10, "{tally}");
}

#[test]
fn quota_stops_writes_until_there_is_space() {
    let tally = quota::run(&default_plan());
    assert!(tally.failures > 50 && tally.reserves > 20, "{tally}");
}

#[test]
fn kill_loses_nothing_acknowledged() -> Result<(), Box<dyn Error>> {
    let plan = kill::Plan {
        rounds: 25,
        ..default_plan()
    };
    let tally = kill::run(&plan, Path::new(env!("CARGO_BIN_EXE_windrow-sim")))?;
    assert_eq!(tally.kills, 25);
    Ok(())
}

#[test]
fn bank_neither_loses_nor_makes_money() -> Result<(), Box<dyn Error>> {
    bank::run(&bank::Plan {
        seconds: 5,
        seed: 1,
    })?;
    Ok(())
}

#[test]
fn soak_ends_with_equal_copies() -> Result<(), Box<dyn Error>> {
    let plan = soak::Plan {
        seconds: 10,
        seed: 1,
    };
    let tally = soak::run(&plan, Path::new(env!("CARGO_BIN_EXE_windrow-sim")))?;
    assert!(tally.batches > 100, "{tally}");
    Ok(())
}
