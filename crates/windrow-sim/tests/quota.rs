//! The disk fills up at every size, and empties again.
//! The long form: `cargo run --release -p windrow-sim -- quota --seeds 100 --step-bytes 512`.

use windrow_sim::programmes::quota;

#[test]
fn a_full_disk_stops_writes_until_there_is_room() {
    let tally = quota::run(&quota::Plan::default());
    assert!(tally.failures > 50 && tally.reserves > 20, "{tally}");
}
