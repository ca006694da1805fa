//! Options that change while a database is open.
//!
//! Concurrency: no state.

use windrow::{Db, Error, KeyspaceOptions, Result};

use crate::families::Family;

/// What values an option has.
enum Form {
    /// `true` or `false`.
    Flag,
    /// A number, perhaps with a suffix for a power of 1024.
    Number,
}

/// Options of RocksDB that can be changed and have no effect here: they tune it.
const IGNORED: &[(&str, Form)] = &[
    ("disable_auto_compactions", Form::Flag),
    ("hard_pending_compaction_bytes_limit", Form::Number),
    ("level0_slowdown_writes_trigger", Form::Number),
    ("level0_stop_writes_trigger", Form::Number),
    ("max_compaction_bytes", Form::Number),
    ("max_sequential_skip_in_iterations", Form::Number),
    ("max_successive_merges", Form::Number),
    ("max_write_buffer_number", Form::Number),
    ("memtable_huge_page_size", Form::Number),
    ("paranoid_file_checks", Form::Flag),
    ("periodic_compaction_seconds", Form::Number),
    ("report_bg_io_stats", Form::Flag),
    ("soft_pending_compaction_bytes_limit", Form::Number),
    ("target_file_size_multiplier", Form::Number),
    ("ttl", Form::Number),
];

/// Sets options of a column family: all of them, or none.
///
/// # Errors
/// `InvalidArgument` without options, for a name that is not among those that can be changed, and for a value of another
/// form.
pub(crate) fn set(db: &Db, family: &Family, pairs: &[(&str, &str)]) -> Result<()> {
    if pairs.is_empty() {
        return Err(Error::invalid_argument("there are no options to set"));
    }
    let before = family.keyspace()?.options();
    let mut options = before.clone();
    for (name, value) in pairs {
        set_one(&mut options, name, value)?;
    }
    if options == before {
        return Ok(());
    }
    db.keyspace_with(&family.name, options).map(drop)
}

fn set_one(options: &mut KeyspaceOptions, name: &str, value: &str) -> Result<()> {
    let wrong = || Error::invalid_argument(format!("{name} cannot be \"{value}\""));
    if let Some((_, form)) = IGNORED.iter().find(|(ignored, _)| *ignored == name) {
        let is_right = match form {
            Form::Flag => ["true", "false", "1", "0"].contains(&value),
            Form::Number => number(value).is_some(),
        };
        return if is_right { Ok(()) } else { Err(wrong()) };
    }
    let number = || number(value).ok_or_else(wrong);
    let size = || number().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    match name {
        "write_buffer_size" => options.memtable_bytes = size()?,
        "target_file_size_base" => options.file_bytes = number()?,
        "max_bytes_for_level_base" => options.base_bytes = number()?,
        "level0_file_num_compaction_trigger" => options.level0_runs = size()?,
        _ => {
            let message = format!("there is no option \"{name}\" that can be changed");
            return Err(Error::invalid_argument(message));
        }
    }
    Ok(())
}

fn number(value: &str) -> Option<u64> {
    let (digits, shift) = match value.as_bytes().last()? {
        b'k' | b'K' => (&value[..value.len() - 1], 10),
        b'm' | b'M' => (&value[..value.len() - 1], 20),
        b'g' | b'G' => (&value[..value.len() - 1], 30),
        b't' | b'T' => (&value[..value.len() - 1], 40),
        _ => (value, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
