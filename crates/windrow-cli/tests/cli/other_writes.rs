//! Merges, range deletes and values that expire in `simulate` and `advise`.

use serde_json::Value;

use crate::common::{SMALL, objects, run};

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn object(arguments: &[&str]) -> Value {
    objects(arguments).pop().unwrap()
}

/// Operands are part of the levels above the last one, and less is written than by updates.
#[test]
fn merges_are_counted() {
    let load = ["simulate", "--bytes", "8M", "--value-size", "32"];
    let load = [&load[..], &["--updates", "2"], &SMALL].concat();
    let updates = &objects(&load)[0];
    let merges = ["--merges", "0.75", "--operand-size", "4"];
    let merges = &objects(&[&load[..], &merges].concat())[0];
    assert_eq!(merges["merges"].as_f64(), Some(0.75));
    assert_eq!(whole(&merges["operand_bytes"]), 4);
    let operands = |report: &Value| {
        let levels = report["tree"].as_array().unwrap().iter();
        levels.map(|it| whole(&it["operands"])).sum::<u64>()
    };
    assert_eq!(operands(updates), 0);
    assert!(operands(merges) > 0);
    let written = |report: &Value| whole(&report["io_stats"]["wal"]);
    assert!(written(merges) < written(updates));
    assert_eq!(
        whole(&updates["space"]["live_bytes"]),
        whole(&merges["space"]["live_bytes"])
    );
}

/// Both leave fewer live bytes than without them, and files hold range tombstones or what has expired.
#[test]
fn range_deletes_and_expiring_values_are_counted() {
    let load = ["simulate", "--bytes", "8M", "--updates", "1"];
    let load = [&load[..], &SMALL].concat();
    let plain = &objects(&load)[0];
    let ranges = [
        "--range-deletes-per-write",
        "0.001",
        "--range-delete-part",
        "0.002",
    ];
    let life = ["--expiring", "1", "--time-to-live", "3200kB"];
    let sum = |report: &Value, name: &str| {
        let levels = report["tree"].as_array().unwrap().iter();
        levels.map(|it| whole(&it[name])).sum::<u64>()
    };
    let live = |report: &Value| whole(&report["space"]["live_bytes"]);
    for (with, name, field, says) in [
        (
            &ranges[..],
            "range_tombstones",
            "range_delete_part",
            "range tombstones in them",
        ),
        (&life[..], "expired_bytes", "expiring", "expired in them"),
    ] {
        let arguments = [&load[..], with].concat();
        let report = &objects(&arguments)[0];
        assert!(live(report) < live(plain) * 9 / 10, "{name}");
        assert!(sum(report, name) > 0 && sum(plain, name) == 0, "{name}");
        assert!(report[field].as_f64().unwrap() > 0.0);
        let output = run(&arguments);
        let text = str::from_utf8(&output.stdout).unwrap();
        assert!(text.contains(says), "{text}");
    }
    let report = &objects(&[&load[..], &life].concat())[0];
    assert_eq!(whole(&report["time_to_live"]), 3_200_000 / 116);
}

/// Merges, range deletes and expiry are part of the demand, and change what operations cost.
#[test]
fn merges_range_deletes_and_expiry_have_costs() {
    let load = [
        "advise",
        "--keys",
        "60000",
        "--value-size",
        "40",
        "--updates",
        "50",
    ];
    let sizes = [
        "--gets",
        "50",
        "--memtable-bytes",
        "64K",
        "--file-bytes",
        "16K",
    ];
    let fixed = [
        "--base-bytes",
        "256K",
        "--size-ratio",
        "5",
        "--scaling",
        "0.8",
    ];
    let load = [&load[..], &sizes, &fixed].concat();
    let merges = ["--merges", "20", "--operand-size", "4"];
    let ranges = ["--range-deletes", "0.1", "--range-delete-part", "0.0002"];
    let life = ["--expiring", "0.5", "--time-to-live", "10MB"];
    let plain = object(&load);
    let write = |report: &Value| number(&report["default"]["costs"]["write"]);
    let [merged, ranged, expired] =
        [&merges[..], &ranges, &life].map(|more| object(&[&load[..], more].concat()));
    for other in [&merged, &ranged, &expired] {
        assert!((write(&plain) / write(other) - 1.0).abs() > 1e-3);
    }
    let demand = &merged["demand"];
    assert!((number(&demand["fractions"]["merges"]) - 20.0 / 120.0).abs() < 1e-9);
    assert!((number(&demand["operand_bytes"]) - 4.0).abs() < 1e-9);
    assert!(write(&merged) < write(&plain));
    let demand = &ranged["demand"];
    assert!((number(&demand["fractions"]["range_deletes"]) - 0.1 / 100.1).abs() < 1e-9);
    assert!((number(&demand["range_delete_keys"]) - 12.0).abs() < 1e-9);
    let demand = &expired["demand"];
    assert!((number(&demand["expiring"]) - 0.5).abs() < 1e-9);
    assert!((number(&demand["writes_to_live_per_key"]) - 2.976).abs() < 0.01);
    let both = [&load[..], &merges, &life].concat();
    let separated = [
        "advise",
        "--keys",
        "50000",
        "--value-size",
        "500",
        "--merges",
        "1",
    ];
    for (arguments, why) in [
        (&both[..], "not both"),
        (&separated, "values in place alone"),
    ] {
        let output = run(arguments);
        let problem = str::from_utf8(&output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{problem}");
        assert!(problem.contains(why), "{problem}");
    }
}
