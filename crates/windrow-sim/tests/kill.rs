//! A process that writes is killed at random moments, on the real file system.
//! The long form: `cargo run --release -p windrow-sim -- kill --rounds 500`.

use windrow_sim::programmes::kill;

#[test]
fn a_killed_process_loses_nothing_that_was_acknowledged() -> Result<(), Box<dyn std::error::Error>>
{
    let tally = kill::run(&kill::Plan {
        rounds: 25,
        millis_max: 200,
        seed: 1,
        programme: env!("CARGO_BIN_EXE_windrow-sim").into(),
    })?;
    assert_eq!(tally.kills, 25);
    Ok(())
}
