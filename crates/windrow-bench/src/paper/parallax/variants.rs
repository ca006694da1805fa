//! Variants of hybrid placement: PX-E5 to PX-E8.

use windrow::Result;

use super::{Named, Placement, Scale, compared, efficiency, moved, updated, variant_rows};
use crate::Report;
use crate::paper::experiment::Check;
use crate::paper::figures::{Figures, all_below, list, pair_ratios};
use crate::paper::findings::Findings;
use crate::paper::run_spec::Results;

pub(super) const CLASSES: [Named; 3] = [
    ("three classes", Placement::Hybrid),
    ("mediums as smalls", Placement::MediumsAsSmalls),
    ("mediums as larges", Placement::MediumsAsLarges),
];
pub(super) const LAST: [Named; 2] = [
    ("last level", Placement::Hybrid),
    ("the one before it", Placement::BeforeLast),
];
pub(super) const SORTED: [Named; 2] = [
    ("sorted", Placement::Hybrid),
    ("as written", Placement::Unsorted),
];
pub(super) const NEVER: [Named; 2] = [
    ("in the last level", Placement::Hybrid),
    ("never in place", Placement::Never),
];

pub(super) fn judge_classes(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let (table, reports) = compared(results, variant_rows(scale, &CLASSES, "ycsb-a"))?;
    let over = |figure: fn(&Report) -> f64, place: usize| {
        let classes = reports.chunks(3);
        classes.map(move |three| figure(&three[place]) / figure(&three[0]))
    };
    let speeds = |place: usize| {
        format!(
            "{} times slower, {} times the processor time",
            list(over(|report| 1.0 / report.kops(), place)),
            list(over(efficiency, place))
        )
    };
    let checks = vec![
        Check::new(
            "mediums as smalls move more",
            "up to 2.43 times; 1.23 times slower, 1.32 times the processor time",
            format!("M, MD: {}; {}", list(over(moved, 1)), speeds(1)),
            over(moved, 1).all(|ratio| ratio > 1.0),
        ),
        Check::new(
            "mediums as larges move more",
            "up to 2 times; 1.11 times slower, 1.41 times the processor time",
            format!(
                "M, MD: {}; {}; space {}",
                list(over(moved, 2)),
                speeds(2),
                list(over(Figures::space, 2))
            ),
            over(moved, 2).all(|ratio| ratio > 1.0),
        )
        .or_since(
            "garbage collection looks no key up, and `max_space_amp` gives it space, so it moves fewer bytes than \
             compactions of values in place, for more space and slower scans (PX-E2)",
            over(Figures::space, 2).all(|ratio| ratio > 1.05)
                && over(moved, 2).all(|ratio| ratio > 0.4),
        ),
    ];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_last(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let rows = LAST.map(|(name, values)| {
        (
            vec![name.to_owned()],
            updated(scale, "M", values),
            "ycsb-load",
        )
    });
    let (table, reports) = compared(results, rows)?;
    let both = |figure: fn(&Report) -> f64| [figure(&reports[0]), figure(&reports[1])];
    let (moved, space) = (both(moved), both(Figures::space));
    let checks = vec![
        Check::new(
            "values that come in place later move fewer bytes",
            "6.8 and 9.6; 1579 and 1339 kops/s",
            format!("{}; {} kops/s", list(moved), list(both(Figures::kops))),
            moved[0] < moved[1],
        ),
        Check::new(
            "and take more space",
            "25 % and 6 % of the log",
            list(space),
            space[0] > space[1] * 1.01,
        )
        .or_since(
            "1/T of the tree bounds the bytes of transient logs, garbage included, in both cases; which of them has \
             more at the end depends on the time of the last compactions",
            space.iter().all(|space| (1.02..1.3).contains(space)),
        ),
    ];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_sorted(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let (table, reports) = compared(results, variant_rows(scale, &SORTED, "ycsb-load"))?;
    let moved = pair_ratios(&reports, moved);
    let speeds = pair_ratios(&reports, |report| 1.0 / report.kops());
    let checks = vec![Check::new(
        "sorting saves most of the bytes that compactions move",
        "M 6.8 instead of 25.8 (3.8 times), MD 2.17 times; throughput 2.63 and 1.92 times",
        format!("M, MD: {}; throughput {}", list(&moved), list(&speeds)),
        moved.iter().all(|&ratio| ratio > 2.0),
    )];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_never(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let (table, reports) = compared(results, variant_rows(scale, &NEVER, "ycsb-load"))?;
    let moved = pair_ratios(&reports, moved);
    let checks = vec![Check::new(
        "it moves the fewest bytes",
        "the bound",
        format!("never over in the last level, M, MD: {}", list(&moved)),
        all_below(&moved, 1.0),
    )];
    Ok(Findings::new(checks, table))
}
