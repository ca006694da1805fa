//! The suite as JSON, one step in a line.
//!
//! Concurrency: none.

use std::fmt::Write as _;

use super::{Action, Answer, Bytes, History, KeyRange, LISTS, OPERATOR, Place, Step, Write};

/// Bytes that are all equal are written in short from this length on.
const REPEATED_FROM: usize = 40;

/// The histories as a JSON document.
pub fn to_json(histories: &[History]) -> String {
    let mut text = String::from("{\"format\": 1,\n");
    append(
        &mut text,
        format_args!("\"merge_operators\": {{\"{LISTS}\": \"{OPERATOR}\"}},\n\"histories\": ["),
    );
    for (number, history) in histories.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        append(
            &mut text,
            format_args!("{comma}\n{{\"name\": \"{}\", \"steps\": [\n", history.name),
        );
        let steps: Vec<_> = history.steps.iter().map(step).collect();
        text.push_str(&steps.join(",\n"));
        text.push_str("\n]}");
    }
    text.push_str("\n]}\n");
    text
}

fn append(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string can be written to");
}

fn step(step: &Step) -> String {
    let mut text = match &step.action {
        Action::Write(written) => write(written),
        Action::Batch(writes) => {
            let writes: Vec<_> = writes
                .iter()
                .map(|it| format!("{{{}}}", write(it)))
                .collect();
            format!("\"do\": \"batch\", \"writes\": [{}]", writes.join(", "))
        }
        Action::Get(keyspace, key) => {
            format!("{}, \"key\": {}", on("get", keyspace), bytes(key))
        }
        Action::Scan(keyspace, keys, reverse) => format!(
            "{}, {}, \"reverse\": {reverse}",
            on("scan", keyspace),
            range(keys)
        ),
        Action::Neighbors(keyspace, key) => {
            format!("{}, \"key\": {}", on("neighbors", keyspace), bytes(key))
        }
        Action::Snapshot(number) => format!("\"do\": \"snapshot\", \"snapshot\": {number}"),
        Action::Release(number) => format!("\"do\": \"release\", \"snapshot\": {number}"),
        Action::Begin(true) => "\"do\": \"begin\", \"isolation\": \"serializable\"".to_owned(),
        Action::Begin(false) => "\"do\": \"begin\", \"isolation\": \"snapshot\"".to_owned(),
        Action::Commit => "\"do\": \"commit\"".to_owned(),
        Action::RollBack => "\"do\": \"roll_back\"".to_owned(),
        Action::Savepoint(mark) => format!("\"do\": \"savepoint\", \"savepoint\": {mark}"),
        Action::RollBackTo(mark) => format!("\"do\": \"roll_back_to\", \"savepoint\": {mark}"),
        Action::Flush => "\"do\": \"flush\"".to_owned(),
        Action::Compact(keyspace) => on("compact", keyspace),
        Action::Close => "\"do\": \"close\"".to_owned(),
        Action::Reopen => "\"do\": \"reopen\"".to_owned(),
        Action::OpenAgain => "\"do\": \"open_again\"".to_owned(),
    };
    match step.place {
        Place::Latest => {}
        Place::Snapshot(number) => append(&mut text, format_args!(", \"snapshot\": {number}")),
        Place::Transaction(number) => {
            append(&mut text, format_args!(", \"transaction\": {number}"));
        }
    }
    match &step.answer {
        Answer::Done => {}
        Answer::Value(value) => append(
            &mut text,
            format_args!(", \"value\": {}", or_null(value.as_ref())),
        ),
        Answer::Entries(entries) => {
            let pairs = entries.iter();
            let pairs: Vec<_> = pairs
                .map(|(key, value)| format!("[{}, {}]", bytes(key), bytes(value)))
                .collect();
            append(
                &mut text,
                format_args!(", \"entries\": [{}]", pairs.join(", ")),
            );
        }
        Answer::Neighbors(before, after) => {
            let (before, after) = (or_null(before.as_ref()), or_null(after.as_ref()));
            append(
                &mut text,
                format_args!(", \"before\": {before}, \"after\": {after}"),
            );
        }
        Answer::Error(kind) => append(&mut text, format_args!(", \"error\": \"{kind}\"")),
    }
    format!("{{{text}}}")
}

fn on(what: &str, keyspace: &str) -> String {
    format!("\"do\": \"{what}\", \"keyspace\": \"{keyspace}\"")
}

fn write(write: &Write) -> String {
    match write {
        Write::Put(keyspace, key, value) => format!(
            "{}, \"key\": {}, \"value\": {}",
            on("put", keyspace),
            bytes(key),
            bytes(value)
        ),
        Write::Delete(keyspace, key) => {
            format!("{}, \"key\": {}", on("delete", keyspace), bytes(key))
        }
        Write::DeleteRange(keyspace, keys) => {
            format!("{}, {}", on("delete_range", keyspace), range(keys))
        }
        Write::Merge(keyspace, key, operand) => format!(
            "{}, \"key\": {}, \"operand\": {}",
            on("merge", keyspace),
            bytes(key),
            bytes(operand)
        ),
    }
}

fn range((start, end): &KeyRange) -> String {
    format!(
        "\"start\": {}, \"end\": {}",
        or_null(start.as_ref()),
        or_null(end.as_ref())
    )
}

fn or_null(found: Option<&Bytes>) -> String {
    found.map_or_else(|| "null".to_owned(), |it| bytes(it))
}

fn bytes(found: &[u8]) -> String {
    match found {
        [first, rest @ ..]
            if rest.len() >= REPEATED_FROM && rest.iter().all(|byte| byte == first) =>
        {
            format!("{{\"byte\": \"{first:02x}\", \"times\": {}}}", found.len())
        }
        _ => {
            let mut text = String::from("\"");
            for byte in found {
                append(&mut text, format_args!("{byte:02x}"));
            }
            text.push('"');
            text
        }
    }
}
