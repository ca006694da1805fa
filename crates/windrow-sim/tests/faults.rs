//! Each I/O of random histories goes wrong in each way.
//! The long form: `cargo run --release -p windrow-sim -- faults --seeds 1000`.

use windrow_sim::programmes::faults;

#[test]
fn device_errors_are_reported_and_survived() {
    let tally = faults::run(&faults::Plan {
        one_in: 4,
        ..faults::Plan::default()
    });
    assert!(tally.errors > 1000, "{tally}");
}
