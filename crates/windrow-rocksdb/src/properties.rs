//! The properties that RocksDB documents, with Windrow's numbers.

use windrow::limits::LEVELS_MAX;
use windrow::{KeyspaceStats, LevelStats, Stats};

use crate::database::Database;
use crate::families::Family;

/// The beginning of each name.
const PREFIX: &str = "rocksdb.";

/// The value of the property `name` of a column family, if there is one of this name.
pub(crate) fn value(database: &Database, family: &Family, name: &str) -> Option<String> {
    if name.strip_prefix(PREFIX)? == "stats" {
        let stats = database.shared.db().stats();
        return Some(table(of_family(&stats, family)?));
    }
    number(database, family, name).map(|number| number.to_string())
}

/// The value of the property `name` that is a number.
pub(crate) fn number(database: &Database, family: &Family, name: &str) -> Option<u64> {
    let name = name.strip_prefix(PREFIX)?;
    if name == "estimate-num-keys" {
        return family.keyspace().ok()?.approximate_len::<&[u8]>(..).ok();
    }
    let stats = database.shared.db().stats();
    let keyspace = of_family(&stats, family)?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        return files_at_level(keyspace, level);
    }
    match name {
        "cur-size-all-mem-tables" | "size-all-mem-tables" => Some(keyspace.memtable_bytes),
        "num-immutable-mem-table" => Some(keyspace.memtables.saturating_sub(1) as u64),
        "block-cache-capacity" => Some(database.shared.cache_bytes),
        "block-cache-usage" => Some(stats.memory.block_cache),
        "estimate-table-readers-mem" => Some(stats.memory.tables),
        "total-sst-files-size" | "live-sst-files-size" => {
            Some(keyspace.levels.iter().map(|level| level.bytes).sum())
        }
        _ => None,
    }
}

/// The statistics of the keyspace of a family, unless it was dropped.
pub(crate) fn of_family<'s>(stats: &'s Stats, family: &Family) -> Option<&'s KeyspaceStats> {
    let mut keyspaces = stats.keyspaces.iter();
    keyspaces.find(|keyspace| keyspace.name == family.name)
}

fn files_at_level(keyspace: &KeyspaceStats, level: &str) -> Option<u64> {
    let is_number = !level.is_empty() && level.bytes().all(|digit| digit.is_ascii_digit());
    let level: usize = is_number.then(|| level.parse().ok()).flatten()?;
    if level > LEVELS_MAX {
        return None;
    }
    let found = keyspace.levels.iter().find(|found| found.level == level);
    Some(found.map_or(0, |found| found.files as u64))
}

/// The sizes of the levels. Windrow does not measure compactions by time and level.
fn table(keyspace: &KeyspaceStats) -> String {
    let mut text = format!(
        "** Compaction Stats [{}] **\nLevel Files Size\n",
        keyspace.name
    );
    let is_used = |level: &&LevelStats| level.files > 0;
    for level in keyspace.levels.iter().filter(is_used) {
        let line = format!("L{} {} {}\n", level.level, level.files, level.bytes);
        text.push_str(&line);
    }
    text
}
