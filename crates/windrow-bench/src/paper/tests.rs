//! The list of experiments, the validity of their runs, and the sharpness of their checks.

use serde_json::json;
use windrow::simulation::Load;
use windrow::{KeyspaceOptions, Preset};

use super::autumn::analysis::{is_first_level_costly, of_level_1};
use super::figures::Figures as _;
use super::*;
use crate::Report;
use crate::campaign::Run;
use crate::data::random::mix;

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
fn the_bench_accepts_every_run() {
    use clap::Parser;
    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        bench: crate::BenchArgs,
    }
    for scale in [0.01, 1.0, 10.0] {
        for experiment in plans() {
            for run in (experiment.runs)(Scale(scale)) {
                let order = run.order(experiment.id, 0);
                let arguments = ["bench".to_owned()].into_iter().chain(order.arguments);
                let parsed = Arguments::try_parse_from(arguments).unwrap().bench;
                parsed.windrow_options().unwrap();
                parsed.data_set().unwrap();
            }
        }
    }
}

/// A report of `load` with figures of `draw`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures are positive and small"
)]
fn made_up(load: &str, draw: &mut impl FnMut() -> f64) -> Report {
    let mut count = || draw().round() + 1.0;
    let latency = |count: &mut dyn FnMut() -> f64| {
        json!({
            "p50_us": count(), "p95_us": count(), "p99_us": count(), "p999_us": count(), "max_us": count(),
        })
    };
    let mut report = latency(&mut count);
    let kinds = ["read", "scan", "update"].map(|kind| {
        let mut of_kind = latency(&mut count);
        of_kind["operation"] = json!(kind);
        of_kind["ops"] = json!(1);
        of_kind
    });
    let purposes = [
        "write-ahead log",
        "compactions",
        "appends",
        "consolidations",
        "garbage collection",
    ];
    let io_stats = purposes.map(|purpose| {
        json!({
            "purpose": purpose, "written_bytes": count() as u64, "read_bytes": count() as u64,
        })
    });
    let depth = (count() as u64) % 6 + 1;
    let level = |level: u64| {
        let mut shape = json!({ "level": level });
        for field in [
            "files",
            "segments",
            "bytes",
            "capacity",
            "entries",
            "flushed_bytes",
            "appended_bytes",
            "rewritten_bytes",
            "consolidated_bytes",
            "pointer_rewrite_bytes",
            "transient_log_bytes",
            "read_bytes",
            "consolidation_read_bytes",
            "pointer_rewrite_read_bytes",
            "transient_log_read_bytes",
        ] {
            shape[field] = json!(1);
        }
        shape
    };
    let rest = json!({
        "name": load, "engine": "windrow", "ops": 1000, "seconds": count(),
        "settled_seconds": count(), "ops_per_second": count(), "settled_ops_per_second": count(),
        "cpu_seconds": count(), "cpu_us_per_op": count(), "latency_curve": [], "operations": kinds,
        "found": 1, "checksum": "a", "repeatable": true, "user_bytes": count() as u64, "write_amplification": count(),
        "io_amplification": count(), "block_reads_per_op": count(), "filter_probes": count() as u64,
        "separated_reads": { "transient_log_reads": 0, "value_log_reads": 0, "prefetched": 0 },
        "read_bytes": count() as u64, "written_bytes": count() as u64, "io_stats": io_stats,
        "compactions": {
            "count": count() as u64, "seconds": count(), "shortest_ms": count(), "longest_ms": count(),
        },
        "stalls": count() as u64, "stall_seconds": count(), "stalls_by_cause": [],
        "disk_bytes": count() as u64, "space_amplification": count(),
        "levels": (0..=depth).map(level).collect::<Vec<_>>(), "series": [],
    });
    if let (Some(all), Some(rest)) = (report.as_object_mut(), rest.as_object()) {
        all.extend(rest.clone());
    }
    serde_json::from_value(report).unwrap()
}

/// The run of `order`, with the reports of `report`.
fn run(order: Order, mut report: impl FnMut(&str) -> Report) -> Run {
    let loads = order.arguments[0].split(',');
    Run {
        reports: loads.map(&mut report).collect(),
        command: order.command(),
        label: order.label,
        engine: order.engine,
        round: order.round,
        group: order.group,
    }
}

#[test]
fn each_figure_is_the_median_of_the_rounds() {
    let line = |num: u64| RunSpec::new(&["fillseq"]).with("num", num);
    let made = |num, round, rate: f64, written: f64| {
        run(line(num).order("XX-E1", round), |load| {
            let mut report = made_up(load, &mut || 1.0);
            (report.ops_per_second, report.write_amplification) = (rate, Some(written));
            report
        })
    };
    let runs = [
        made(1, 0, 30.0, 1.0),
        made(10, 0, 7.0, 7.0),
        made(1, 1, 10.0, 3.0),
        made(1, 2, 20.0, 2.5),
    ];
    let figures = |num| {
        let report = Results(&runs).of(&line(num), "fillseq");
        report.map(|report| format!("{}, {}", report.ops_per_second, report.written()))
    };
    assert_eq!(figures(1).unwrap(), "20, 2.5");
    assert_eq!(figures(10).unwrap(), "7, 7");
    assert!(figures(100).is_err());
    assert!(Results(&runs).of(&line(1), "fillrandom").is_err());
}

/// Six levels whose ratios do not grow towards the first.
#[test]
fn the_first_level_of_leveling_is_not_costly() {
    let mut options = KeyspaceOptions::preset(Preset::Leveling);
    options.size_ratio = 2.0;
    let fractions = of_level_1(&Load::inserts(10_000_000_000, options)).unwrap();
    assert!(!is_first_level_costly(fractions), "{fractions:?}");
}

/// Random figures fail each check without an explanation for some seed, so no check passes for all figures.
#[test]
fn every_check_can_fail() {
    const TRIES: u64 = 80;
    let scale = Scale(1.0);
    // AU-E10 measures nothing.
    for plan in plans().filter(|plan| plan.id != "AU-E10") {
        let mut failed: Vec<(String, bool)> = Vec::new();
        for seed in 0..TRIES {
            // From nearly equal figures to some of all sizes.
            let spread = [1.02, 1.3, 4.0, 100.0][(seed % 4) as usize];
            let mut step = 0;
            let mut draw = || {
                step += 1;
                let random = mix(seed << 32 | step) as f64 / u64::MAX as f64;
                1e4 * f64::powf(spread, 2.0 * random - 1.0)
            };
            let orders = plan.orders(scale).filter(|order| order.round == 0);
            let runs: Vec<Run> = orders
                .map(|order| run(order, |load| made_up(load, &mut draw)))
                .collect();
            let findings = (plan.judge)(scale, Results(&runs)).unwrap();
            failed.resize(findings.checks.len(), <_>::default());
            for ((shape, has_failed), check) in failed.iter_mut().zip(findings.checks) {
                *has_failed |= !check.holds && check.explanation.is_none();
                *shape = check.shape;
            }
        }
        for (shape, has_failed) in failed {
            assert!(has_failed, "{}: {shape}", plan.id);
        }
    }
}

#[test]
fn each_round_has_every_run_once() {
    let plan = |id: &str| plans().find(|plan| plan.id == id).unwrap();
    let scale = Scale(1.0);
    let labels = |id: &str| -> Vec<String> {
        let orders = plan(id).orders(scale);
        orders.map(|order| order.label).collect()
    };
    let (once, thrice) = (labels("PX-E8"), labels("LS-E5"));
    assert_eq!(once.len(), (plan("PX-E8").runs)(scale).len());
    assert_eq!(thrice.len(), 3 * (plan("LS-E5").runs)(scale).len());
    let mut distinct = thrice.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), thrice.len());
    let rounds = plan("LS-E5").orders(scale).map(|order| order.round);
    assert_eq!(rounds.collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
}

#[test]
fn settings_of_the_device_reach_every_run() {
    let words = "LS-E4 --scale 1 --memory 300M --drop-caches";
    let args = PaperArgs::of_command(&format!("{COMMAND}{words}")).unwrap();
    let command = "windrow-bench paper LS-E4 --scale 1 --memory 314572800 --drop-caches";
    assert_eq!(args.command(), command);
    let plan = plans().find(|plan| plan.id == "LS-E4").unwrap();
    let plain: Vec<Order> = plan.orders(Scale(1.0)).collect();
    let ends = [" --memory 314572800 --drop-caches", ""];
    let none = PaperArgs::of_command(&format!("{COMMAND}LS-E4 --scale 1")).unwrap();
    for (args, end) in [args, none].iter().zip(ends) {
        for order in &plain {
            let expected = order.command() + end;
            assert_eq!(args.with_settings(order.clone()).command(), expected);
        }
        let runs: Vec<Run> = plain
            .iter()
            .map(|order| run(order.clone(), |load| made_up(load, &mut || 1.0)))
            .collect();
        let judged = plan.judged(args, &runs).unwrap();
        assert!(judged.commands.iter().all(|command| command.ends_with(end)));
    }
}

#[test]
fn settings_name_the_scale_of_their_runs() {
    assert_eq!(Scale(1.0).reported("ten entries"), "ten entries");
    assert!(Scale(0.5).reported("ten entries").contains("0.5 times"));
}
