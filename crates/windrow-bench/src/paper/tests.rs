//! Which experiments there are, and that each of their runs is one that the bench takes.

use super::*;

#[test]
fn experiments_are_chosen_by_id_by_paper_and_all_together() {
    let of = |ids: &[&str]| {
        let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        chosen(&ids).map(|chosen| chosen.iter().map(|one| one.id).collect::<Vec<_>>())
    };
    assert_eq!(
        of(&["ls-e2", "AU-E10", "LS-E2"]).unwrap(),
        ["AU-E10", "LS-E2"]
    );
    assert_eq!(of(&["px"]).unwrap().len(), 10);
    assert_eq!(of(&["all"]).unwrap().len(), 27);
    let error = of(&["AU-E1", "XX-E1"]).unwrap_err().to_string();
    assert!(
        error.contains("XX-E1") && error.contains("AU-E10"),
        "{error}"
    );
}

#[test]
fn every_run_is_one_that_the_bench_takes() {
    use clap::Parser;
    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        bench: crate::BenchArgs,
    }
    for scale in [0.01, 1.0, 10.0] {
        for experiment in plans() {
            for line in (experiment.lines)(Scale(scale)) {
                let order = line.order(experiment.id, 0);
                let arguments = ["bench".to_owned()].into_iter().chain(order.arguments);
                let parsed = Arguments::try_parse_from(arguments).unwrap().bench;
                parsed.windrow_options().unwrap();
                parsed.data_set().unwrap();
            }
        }
    }
}

/// A run of `line` in a round, with one load that had this rate.
fn run(line: &Line, round: u32, rate: f64) -> crate::campaign::Run {
    let report = serde_json::json!({
        "name": "fillseq", "engine": "windrow", "ops": 1, "seconds": 1.0, "settled_seconds": 1.0,
        "ops_per_second": 1.0, "settled_ops_per_second": rate, "cpu_seconds": 1.0, "cpu_us_per_op": 1.0,
        "p50_us": 1.0, "p95_us": 1.0, "p99_us": 1.0, "p999_us": 1.0, "max_us": 1.0,
        "latency_curve": [], "operations": [], "found": 1, "checksum": "a", "repeatable": true,
        "write_amplification": 1.0, "io_amplification": 1.0,
        "values_apart": { "run_reads": 0, "log_reads": 0, "asked_ahead": 0 },
        "read_bytes": 1, "written_bytes": 1, "traffic": [], "stall_seconds": 0.0,
        "stalls_by_cause": [], "disk_bytes": 1, "levels": [], "series": [],
    });
    let order = line.order("XX-E1", round);
    crate::campaign::Run {
        command: order.command(),
        label: order.label,
        engine: order.engine,
        round,
        group: order.group,
        reports: vec![serde_json::from_value(report).unwrap()],
    }
}

#[test]
fn the_round_with_the_median_throughput_is_judged() {
    let line = |num: u64| Line::new(&["fillseq"]).with("num", num);
    let runs = [
        run(&line(1), 0, 30.0),
        run(&line(10), 0, 7.0),
        run(&line(1), 1, 10.0),
        run(&line(1), 2, 20.0),
    ];
    let rate = |num| {
        let report = Results(&runs).of(&line(num), "fillseq");
        report.map(|report| report.settled_ops_per_second.to_string())
    };
    assert_eq!(rate(1).unwrap(), "20");
    assert_eq!(rate(10).unwrap(), "7");
    assert!(rate(100).is_err());
}

#[test]
fn lines_run_in_turn_in_every_round() {
    let plan = |id: &str| plans().find(|plan| plan.id == id).unwrap();
    let scale = Scale(1.0);
    let labels = |id: &str| -> Vec<String> {
        let orders = plan(id).orders(scale);
        orders.map(|order| order.label).collect()
    };
    let (once, thrice) = (labels("PX-E8"), labels("LS-E5"));
    assert_eq!(once.len(), (plan("PX-E8").lines)(scale).len());
    assert_eq!(thrice.len(), 3 * (plan("LS-E5").lines)(scale).len());
    let mut distinct = thrice.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), thrice.len());
    let rounds = plan("LS-E5").orders(scale).map(|order| order.round);
    assert_eq!(rounds.collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
}
