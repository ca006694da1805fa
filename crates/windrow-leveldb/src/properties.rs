//! The properties that LevelDB documents, with Windrow's numbers.

use std::iter;

use windrow::limits::LEVELS_MAX;
use windrow::{LevelStats, Stats};

use crate::database::Database;

/// The beginning of each name.
const PREFIX: &str = "leveldb.";

/// The value of the property `name`, if there is one of this name.
pub(crate) fn value(database: &Database, name: &str) -> Option<String> {
    let name = name.strip_prefix(PREFIX)?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        return files_at_level(database, level);
    }
    match name {
        "stats" => {
            let (stats, position) = database.stats();
            Some(table(levels(&stats, position)))
        }
        "approximate-memory-usage" => Some(database.stats().0.memory.total.to_string()),
        _ => None,
    }
}

fn levels(stats: &Stats, position: Option<usize>) -> &[LevelStats] {
    position.map_or(&[], |at| &stats.keyspaces[at].levels)
}

fn files_at_level(database: &Database, level: &str) -> Option<String> {
    let is_number = !level.is_empty() && level.bytes().all(|digit| digit.is_ascii_digit());
    let level: usize = is_number.then(|| level.parse().ok()).flatten()?;
    if level > LEVELS_MAX {
        return None;
    }
    let (stats, position) = database.stats();
    let found = levels(&stats, position)
        .iter()
        .find(|found| found.level == level);
    Some(found.map_or(0, |found| found.files).to_string())
}

/// The table of LevelDB's property `stats`. Windrow does not measure the time of compactions by level.
fn table(levels: &[LevelStats]) -> String {
    let head = "                               Compactions\n\
                Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
                --------------------------------------------------\n";
    let is_used = |level: &&LevelStats| level.files > 0 || level.io_stats.written() > 0;
    let lines = levels.iter().filter(is_used).map(line);
    iter::once(head.to_owned()).chain(lines).collect()
}

fn line(level: &LevelStats) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "{:3} {:8} {:8.0} {:9.0} {:8.0} {:9.0}\n",
        level.level,
        level.files,
        mib(level.bytes),
        0.0,
        mib(level.io_stats.read),
        mib(level.io_stats.written()),
    )
}
