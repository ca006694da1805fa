//! The tree as a picture: the bytes of each level against its capacity, and the value files.
//!
//! Concurrency: none; no state.

use windrow::{KeyspaceOptions, KeyspaceStats, LevelStats, ValueFileStats};

use crate::tables::plural;
use crate::text::{human_bytes, human_count};

/// Cells of the longest and the shortest bar.
const CELLS_MAX: usize = 40;
const CELLS_MIN: usize = 10;

const FULL: char = '\u{2588}';
const FREE: char = '\u{2591}';
const OVER: char = '\u{25b6}';

/// One keyspace: a line per level, and one each for its transient logs and its value logs if it has any.
/// Bars grow with the logarithm of the capacity, so that the shape of the tree shows; the filled part is
/// the fraction of the capacity in use.
pub(crate) fn tree(keyspace: &KeyspaceStats) -> String {
    let levels = &keyspace.levels;
    let files: usize = levels.iter().map(|level| level.files).sum();
    let bytes: u64 = levels.iter().map(|level| level.bytes).sum();
    let title = format!(
        "keyspace {}: {} in {}, {} ({}) in memtables",
        keyspace.name,
        human_bytes(bytes),
        plural(files as u64, "file"),
        plural(keyspace.memtable_entries, "entry"),
        human_bytes(keyspace.memtable_bytes),
    );
    let capacities = || {
        levels
            .iter()
            .map(|level| level.capacity)
            .filter(|&bytes| bytes > 0)
    };
    let largest = capacities().max().unwrap_or(1);
    let smallest = capacities().min().unwrap_or(1);
    let mut lines = vec![title, format!("  {}", options(&keyspace.options))];
    lines.extend(levels.iter().map(|level| {
        let cells = match level.capacity {
            0 => CELLS_MIN,
            capacity => cells(capacity, smallest, largest),
        };
        format!(
            "  level {:<2} {:<width$} {}",
            level.level,
            bar(level, cells),
            caption(level),
            width = CELLS_MAX + 1,
        )
    }));
    for (name, files) in [
        ("transient logs", &keyspace.transient_logs),
        ("value logs", &keyspace.value_logs),
    ] {
        if files.files > 0 {
            lines.push(format!("  {name:<14} {}", values(files)));
        }
    }
    lines.join("\n")
}

/// What value files hold.
fn values(files: &ValueFileStats) -> String {
    let unflushed = match files.unflushed_bytes {
        0 => String::new(),
        bytes => format!(", {} unflushed", human_bytes(bytes)),
    };
    format!(
        "{} of values in {}, {} live, {} garbage{unflushed}",
        human_bytes(files.bytes),
        plural(files.files as u64, "file"),
        human_bytes(files.live_bytes),
        human_bytes(files.garbage_bytes),
    )
}

/// Options on one line.
pub(crate) fn options(options: &KeyspaceOptions) -> String {
    let fields = options.fields().into_iter();
    let shown: Vec<_> = fields
        .map(|(name, text)| format!("{name} {text}"))
        .collect();
    shown.join(", ")
}

/// What the bar is drawn against; a level without a capacity counts as full.
fn capacity(level: &LevelStats) -> u64 {
    let capacity = if level.capacity == 0 {
        level.bytes
    } else {
        level.capacity
    };
    capacity.max(1)
}

fn cells(capacity: u64, smallest: u64, largest: u64) -> usize {
    let span = (largest as f64 / smallest as f64).ln();
    if span <= 0.0 {
        return CELLS_MAX;
    }
    let fraction = (capacity as f64 / smallest as f64).ln() / span;
    CELLS_MIN + scaled(fraction, CELLS_MAX - CELLS_MIN)
}

fn bar(level: &LevelStats, cells: usize) -> String {
    let fraction = level.bytes as f64 / capacity(level) as f64;
    let mut filled = scaled(fraction.min(1.0), cells);
    if level.bytes > 0 {
        filled = filled.max(1);
    }
    let mut bar: String = std::iter::repeat_n(FULL, filled)
        .chain(std::iter::repeat_n(FREE, cells - filled))
        .collect();
    if fraction > 1.0 {
        bar.push(OVER);
    }
    bar
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction from 0 to 1 of a few cells"
)]
fn scaled(fraction: f64, cells: usize) -> usize {
    (fraction.clamp(0.0, 1.0) * cells as f64).round() as usize
}

fn caption(level: &LevelStats) -> String {
    let fraction = match level.capacity {
        0 => String::new(),
        capacity => format!(
            " of {:>9} {:>4.0} %",
            human_bytes(capacity),
            100.0 * level.bytes as f64 / capacity as f64
        ),
    };
    let counted = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {}", plural(count, what)),
    };
    let tombstones = counted(
        level.tombstones.saturating_sub(level.range_tombstones),
        "tombstone",
    );
    let ranges = counted(level.range_tombstones, "range tombstone");
    let operands = counted(level.operands, "operand");
    let expiring = match level.expiring_entries {
        0 => String::new(),
        count => format!(
            ", {count} of {} expiring",
            human_bytes(level.expiring_bytes),
            count = human_count(count)
        ),
    };
    format!(
        "{:>9}{fraction}  {}, {}{tombstones}{ranges}{operands}{expiring}",
        human_bytes(level.bytes),
        plural(level.files as u64, "file"),
        plural(level.entries, "entry"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_files_have_a_line_if_there_are_any() {
        let mut keyspace = KeyspaceStats::default();
        keyspace.levels = vec![LevelStats::default()];
        assert!(!tree(&keyspace).contains("of values in"));
        keyspace.transient_logs.files = 3;
        keyspace.transient_logs.bytes = 3 << 20;
        keyspace.transient_logs.live_bytes = 1 << 20;
        keyspace.transient_logs.garbage_bytes = 2 << 20;
        let last =
            "\n  transient logs 3.00 MiB of values in 3 files, 1.00 MiB live, 2.00 MiB garbage";
        assert!(tree(&keyspace).ends_with(last), "{}", tree(&keyspace));
        keyspace.value_logs.files = 1;
        keyspace.value_logs.bytes = 2 << 20;
        let last =
            format!("{last}\n  value logs     2.00 MiB of values in 1 file, 0 B live, 0 B garbage");
        assert!(tree(&keyspace).ends_with(&last), "{}", tree(&keyspace));
    }

    #[test]
    fn bars_stay_within_bounds() {
        for capacity in [1, 7, 1 << 20, u64::MAX] {
            for (smallest, largest) in [(1, 1), (5, 1 << 30), (1 << 20, u64::MAX)] {
                let cells = cells(capacity, smallest, largest);
                assert!((CELLS_MIN..=CELLS_MAX).contains(&cells));
                for bytes in [0, 1, capacity / 2, capacity, u64::MAX] {
                    let mut level = LevelStats::default();
                    level.bytes = bytes;
                    level.capacity = capacity;
                    let bar = bar(&level, cells);
                    let over = usize::from(bytes > capacity);
                    assert_eq!(bar.chars().count(), cells + over);
                    assert_eq!(bar.contains(FULL), bytes > 0);
                }
            }
        }
    }
}
