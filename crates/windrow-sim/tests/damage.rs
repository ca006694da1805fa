//! Bits flip and files are harmed in a closed database.
//! The long form: `cargo run --release -p windrow-sim -- damage --seeds 8 --one-in 1`.

use windrow_sim::programmes::damage;

#[test]
fn damage_gives_no_wrong_answer() {
    let tally = damage::run(&damage::Plan {
        seeds: 4,
        one_in: 32,
        ..damage::Plan::default()
    });
    assert!(tally.faults.is_empty(), "{tally}");
}
