//! Pages of files with missing fields, hostile text, broken lines, and extreme numbers.

use serde_json::{Value, json};
use windrow::ErrorKind;

use super::made_up::{child, header, parse, whole_report};
use super::{CampaignRecord, check_form, document, kinds, page, plots, text, with_experiments};

// I1
#[test]
fn text_of_the_file_is_only_text() {
    let name = "<script>alert(\"1\")</script>";
    let group = "a & b ]]> 'c'";
    let mut report = whole_report("load <b>", name, 1e5);
    let curve = json!([{ "quantile": 0.5, "us": 3.0 }]);
    report["operations"] = json!([
        { "operation": "<i>", "ops": 1, "latency_curve": curve },
        { "operation": "<I>", "ops": 1, "latency_curve": curve },
        { "operation": "\u{1}\u{7f}\u{fffe}", "ops": 1, "latency_curve": curve },
    ]);
    let mut header = header();
    header["campaign"]["command"] = json!("run <x> && \"y\"");
    header["campaign"]["machine"]["processor"] = json!("</dd><img src=x>");
    let mut campaign = with_experiments(&[header, child(name, 0, group, &[report])]);
    campaign.experiments[0].title = "</style><script>".to_owned();
    check_form(&campaign);
    let page = page(&campaign);
    assert!(!page.contains("<script") && !page.contains("<img"));
    let document = document(&page);
    let whole = text(document.root_element());
    for shown in [
        name,
        group,
        "load <b>",
        "run <x> && \"y\"",
        "</dd><img src=x>",
        "<i>",
    ] {
        assert!(whole.contains(shown), "{shown}");
    }
}

#[test]
fn missing_data_leaves_out_its_figure() {
    let curve = json!([{ "quantile": 0.5, "us": 3.0 }, { "quantile": 1.0, "us": null }]);
    let levels = json!([{ "level": 0, "bytes": 0, "capacity": 5 }]);
    let cases: [(Value, &[&str]); 11] = [
        (json!({}), &[]),
        (json!({ "name": "x" }), &[]),
        (
            json!({ "name": "x", "ops_per_second": null, "levels": null, "series": null }),
            &[],
        ),
        (json!({ "name": "x", "ops_per_second": 0 }), &[]),
        (
            json!({ "name": "x", "series": [{ "seconds": 1, "ops_per_second": 0 }] }),
            &[],
        ),
        (json!({ "name": "x", "ops_per_second": 5 }), &["throughput"]),
        (json!({ "name": "x", "latency_curve": curve }), &["latency"]),
        (
            json!({ "name": "x", "space_amplification": 1.5 }),
            &["amplification"],
        ),
        (json!({ "name": "x", "levels": levels }), &[]),
        (
            json!({ "name": "x", "levels": [{ "level": 0, "bytes": 5 }] }),
            &["levels"],
        ),
        (
            json!({ "name": "x", "series": [{ "seconds": 1, "ops_per_second": 2 }] }),
            &["series"],
        ),
    ];
    for (report, expected) in cases {
        let campaign = parse(&[json!({ "campaign": {} }), json!({ "reports": [report] })]);
        check_form(&campaign);
        assert_eq!(kinds(&page(&campaign)), expected, "{report}");
    }
    // A run without fields, and an unknown field.
    let campaign = parse(&[json!({ "campaign": {}, "more": 1 }), json!({ "more": 1 })]);
    check_form(&campaign);
}

#[test]
fn an_empty_campaign_has_a_page() {
    for campaign in [CampaignRecord::default(), parse(&[header()])] {
        check_form(&campaign);
        assert!(page(&campaign).contains("This campaign has nothing to show yet."));
        assert_eq!(plots(&campaign), []);
    }
}

#[test]
fn the_error_names_an_invalid_line() {
    let first = r#"{"campaign": {}}"#;
    let parse = |file: &[u8]| CampaignRecord::parse("evening.jsonl", file);
    let cases = [
        (
            format!("{first}\n{{\"reports\": []}}\n{{\"reports\": [{{\"na\n"),
            "line 3",
        ),
        (format!("{first}\n\n[]\n"), "line 3"),
        (
            format!("{first}\n{{\"reports\": [{{\"ops_per_second\": \"many\"}}]}}\n"),
            "line 2",
        ),
        (
            format!("{first}\n{{\"reports\": [{{\"seconds\": 1e999}}]}}\n"),
            "line 2",
        ),
    ];
    for (file, line) in cases {
        let error = parse(file.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let message = error.to_string();
        assert!(
            message.contains(line) && message.contains("evening.jsonl"),
            "{message}"
        );
    }
    for ends in [
        &b"\n\n"[..],
        b"\n{\"reports\": [{\"na",
        b"\n{\"label\": \"\xe2",
    ] {
        let record = parse(&[first.as_bytes(), ends].concat()).unwrap();
        assert!(record.runs.is_empty());
    }
    // A file without the header of a campaign is another file, not a damaged one.
    for file in [
        &b""[..],
        b"not JSON",
        b"# Notes\n",
        b"\xff\xfe",
        br#"{"label": "a run comes first"}"#,
    ] {
        let error = parse(file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let message = error.to_string();
        assert!(
            message.contains("evening.jsonl is not the file of a campaign"),
            "{message}"
        );
    }
}

// I4
#[test]
fn any_number_can_be_drawn() {
    for value in [
        0.0,
        -1.0,
        1e-300,
        1e300,
        f64::MAX,
        18_446_744_073_709_551_615.0,
    ] {
        let mut report = whole_report("fillrandom", "windrow", value);
        for field in [
            "ops",
            "seconds",
            "write_amplification",
            "space_amplification",
            "read_bytes",
            "process_read_bytes",
        ] {
            report[field] = json!(value);
        }
        report["user_bytes"] = json!(f64::MIN_POSITIVE);
        report["latency_curve"] =
            json!([{ "quantile": 0.0, "us": 1 }, { "quantile": value, "us": value }]);
        report["levels"] = json!([{ "level": 0, "bytes": value, "capacity": value }]);
        report["series"] = json!([
            { "seconds": 1, "ops_per_second": value, "stall_seconds": value },
            { "seconds": value, "ops_per_second": 1, "settling": true },
        ]);
        let other = whole_report("fillrandom", "rocksdb", 1e5);
        let mut campaign = with_experiments(&[
            header(),
            child("windrow", 0, "g", &[report.clone(), report]),
            child("rocksdb", 0, "g", &[other]),
        ]);
        for value in [value, f64::NAN, f64::INFINITY] {
            let plot = campaign.experiments[0].plot.as_mut().unwrap();
            plot.series[0].points = vec![[value, value], [1.0, -value], [f64::NAN, 2.0]];
            check_form(&campaign);
        }
    }
}
