//! Made-up statistics: the load of each, and what is refused.

use serde_json::json;

use super::*;

/// A keyspace with these levels: entries, tombstones and gets that were answered of each.
fn keyspace(levels: &[[u64; 3]]) -> Value {
    let level = |&[entries, tombstones, answered]: &[u64; 3]| {
        json!({
            "entries": entries, "tombstones": tombstones, "bytes": entries * 120, "gets_answered": answered,
        })
    };
    json!({
        "name": "main",
        "options": KeyspaceOptions::default(),
        "memtable_bytes": 0,
        "gets_answered_by_memtables": 0,
        "transient_logs": {"live_bytes": 0},
        "value_logs": {"live_bytes": 0},
        "levels": levels.iter().map(level).collect::<Vec<_>>(),
    })
}

/// Statistics of one keyspace behind so many writes, of which so many were counted.
fn stats(sequence: u64, writes: u64, levels: &[[u64; 3]]) -> Value {
    json!({
        "sequence": sequence, "user_writes": writes, "user_bytes": writes * 116, "gets": 0, "seeks": 0,
        "keyspaces": [keyspace(levels)],
    })
}

fn reported(lines: &[Value], keyspace: Option<&str>) -> std::result::Result<Known, Fault> {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let all = super::lines(&text.join("\n"))?;
    let newest = keyspaces(all.last().unwrap())?;
    let chosen = chosen(newest, keyspace)?;
    let asked = Asked::of(&chosen, chosen.len() == newest.len())?;
    let all_lines = all
        .iter()
        .map(Line::of)
        .collect::<std::result::Result<_, _>>()?;
    Ok(Reported { all_lines, asked }.known())
}

/// Inserts, updates, deletes.
fn writes(known: &Known) -> [f64; 3] {
    let weights = known.weights.unwrap();
    [weights.inserts, weights.updates, weights.deletes].map(|it| it / weights.writes())
}

#[track_caller]
fn assert_near(own: [f64; 3], other: [f64; 3]) {
    let mut pairs = own.iter().zip(other);
    assert!(
        pairs.all(|(own, other)| (own - other).abs() < 1e-6),
        "{own:?} {other:?}"
    );
}

/// The command `stats` opens the store, so nothing was counted since the open.
#[test]
fn the_size_of_entries_is_that_of_all_writes_ever() {
    let mut fresh = stats(1000, 0, &[[0, 0, 0], [1000, 0, 0]]);
    let on_disk = reported(&[fresh.clone()], None).unwrap();
    fresh["lifetime"] = json!({"user_writes": 1000, "user_bytes": 300_000});
    let known = reported(&[fresh.clone()], None).unwrap();
    let mean = |known: &Known| known.entry_bytes.unwrap().mean.to_string();
    assert_eq!((mean(&on_disk), mean(&known)), ("120".into(), "300".into()));
    fresh["lifetime"] = json!({});
    let fault = reported(&[fresh], None).unwrap_err();
    assert!(fault.contains("user_writes"), "{fault}");
}

#[test]
fn between_two_lines_counts_what_was_done_between_them() {
    const MANY: u64 = 1_000_000_000;
    // All was loaded, the store was opened again, and then come updates, a part of them still above the last level.
    let first = stats(MANY, 0, &[[0, 0, 0], [MANY, 0, 0]]);
    let last = stats(
        MANY + 1_000_000,
        1_000_000,
        &[[200_000, 0, 0], [MANY, 0, 0]],
    );
    let known = reported(&[first, last.clone()], None).unwrap();
    assert_near(writes(&known), [0.0, 1.0, 0.0]);
    assert_eq!(known.weights_note, None);
    assert!((known.weights.unwrap().writes() - 1e6).abs() < 1e-3);
    // One line is not enough, and a note says so.
    let known = reported(&[last], None).unwrap();
    assert!(writes(&known)[0] > 0.99);
    assert!(known.weights_note.unwrap().contains("all writes ever"));
    // Unless the store was opened but once.
    let known = reported(&[stats(1000, 1000, &[[0, 0, 0], [500, 0, 0]])], None).unwrap();
    assert_eq!(known.weights_note, None);
    assert_near(writes(&known), [0.5, 0.5, 0.0]);
}

#[test]
fn of_many_lines_all_count_though_the_store_was_opened_again() {
    let mut lines = vec![
        stats(10_000, 10_000, &[[0, 0, 0], [10_000, 0, 0]]),
        stats(14_000, 14_000, &[[0, 0, 0], [12_000, 0, 0]]),
        stats(16_000, 1_000, &[[0, 0, 0], [13_000, 0, 0]]),
        stats(17_000, 2_000, &[[0, 0, 0], [13_500, 0, 0]]),
    ];
    for (line, [gets, answered]) in lines
        .iter_mut()
        .zip([[900, 0], [1000, 50], [10, 5], [30, 15]])
    {
        line["gets"] = json!(gets);
        line["keyspaces"][0]["levels"][1]["gets_answered"] = json!(answered);
    }
    let known = reported(&lines, None).unwrap();
    let weights = known.weights.unwrap();
    assert!((weights.writes() - 6000.0).abs() < 1e-6);
    assert_near(writes(&known), [0.5, 0.5, 0.0]);
    assert!((weights.gets - 65.0).abs() < 1e-9 && (weights.missing - 65.0).abs() < 1e-9);
}

#[test]
fn what_is_in_upper_levels_and_in_memtables_is_not_taken_for_new_keys() {
    // Half of the writes are of new keys, wherever they are.
    let mut all = stats(
        50_000,
        50_000,
        &[[2000, 0, 0], [8000, 0, 0], [20_000, 0, 0]],
    );
    assert_near(
        writes(&reported(std::slice::from_ref(&all), None).unwrap()),
        [0.5, 0.5, 0.0],
    );
    all["sequence"] = json!(60_000);
    all["user_writes"] = json!(60_000);
    all["user_bytes"] = json!(60_000 * 116);
    all["keyspaces"][0]["memtable_bytes"] = json!(10_000 * (116 + 40));
    let known = reported(&[all], None).unwrap();
    assert_near(writes(&known), [0.5, 0.5, 0.0]);
    assert_eq!(known.keys, Some(30_000));
    // A young store has nothing but level 0.
    let young = reported(&[stats(1000, 1000, &[[1000, 0, 0]])], None).unwrap();
    assert_eq!(young.keys, Some(1000));
}

#[test]
fn deletes_are_estimated_from_the_levels_above_the_last_and_have_no_value() {
    let mut all = stats(50_000, 40_000, &[[10_000, 1000, 0], [20_000, 0, 0]]);
    // Keys of 16 bytes, and values of 100 beside nine of ten.
    all["user_bytes"] = json!(40_000 * 16 + 36_000 * 100);
    let known = reported(&[all], None).unwrap();
    assert_near(writes(&known), [0.6, 0.3, 0.1]);
    let entry = known.entry_bytes.unwrap();
    assert!((entry.mean - 106.0).abs() < 1e-9 && (entry.deletes - 0.1).abs() < 1e-9);
    // A store that loses keys has no inserts.
    let first = stats(50_000, 0, &[[0, 0, 0], [50_000, 0, 0]]);
    let last = stats(61_000, 11_000, &[[1000, 400, 0], [46_000, 0, 0]]);
    let known = reported(&[first.clone(), last], None).unwrap();
    assert_near(writes(&known), [0.0, 0.6, 0.4]);
    // Without tombstones a last level that shrinks has lost what was superseded.
    let last = stats(61_000, 11_000, &[[1000, 0, 0], [46_000, 0, 0]]);
    let known = reported(&[first, last], None).unwrap();
    assert_near(writes(&known), [0.0, 1.0, 0.0]);
}

// I1
#[test]
fn missing_counters_are_refused_by_name() {
    let whole = stats(1000, 1000, &[[0, 0, 0], [1000, 0, 0]]);
    reported(std::slice::from_ref(&whole), None).unwrap();
    for place in [
        "/sequence",
        "/user_writes",
        "/user_bytes",
        "/gets",
        "/seeks",
        "/keyspaces/0/options",
        "/keyspaces/0/memtable_bytes",
        "/keyspaces/0/gets_answered_by_memtables",
        "/keyspaces/0/transient_logs/live_bytes",
        "/keyspaces/0/value_logs/live_bytes",
        "/keyspaces/0/levels",
        "/keyspaces/0/levels/1/entries",
        "/keyspaces/0/levels/1/tombstones",
        "/keyspaces/0/levels/1/bytes",
        "/keyspaces/0/levels/1/gets_answered",
    ] {
        let name = place.rsplit('/').next().unwrap();
        for other in [Value::Null, json!(1.5), json!("7"), json!(u64::MAX)] {
            let mut broken = whole.clone();
            *broken.pointer_mut(place).unwrap() = other;
            let fault = reported(&[broken.clone()], None).unwrap_err();
            assert!(fault.contains(name), "{place}: {fault}");
            // An earlier line must be as whole.
            if !place.ends_with("options") {
                reported(&[broken, whole.clone()], None).unwrap_err();
            }
        }
    }
    let mut none = whole.clone();
    none["keyspaces"] = json!([]);
    assert_eq!(reported(&[none], None).unwrap_err(), "has no keyspaces");
    let fault = reported(&[whole], Some("other")).unwrap_err();
    assert!(fault.contains("no such keyspace, but main"), "{fault}");
}

#[test]
fn the_report_says_that_sizes_of_compressed_data_are_those_on_disk() {
    let mut all = stats(1000, 1000, &[[0, 0, 0], [1000, 0, 0]]);
    all["keyspaces"][0]["options"]["compression"] = json!("lz4");
    assert_eq!(
        reported(std::slice::from_ref(&all), None)
            .unwrap()
            .entry_note,
        None
    );
    let mut other = keyspace(&[[0, 0, 0], [10, 0, 0]]);
    other["name"] = json!("other");
    all["keyspaces"].as_array_mut().unwrap().push(other);
    let main = reported(std::slice::from_ref(&all), Some("main")).unwrap();
    assert!(main.entry_note.unwrap().contains("on disk"));
    assert_eq!(reported(&[all], Some("other")).unwrap().entry_note, None);
}

#[test]
fn options_of_statistics_read_back() {
    let mut options = KeyspaceOptions::preset(windrow::Preset::Lsma);
    options.large_from = 4096;
    options.medium_from = 4096;
    let mut large = KeyspaceOptions::preset(windrow::Preset::Parallax);
    large.base_bytes = u64::MAX;
    large.medium_in_place = windrow::MediumInPlace::LevelBeforeLast;
    large.default_ttl = Some(std::time::Duration::from_millis(1_500));
    for options in [
        options,
        large,
        KeyspaceOptions::preset(windrow::Preset::Leveling),
    ] {
        let json = serde_json::to_value(&options).unwrap();
        assert_eq!(recorded_options(&json).unwrap(), options);
    }
    let none = recorded_options(&json!({})).unwrap();
    assert_eq!(none, KeyspaceOptions::default());
}
