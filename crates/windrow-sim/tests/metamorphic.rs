//! Random histories of everything public, under each option set, against a sorted map.
//! The long form: `cargo run --release -p windrow-sim -- metamorphic --seeds 10000`.

use windrow_sim::programmes::metamorphic;

#[test]
fn every_option_set_answers_like_a_sorted_map() {
    let tally = metamorphic::run(&metamorphic::Plan {
        seeds: 6,
        operations: 300,
        ..metamorphic::Plan::default()
    });
    assert!(tally.histories >= 6 * 6, "{tally}");
    assert!(tally.checks > 100, "{tally}");
}
