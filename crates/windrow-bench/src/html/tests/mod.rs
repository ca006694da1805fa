//! Pages and plots of made-up campaigns: their form and contents.

mod compared;
mod input;
mod looks;
mod made_up;

use std::collections::BTreeSet;

use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};
use windrow::ErrorKind;

use self::made_up::{child, experiments, fill, header, parse, whole_report};
use super::*;
use crate::html::draw::number::NOTHING;

/// Parses a page or a plot, or fails the test.
fn document(text: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).unwrap()
}

fn all<'a, 'b>(document: &'a Document<'b>, name: &'a str) -> impl Iterator<Item = Node<'a, 'b>> {
    let elements = document.descendants();
    elements.filter(move |node| node.tag_name().name() == name)
}

/// All text in a node.
fn text(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|part| part.text()).collect()
}

/// The kinds of the figures of a page, without the overviews.
fn kinds(page: &str) -> Vec<String> {
    let document = document(page);
    let ids = all(&document, "figure").filter_map(|figure| figure.attribute("id"));
    let kinds = ids.filter_map(|id| id.rsplit('-').next());
    let kinds = kinds.filter(|kind| *kind != "overview");
    kinds.map(str::to_owned).collect()
}

/// The rows of the first table of class `class`, cell by cell.
fn rows(page: &str, class: &str) -> Vec<Vec<String>> {
    let document = document(page);
    let table = all(&document, "table").find(|table| table.attribute("class") == Some(class));
    let rows = table
        .unwrap()
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/1999/xhtml", "tr")));
    rows.map(|row| {
        let cells = row.children().filter(Node::is_element);
        cells
            .map(|cell| text(cell).replace('\u{a0}', " "))
            .collect()
    })
    .collect()
}

/// Two groups, three engines, two loads, three rounds, and experiments.
fn whole_campaign() -> CampaignRecord {
    let mut lines = vec![header()];
    for group in ["100-byte values", "mix SD"] {
        for round in 0..3 {
            for (position, engine) in ["windrow", "rocksdb", "leveldb"].iter().enumerate() {
                let speed = 1e5 / (position + 1) as f64 + f64::from(round) * 1e3;
                let reports =
                    ["fillrandom", "ycsb-a"].map(|load| whole_report(load, engine, speed));
                lines.push(child(engine, round, group, &reports));
            }
        }
    }
    with_experiments(&lines)
}

fn with_experiments(lines: &[Value]) -> CampaignRecord {
    CampaignRecord {
        experiments: experiments(),
        ..parse(lines)
    }
}

/// Checks the form of the page and of all plots.
fn check_form(campaign: &CampaignRecord) {
    let page = page(campaign);
    check_document(&page);
    let document = document(&page);
    assert_eq!(document.root_element().attribute("lang"), Some("en"));
    for heading in all(&document, "th") {
        assert!(heading.attribute("scope").is_some(), "{}", text(heading));
    }
    let plots = plots(campaign);
    let names: BTreeSet<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(names.len(), plots.len());
    assert_eq!(all(&document, "figure").count(), plots.len());
    for plot in &plots {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(plot.name.chars().all(is_plain), "{}", plot.name);
        check_document(&plot.svg);
    }
}

/// Checks that the markup is well-formed, self-contained, and readable without its pictures. // I2
fn check_document(markup: &str) {
    let document = document(markup);
    assert_eq!(all(&document, "script").count(), 0);
    let mut ids = BTreeSet::new();
    for node in document.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!attribute.name().starts_with("on"), "{attribute:?}");
            assert!(
                !value.contains("NaN") && !value.contains("inf "),
                "{attribute:?}"
            );
            match attribute.name() {
                "id" => assert!(ids.insert(value), "{value} exists twice"),
                "src" => panic!("{value} is another file"),
                _ => {}
            }
        }
    }
    for link in all(&document, "a") {
        let target = link
            .attribute("href")
            .and_then(|link| link.strip_prefix('#'));
        assert!(ids.contains(target.unwrap()), "{target:?}");
    }
    // The targets of the style sheets exist.
    for style in all(&document, "style") {
        let style = text(style);
        assert!(!style.contains("@import"));
        for (position, _) in style.match_indices("url(") {
            let target = style[position..].strip_prefix("url(#");
            let target = target.unwrap().split(')').next().unwrap();
            assert!(ids.contains(target), "{target}");
        }
    }
    for picture in all(&document, "svg") {
        if picture.attribute("aria-hidden").is_some() {
            continue;
        }
        assert_eq!(picture.attribute("role"), Some("img"));
        for label in picture.attribute("aria-labelledby").unwrap().split(' ') {
            assert!(ids.contains(label), "{label}");
        }
    }
}

#[test]
fn a_whole_campaign_has_all_its_figures() {
    let campaign = whole_campaign();
    check_form(&campaign);
    let page = page(&campaign);
    let of_load = [
        "throughput",
        "latency",
        "amplification",
        "levels",
        "series",
        "read",
        "update",
    ];
    let expected: Vec<&str> = ["figure"]
        .into_iter()
        .chain([of_load; 4].concat())
        .collect();
    assert_eq!(kinds(&page), expected);
    let document = document(&page);
    // Each figure has a caption, its command and its numbers.
    for figure in all(&document, "figure") {
        let has = |name| {
            figure
                .descendants()
                .any(|node| node.tag_name().name() == name)
        };
        assert!(["figcaption", "pre", "details", "td"].into_iter().all(has));
    }
    let names: Vec<String> = plots(&campaign).into_iter().map(|plot| plot.name).collect();
    assert!(
        names.contains(&"100-byte-values-fillrandom-throughput.svg".to_owned()),
        "{names:?}"
    );
    assert!(names.contains(&"mix-sd-ycsb-a-latency-update.svg".to_owned()));
    assert!(names.contains(&"mix-sd-overview.svg".to_owned()));
    assert!(names.contains(&"experiment-au-e1.svg".to_owned()));
    let text = text(document.root_element());
    assert!(text.contains("windrow-bench run fillrandom") && text.contains("Test processor"));
    assert!(text.contains("Version0.1.2"));
    // The page does not show the folder of the databases.
    assert!(!page.contains("/databases"));
    assert!(text.contains("cache=64 of leveldb, version=1.2.3"));
}

#[test]
fn the_summary_compares_medians() {
    let lines = [
        header(),
        fill("windrow", 0, 90e3),
        fill("rocksdb", 0, 50e3),
        fill("windrow", 1, 400e3),
        fill("windrow", 2, 100e3),
    ];
    let rows = rows(&page(&parse(&lines)), "summary");
    let expected = [
        "load",
        "engine",
        "rate",
        "range",
        "ratio",
        "ops/s",
        "written",
        "read",
        "read/op",
        "own written",
        "own read",
        "own read/op",
        "device reads/op",
        "device read/op",
        "device written/op",
        "device read",
        "space",
        "p99",
        "CPU/op",
        "memory",
    ];
    assert_eq!(rows[0], expected);
    let expected = [
        "fillrandom",
        "windrow",
        "100 k",
        "90.0 k to 400 k",
        NOTHING,
        "125 k",
        "4.40\u{d7}",
        "1.00\u{d7}",
        "250 B",
        "4.00\u{d7}",
        "2.00\u{d7}",
        "500 B",
        "1.50",
        "6.00 KiB",
        "512 B",
        "2.50\u{d7}",
        "1.25\u{d7}",
        "70.0 \u{b5}s",
        "14.0 \u{b5}s",
        "286 MiB",
    ];
    assert_eq!(rows[1], expected);
    assert_eq!(rows[2][..4], ["rocksdb", "50.0 k", NOTHING, "2.00\u{d7}"]);
    // The kernel's count is the same for all, and the columns of own counts are empty.
    assert_eq!(rows[2][5], rows[1][6]);
    assert_eq!(rows[2][8..11], [NOTHING; 3]);
}

#[test]
fn one_round_has_no_range() {
    let lines = [header(), fill("windrow", 0, 90e3)];
    let campaign = parse(&lines);
    check_form(&campaign);
    let page = page(&campaign);
    let rows = rows(&page, "summary");
    assert!(!rows[0].contains(&"range".to_owned()) && !rows[0].contains(&"ratio".to_owned()));
    assert!(!page.contains("class=\"spread\""));
    assert!(page.contains("in one round"));
    // A single engine has no comparison.
    assert!(
        !plots(&campaign)
            .iter()
            .any(|plot| plot.name.contains("overview"))
    );
}

#[test]
fn repeated_loads_have_numbers() {
    let report = || whole_report("readrandom", "windrow", 1e5);
    let lines = [
        header(),
        child("windrow", 0, "g", &[report(), report(), report()]),
    ];
    let rows = rows(&page(&parse(&lines)), "summary");
    let loads: Vec<&str> = rows.iter().skip(1).map(|row| row[0].as_str()).collect();
    assert_eq!(
        loads,
        ["readrandom", "readrandom, time 2", "readrandom, time 3"]
    );
}

#[test]
fn commands_that_differ_in_the_engine_become_a_loop() {
    let page = page(&whole_campaign());
    let shell_loop = "for engine in windrow rocksdb leveldb; do windrow-peers run --engine $engine \
                  fillrandom; done";
    assert!(page.contains(shell_loop));
}

#[test]
fn commands_with_quotes_stay_apart() {
    let run = |engine: &str| {
        let mut run = child(engine, 0, "g", &[whole_report("fillrandom", engine, 1e5)]);
        run["command"] = json!(format!(
            "windrow-peers run --engine {engine} --db 'a {engine} b'"
        ));
        run
    };
    let page = page(&parse(&[header(), run("windrow"), run("rocksdb")]));
    let shown = text(document(&page).root_element());
    assert!(shown.contains("--db 'a windrow b'") && !shown.contains("for engine in"));
}

#[test]
fn experiments_have_published_and_measured_figures() {
    let campaign = with_experiments(&[header()]);
    check_form(&campaign);
    let page = page(&campaign);
    assert_eq!(kinds(&page), ["figure"]);
    let rows = rows(&page, "texts");
    assert_eq!(rows[1], ["AU-E1", "Reads over c", "\u{2713} confirmed"]);
    assert_eq!(rows[2], ["PX-E3", "Mixes", "\u{2248} explained"]);
    assert_eq!(rows[3], ["LS-E2", "Segments", "\u{2717} differs"]);
    for shown in [
        "1.7 times faster",
        "1.9 times faster",
        "T = 2",
        "Large values gain most",
        "Old version",
        "windrow-bench run readrandom",
        "1,234",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn a_large_campaign_stays_small() {
    let mut report = whole_report("fillrandom", "windrow", 1e5);
    let point = |second: u32| {
        let rate = 1e5 + f64::from(second * 7919 % 20_011);
        let stall = if second % 50 < 5 { 0.5 } else { 0.0 };
        json!({ "seconds": second, "ops_per_second": rate, "stall_seconds": stall })
    };
    report["series"] = (1..=600).map(point).collect();
    let quantile =
        |position: i32| json!({ "quantile": 1.0 - 0.8_f64.powi(position), "us": position + 1 });
    report["latency_curve"] = (0..64).map(quantile).collect();
    let loads: Vec<Value> = (0..20)
        .map(|load| {
            let mut report = report.clone();
            report["name"] = json!(format!("load {load}"));
            report
        })
        .collect();
    let mut lines = vec![header()];
    lines.extend((0..7).map(|engine| child(&format!("engine-{engine}"), 0, "g", &loads)));
    let campaign = parse(&lines);
    assert!(page(&campaign).len() < 2_000_000);
}

#[test]
fn report_writes_the_page_and_the_plots() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let lines = [
        header(),
        child("w", 0, "g", &[whole_report("fillseq", "w", 1e5)]),
    ];
    std::fs::write(path("c.jsonl"), made_up::file(&lines)).unwrap();
    let args = ReportArgs {
        campaign: path("c.jsonl"),
        output: path("c.html"),
        plots: Some(path("plots")),
    };
    let written = report(&args).unwrap();
    assert_eq!(written.len(), 8);
    assert_eq!(written[0], path("c.html"));
    for file in written {
        check_document(&std::fs::read_to_string(file).unwrap());
    }
    // The command does not overwrite the campaign, by any name.
    let before = std::fs::read(path("c.jsonl")).unwrap();
    for output in [path("c.jsonl"), path("plots").join("../c.jsonl")] {
        let error = report(&ReportArgs {
            output,
            ..args.clone()
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(std::fs::read(path("c.jsonl")).unwrap(), before);
    }
    std::fs::write(path("c.jsonl"), "{}").unwrap();
    let output = path("none.html");
    let failed = report(&ReportArgs {
        output: output.clone(),
        ..args
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!output.exists());
}
