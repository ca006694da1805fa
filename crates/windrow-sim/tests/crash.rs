//! The power fails after each I/O of random histories, and of their recoveries.
//! The long form: `cargo run --release -p windrow-sim -- crash --images 2000000`.

use windrow_sim::programmes::crash;

#[test]
fn every_crash_leaves_a_prefix_with_all_that_was_durable() {
    let plan = crash::Plan {
        images: 30_000,
        ..crash::Plan::default()
    };
    let tally = crash::run(&plan);
    assert!(tally.images() >= plan.images);
    assert!(tally.nested.iter().all(|count| *count > 100), "{tally}");
    assert!(tally.afterlives > 50, "{tally}");
    assert_eq!(tally.rare_steps(1), Vec::<String>::new());
}
