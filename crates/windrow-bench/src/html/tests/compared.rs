//! The comparison of engines on a page: the first, the fastest, and failed runs.

use serde_json::{Value, json};

use super::made_up::{child, header, parse, whole_report};
use super::{NOTHING, all, check_form, document, page, plots, rows, text};
use crate::html::draw::canvas;

/// The engine with bold throughput, if any, in a load of windrow and rocksdb with these rates.
fn bold(windrow: &[f64], rocksdb: &[f64]) -> Option<String> {
    let mut lines = vec![header()];
    for (engine, rates) in [("windrow", windrow), ("rocksdb", rocksdb)] {
        for (round, &rate) in (0..).zip(rates) {
            let report = whole_report("fillrandom", engine, rate);
            lines.push(child(engine, round, "g", &[report]));
        }
    }
    let page = page(&parse(&lines));
    assert!(page.contains("Bold: the slowest round was faster than the fastest of every other"));
    let document = document(&page);
    let row = all(&document, "tr").find(|row| {
        let mut cells = row.children();
        cells.any(|cell| {
            cell.has_tag_name("td") && cell.children().any(|part| part.has_tag_name("b"))
        })
    });
    let names = row?
        .children()
        .filter(|cell| cell.attribute("scope") == Some("row"));
    Some(names.map(text).collect())
}

#[test]
fn the_fastest_engine_is_bold_if_ranges_do_not_overlap() {
    let windrow = Some("windrow".to_owned());
    let rocksdb = Some("rocksdb".to_owned());
    assert_eq!(bold(&[90e3, 100e3, 110e3], &[50e3, 60e3]), windrow);
    assert_eq!(bold(&[50e3, 60e3], &[70e3, 80e3]), rocksdb);
    assert_eq!(bold(&[90e3, 100e3, 110e3], &[50e3, 60e3, 90e3]), None);
    // One round has no range.
    assert_eq!(bold(&[90e3], &[50e3]), None);
    assert_eq!(bold(&[90e3, 100e3], &[50e3]), None);
    assert_eq!(bold(&[0.0, 0.0], &[0.0, 0.0]), None);
}

#[test]
fn plot_and_table_have_the_same_settling_time() {
    let settled_for = |settled_seconds: f64| {
        let mut report = whole_report("fillrandom", "windrow", 1e5);
        report["seconds"] = json!(2.0);
        report["settled_seconds"] = json!(settled_seconds);
        report["series"] = json!([
            { "seconds": 1.0, "ops_per_second": 5 },
            { "seconds": 2.001, "ops_per_second": 5 },
            { "seconds": 3.0, "ops_per_second": 0, "settling": true },
            { "seconds": 5.5, "ops_per_second": 0, "settling": true },
        ]);
        let lines = [header(), child("windrow", 0, "g", &[report])];
        let page = page(&parse(&lines));
        let document = document(&page);
        let texts = all(&document, "text").map(text);
        let mut reported = texts.filter(|text| text.starts_with("settled for"));
        reported.next().map(|text| text.replace('\u{a0}', " "))
    };
    // The last second is idle time.
    assert_eq!(settled_for(4.5).as_deref(), Some("settled for 2.5 s"));
    assert_eq!(settled_for(2.5).as_deref(), Some("settled for 500 ms"));
    assert_eq!(settled_for(2.0), None);
}

#[test]
fn a_short_series_has_the_name_of_its_engine() {
    let name = "an-engine-of-many-letters";
    let mut short = whole_report("fillrandom", name, 1e5);
    short["series"] = json!([
        { "seconds": 1.0, "ops_per_second": 5 },
        { "seconds": 2.0, "ops_per_second": 0, "settling": true },
    ]);
    short["seconds"] = json!(1.0);
    let mut long = whole_report("fillrandom", "rocksdb", 1e5);
    long["series"] = json!([{ "seconds": 1000.0, "ops_per_second": 5 }]);
    long["seconds"] = json!(1000.0);
    let lines = [
        header(),
        child(name, 0, "g", &[short]),
        child("rocksdb", 0, "g", &[long]),
    ];
    let plots = plots(&parse(&lines));
    let series = plots.iter().find(|plot| plot.name.ends_with("series.svg"));
    let document = document(&series.unwrap().svg);
    let place = |begin: &str| -> f64 {
        let mut texts = all(&document, "text");
        let found = texts.find(|node| text(*node).starts_with(begin)).unwrap();
        found.attribute("x").unwrap().parse().unwrap()
    };
    let name_ends = place("an-engine") + canvas::text_width(&canvas::cut(name));
    assert!(place("settled for") > name_ends);
}

/// The line of a failed run.
fn failed(engine: &str, round: u32, group: &str) -> Value {
    let mut line = child(engine, round, group, &[]);
    let fields = line.as_object_mut().unwrap();
    fields.remove("reports");
    fields.insert(
        "failed".to_owned(),
        json!("exit status: 2, after <fillseq>"),
    );
    fields.insert("exit_code".to_owned(), json!(2));
    line
}

/// The engines of the first table, and the ratio of each.
fn ratios(lines: &[Value]) -> Vec<[String; 2]> {
    let rows = rows(&page(&parse(lines)), "summary");
    let ratio = rows[0]
        .iter()
        .position(|heading| heading == "ratio")
        .unwrap();
    let rows = rows.iter().skip(1).enumerate();
    // The first row also has the name of the load.
    let rows = rows.map(|(row, cells)| {
        let less = usize::from(row > 0);
        [1, ratio].map(|place| cells[place - less].clone())
    });
    rows.collect()
}

#[test]
fn ratios_are_those_of_the_first_named_engine() {
    let run = |engine: &str, round: u32| {
        let rate = if engine == "windrow" { 100e3 } else { 50e3 };
        child(
            engine,
            round,
            "g",
            &[whole_report("fillrandom", engine, rate)],
        )
    };
    let expected =
        [["windrow", NOTHING], ["rocksdb", "2.00\u{d7}"]].map(|row| row.map(str::to_owned));
    // Its first run failed and was retried; later rounds begin with another engine.
    let without = header();
    let first = failed("windrow", 0, "g");
    let lines = [
        without.clone(),
        first,
        run("rocksdb", 0),
        run("rocksdb", 1),
        run("windrow", 0),
    ];
    assert_eq!(ratios(&lines), expected);
    let lines = [
        without,
        run("rocksdb", 1),
        run("windrow", 0),
        run("rocksdb", 0),
    ];
    assert_eq!(ratios(&lines), expected);
    // A file without failures has the command.
    let mut named = header();
    named["campaign"]["command"] =
        json!("windrow-peers compare --engines windrow,rocksdb fillrandom");
    let lines = [
        named.clone(),
        run("rocksdb", 0),
        run("rocksdb", 1),
        run("windrow", 1),
    ];
    assert_eq!(ratios(&lines), expected);
    // No engine replaces the first one.
    let lines = [named, run("rocksdb", 0)];
    assert_eq!(ratios(&lines), [["rocksdb", NOTHING].map(str::to_owned)]);
}

#[test]
fn failures_stand_with_passed_runs() {
    let report = |engine: &str| [whole_report("fillrandom", engine, 1e5)];
    let lines = [
        header(),
        failed("windrow", 0, "g"),
        failed("rocksdb", 0, "g"),
        child("windrow", 0, "g", &report("windrow")),
        failed("rocksdb", 0, "only failures"),
    ];
    let campaign = parse(&lines);
    check_form(&campaign);
    let page = page(&campaign);
    let document = document(&page);
    let items = all(&document, "li").map(text);
    let reported: Vec<String> = items.filter(|item| item.starts_with("Failed")).collect();
    assert_eq!(
        reported,
        [
            "Failed: windrow, round 1: exit status: 2, after <fillseq>; a later try passed",
            "Failed: rocksdb, round 1: exit status: 2, after <fillseq>",
            "Failed: rocksdb, round 1: exit status: 2, after <fillseq>",
        ]
    );
    let facts = all(&document, "dl").next().map(text).unwrap();
    assert!(facts.contains("Runs1Failed3"), "{facts}");
    assert!(text(document.root_element()).contains("only failures"));
}

#[test]
fn columns_of_the_device_are_there_if_any_report_has_them() {
    let mut report = whole_report("readrandom", "windrow", 1e5);
    let headings = |report: &Value| {
        let lines = [
            header(),
            child("windrow", 0, "g", std::slice::from_ref(report)),
        ];
        let rows = rows(&page(&parse(&lines)), "summary");
        rows[0].iter().filter(|it| it.starts_with("device")).count()
    };
    assert_eq!(headings(&report), 4);
    // The system has no counters of the device, only of the process.
    report["device_reads_per_op"] = Value::Null;
    assert_eq!(headings(&report), 3);
}

#[test]
fn the_limits_of_the_device_are_facts_of_the_campaign() {
    let mut header = header();
    let whole = |header: &Value| {
        let report = whole_report("readrandom", "windrow", 1e5);
        let campaign = parse(&[header.clone(), child("windrow", 0, "g", &[report])]);
        check_form(&campaign);
        text(document(&page(&campaign)).root_element())
    };
    assert!(!whole(&header).contains("random reads of 4 KiB"));
    header["campaign"]["device"] = json!({
        "random_reads_per_second": 5000.0, "random_reads_at_32_per_second": 90e3,
        "sequential_read_bytes_per_second": f64::from(1 << 30),
        "sequential_written_bytes_per_second": f64::from(1 << 29), "is_direct": true,
    });
    let limits = "Devicerandom reads of 4 KiB, one at a time: 5000 per second; random reads of 4 KiB, 32 at a time: \
                  90000 per second; sequential reads: 1024.0 MiB/s; sequential writes: 512.0 MiB/s; measured without \
                  the page cache";
    assert!(whole(&header).contains(limits), "{}", whole(&header));
}

#[test]
fn dropped_caches_are_noted_below_the_table() {
    let mut report = whole_report("readrandom", "windrow", 1e5);
    let whole = |report: &Value| {
        let campaign = parse(&[
            header(),
            child("windrow", 0, "g", std::slice::from_ref(report)),
        ]);
        check_form(&campaign);
        text(document(&page(&campaign)).root_element())
    };
    assert!(!whole(&report).contains("Dropped"));
    report["dropped_caches"] = json!("system");
    let note = "Dropped before each load: the page cache of the system.";
    assert!(whole(&report).contains(note));
}
