//! Money moves between accounts while it is counted, on the real file system with real threads.
//! The long form: `cargo run --release -p windrow-sim -- bank --seconds 600`.

use std::time::Duration;
use windrow_sim::programmes::bank;

#[test]
fn no_money_is_lost_or_made() -> Result<(), Box<dyn std::error::Error>> {
    bank::run(&bank::Plan {
        duration: Duration::from_secs(5),
        seed: 1,
    })?;
    Ok(())
}
