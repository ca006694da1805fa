//! Tables for people, and words for what stands in them.
//!
//! Concurrency: none; no state.

use comfy_table::{Cell, CellAlignment, Table, presets};

use crate::text::human_count;

/// A table with borders and no other lines.
pub(crate) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table
}

/// A cell whose content stands to the right, as numbers do.
pub(crate) fn right(content: &impl ToString) -> Cell {
    Cell::new(content.to_string()).set_alignment(CellAlignment::Right)
}

/// A table of names and amounts.
pub(crate) fn pairs<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> Table {
    let mut table = plain_table();
    for (name, amount) in rows {
        table.add_row([Cell::new(name), right(&amount)]);
    }
    table
}

/// A count and its noun.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with('y') => {
            return format!("{} {}ies", human_count(count), &noun[..noun.len() - 1]);
        }
        noun if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", human_count(count))
}
