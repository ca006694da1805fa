//! Comparisons: command lines, orders, engines of a suite, and what is refused.

use clap::Parser;

use super::*;
use crate::run::measure;

fn parsed(words: &[&str]) -> CompareArgs {
    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        compare: CompareArgs,
    }
    let words = std::iter::once("compare").chain(words.iter().copied());
    Line::try_parse_from(words).unwrap().compare
}

#[test]
fn an_order_names_engine_settings_and_round() {
    let args = parsed(&["--engines", "windrow", "fillseq", "--num", "10"]);
    let groups = args.groups().unwrap();
    assert_eq!((groups.len(), groups[0].rounds), (1, ROUNDS));
    let order = groups[0].order(EngineName::Windrow, 2);
    assert_eq!(order.label, "windrow fillseq --num 10 2");
    assert_eq!(order.group, "fillseq --num 10");
    assert_eq!(
        order.command(),
        "windrow-peers run --engine windrow fillseq --num 10"
    );
    assert_eq!(
        args.command(),
        "windrow-peers compare --engines windrow fillseq --num 10"
    );
    let args = parsed(&["--suite", "standard", "--options", "my options"]);
    assert_eq!(
        args.command(),
        "windrow-peers compare --suite standard --scale 1 --options 'my options'"
    );
}

#[test]
fn wrong_settings_are_refused_before_the_first_run() {
    let wrong = |words: &[&str]| {
        let args = parsed(words);
        let groups = args.groups()?;
        checked(&groups[0], EngineName::Windrow)
    };
    assert!(wrong(&["fillseq", "--num", "10"]).is_ok());
    assert!(wrong(&["fillseq", "--nmu", "10"]).is_err());
    assert!(wrong(&["nothing"]).is_err());
    for words in [
        ["fillseq", "--db", "here"].as_slice(),
        &["fillseq", "--engine", "windrow-buffered"],
        &["fillseq", "--json"],
        &["ycsb-load", "--value-size", "4"],
        &["fillseq", "--size-ratio", "0.5"],
        &["fillseq", "--key-size", "3"],
        &["replay"],
        &["--suite", "standard", "fillseq"],
        &["--suite", "standard", "--num", "10", "fillseq,readseq"],
        &["--suite", "small", "--value_size=1000"],
        &["--suite", "ycsb", "--mix", "LD"],
    ] {
        assert!(wrong(words).is_err(), "{words:?}");
    }
    let args = parsed(&["fillseq", "--compression", "lz4"]);
    for engine in EngineName::value_variants() {
        let refused = checked(&args.groups().unwrap()[0], *engine).err();
        let has_none = ["leveldb", "redb", "lmdb"].contains(&engine.name());
        let says = refused.is_some_and(|error| error.to_string().contains("no LZ4"));
        assert_eq!(says, has_none, "{}", engine.name());
    }
    let args = parsed(&["fillseq", "--key-size", "600"]);
    for engine in EngineName::value_variants() {
        let refused = checked(&args.groups().unwrap()[0], *engine).err();
        let says = refused.is_some_and(|error| error.to_string().contains("keys of 511"));
        assert_eq!(says, engine.name() == "lmdb", "{}", engine.name());
    }
    for load in [
        Load::Compact,
        Load::OptimisticPairs,
        Load::LockingPairs,
        Load::PreparedPairs,
        Load::BulkLoad,
        Load::Ingest,
        Load::CompactFiltered,
        Load::ApproximateSize,
    ] {
        let fill = if load.name().ends_with("pairs") {
            "fillcounters"
        } else {
            "fillseq"
        };
        let args = parsed(&[&format!("{fill},{}", load.name())]);
        for &engine in EngineName::value_variants() {
            let refused = checked(&args.groups().unwrap()[0], engine).err();
            let says = refused.is_some_and(|error| {
                let needs = format!("which {} needs", load.name());
                error.to_string().contains(&needs)
            });
            assert_eq!(says, !engine.has(load), "{}", engine.name());
        }
    }
    assert!(EngineName::Windrow.has(Load::LockingPairs));
}

#[test]
fn each_round_begins_with_the_next_engine() {
    let engines = [EngineName::Windrow, EngineName::WindrowBuffered];
    let order = |round| rotated(&engines, round).collect::<Vec<_>>();
    assert_eq!(order(0), engines);
    assert_eq!(order(1), [engines[1], engines[0]]);
    assert_eq!(order(2), engines);
    let all = EngineName::value_variants();
    for round in 0..2 * u32::try_from(all.len()).unwrap() {
        let order: Vec<EngineName> = rotated(all, round).collect();
        assert_eq!(order[0], all[round as usize % all.len()]);
        assert!(all.iter().all(|engine| order.contains(engine)));
        assert_eq!(order.len(), all.len());
    }
    assert_eq!(rotated(&[], 1).count(), 0);
}

#[test]
fn runs_of_a_suite_have_different_labels() {
    let groups = parsed(&["--suite", "standard"]).groups().unwrap();
    let orders = groups.iter().flat_map(|group| {
        let engines = EngineName::value_variants().iter();
        engines.map(|&engine| group.order(engine, 0).label)
    });
    let labels: Vec<String> = orders.collect();
    let different: BTreeSet<&String> = labels.iter().collect();
    assert_eq!(labels.len(), different.len());
}

#[test]
fn redundant_engines_take_part_only_if_named() {
    let all = |words: &[&str]| {
        let args = parsed(words);
        let groups = args.groups().unwrap();
        let engines = groups.iter().map(|group| args.engines(group));
        engines.collect::<Vec<_>>()
    };
    let every = EngineName::value_variants();
    assert_eq!(all(&["fillseq"]), [every]);
    let engines = all(&["--suite", "standard"]);
    let last = engines.len() - 1;
    for (group, engines) in engines.iter().enumerate() {
        let are_small = group == 0 || group == last;
        for engine in every {
            let keeps_apart = ["blobdb", "blobdb-direct", "fjall-separated"];
            let has_transactions =
                engine.has(Load::OptimisticPairs) != engine.has(Load::LockingPairs);
            let is_left_out = are_small && keeps_apart.contains(&engine.name())
                || engine.name() == "rocksdb-direct-io"
                || has_transactions && !["lmdb", "redb"].contains(&engine.name());
            assert_eq!(engines.contains(engine), !is_left_out, "{}", engine.name());
        }
    }
    for engines in all(&["--engines", "windrow-buffered", "--suite", "standard"]) {
        assert_eq!(engines, [EngineName::WindrowBuffered]);
    }
}

/// The time bound applies to reads only.
#[test]
fn every_engine_does_all_writes_of_the_suite() {
    let words = ["--suite", "standard", "--scale", "0.0004"];
    let mut args = parsed(&words);
    args.bench = ["--read-duration", "0.1"].map(str::to_owned).to_vec();
    for group in args.groups().unwrap() {
        let order = group.order(EngineName::Windrow, 0);
        let run = run_of(&order).unwrap();
        let (mut loads, mut written) = (0, 0);
        measure(run.engine, run.min_blob_bytes, &run.bench, |report| {
            let is_ycsb = report.name.starts_with("ycsb");
            let ops = match report.name.as_str() {
                "ycsb-load" => 800,
                "readwhilewriting" | "ycsb-e" | "readtocache" => report.ops,
                name if is_ycsb || name.starts_with("read") || name.starts_with("seek") => 200,
                _ => 2000,
            };
            assert_eq!(report.ops, ops, "{}", report.name);
            assert_eq!(
                report.repeatable,
                report.name != "readwhilewriting",
                "{}",
                report.name
            );
            loads += 1;
            written += u32::from(ops == 2000);
            Ok(())
        })
        .unwrap();
        assert!(loads >= 7 && (written > 0 || group.name.starts_with("YCSB")));
    }
}

#[test]
fn every_group_of_the_suite_can_run() {
    for scale in ["0.00001", "0.1", "1", "10"] {
        let words = [
            "--suite",
            "standard",
            "--scale",
            scale,
            "--cache-bytes",
            "8M",
        ];
        let groups = parsed(&words).groups().unwrap();
        assert!(groups.len() > 1);
        for group in &groups {
            checked(group, EngineName::Windrow).unwrap();
            let given = group.arguments.join(" ");
            assert!(given.contains("--cache-bytes 8M"));
        }
        // The group of cached reads keeps its own cache size.
        let caches = groups.iter().map(|group| {
            let order = group.order(EngineName::WindrowBuffered, 0);
            let bench = run_of(&order).unwrap().bench;
            bench.windrow_options().unwrap();
            (bench.cache_bytes, bench.memory_budget)
        });
        let mut caches: Vec<_> = caches.collect();
        caches.sort_unstable();
        let (largest, others) = caches.split_last().unwrap();
        let held = if scale == "10" { 20 } else { 2 };
        assert_eq!(*largest, (Some(held << 30), Some(0)));
        assert!(others.iter().all(|cache| *cache == (Some(8 << 20), None)));
    }
    assert!(
        parsed(&["--suite", "standard", "--scale", "0"])
            .groups()
            .is_err()
    );
}

#[test]
#[cfg(target_os = "linux")]
fn the_data_of_the_suite_beyond_is_four_times_the_memory() {
    let beyond = |settings: &[&str]| parsed(&[&["--suite", "beyond"], settings].concat());
    let error = beyond(&["--num", "10"]).groups().unwrap_err();
    assert!(error.to_string().contains("needs --memory SIZE"), "{error}");
    let refused = |settings| checked(&beyond(settings).groups()?[0], EngineName::Windrow);
    assert!(refused(&["--memory", "10M"]).is_err());
    assert!(refused(&["--memory", "64M", "--value-size", "10"]).is_err());
    let memory = 64 << 20;
    let groups = beyond(&["--memory", "64M"]).groups().unwrap();
    assert_eq!(groups.len(), 2);
    for group in &groups {
        let bench = checked(group, EngineName::Windrow).unwrap();
        let bytes = bench.num
            * if bench.mix.is_some() {
                24 + 227
            } else {
                16 + 200
            };
        assert!(
            (bytes as f64 / f64::from(4 * memory) - 1.0).abs() < 1e-3,
            "{bytes}"
        );
        assert!(bench.drop_caches && bench.runs_on_device());
        assert_eq!((bench.duration, bench.memory), (Some(30.0), Some(64 << 20)));
        let options = bench.windrow_options().unwrap();
        assert!(options.memory_budget < 64 << 20);
        assert_eq!(options.keyspace.memtable_bytes, 4 << 20);
        // The fill has no bound but the number of entries.
        assert!(bench.writes.is_none());
        assert!(["filluniquerandom", "ycsb-load"].contains(&bench.loads[0].name()));
    }
    // Settings behind the suite replace its own.
    let words = [
        "--memory",
        "128M",
        "--duration",
        "2",
        "--num",
        "50",
        "--drop-caches",
    ];
    for group in beyond(&words).groups().unwrap() {
        let bench = checked(&group, EngineName::WindrowBuffered).unwrap();
        assert_eq!((bench.duration, bench.num), (Some(2.0), 50));
        assert_eq!(
            bench.windrow_options().unwrap().keyspace.memtable_bytes,
            8 << 20
        );
    }
    // Engines that separate large values take part where values are large.
    let args = beyond(&["--memory", "64M"]);
    let engines: Vec<_> = groups.iter().map(|group| args.engines(group)).collect();
    let repeats = [
        "fjall-optimistic",
        "fjall-single-writer",
        "rocksdb-optimistic",
        "rocksdb-locking",
    ];
    for engine in EngineName::value_variants() {
        let takes_part = engines[1].contains(engine);
        assert_eq!(
            takes_part,
            !repeats.contains(&engine.name()),
            "{}",
            engine.name()
        );
    }
    assert!(
        engines[0]
            .iter()
            .all(|engine| !engine.name().contains("separated"))
    );
    assert!(engines[0].contains(&EngineName::Windrow));
}

#[test]
fn every_engine_runs_what_it_has_of_the_features() {
    let mut args = parsed(&["--suite", "features", "--scale", "0.0005", "--rounds", "1"]);
    // The loads do not wait for the end of background work.
    args.bench = vec!["--unsettled".to_owned()];
    let mut groups = args.groups().unwrap();
    assert_eq!(groups.len(), 10);
    for group in &mut groups {
        // Loads that run for a time have less of it.
        let bounds = group.arguments.iter_mut();
        for bound in bounds.skip_while(|it| *it != "--duration").skip(1).take(1) {
            "0.1".clone_into(bound);
        }
    }
    for group in &groups {
        let engines = args.engines(group);
        assert!(engines.contains(&EngineName::Windrow));
        assert!(!engines.contains(&EngineName::WindrowBuffered));
        let all = group.loads_of(EngineName::Windrow);
        assert_eq!(all.as_deref(), group.loads);
        for engine in engines {
            checked(group, engine).unwrap();
            let run = run_of(&group.order(engine, 0)).unwrap();
            let mut loads = Vec::new();
            measure(run.engine, run.min_blob_bytes, &run.bench, |report| {
                assert_eq!(report.engine, engine.name());
                assert!(report.ops > 0, "{} on {}", report.name, report.engine);
                loads.push(report.name.clone());
                Ok(())
            })
            .unwrap();
            assert_eq!(Some(loads.join(",")), group.loads_of(engine));
        }
    }
    // Engines with one kind of transactions run it beside the calls without one.
    let of = |name| {
        let engines = EngineName::value_variants().iter();
        let engine = engines.copied().find(|engine| engine.name() == name)?;
        groups[0].loads_of(engine)
    };
    for (name, own) in [
        ("rocksdb-optimistic", "optimisticpairs"),
        ("rocksdb-locking", "lockingpairs"),
        ("fjall-optimistic", "optimisticpairs"),
        ("fjall-single-writer", "lockingpairs"),
        ("lmdb", "lockingpairs"),
        ("redb", "lockingpairs"),
    ] {
        if let Some(loads) = of(name) {
            let expected = format!("fillcounters,readputcounters,updatecounters,pairs,{own}");
            assert_eq!(loads, expected, "{name}");
        }
    }
}
