//! The suite as JSON, one step in a line.
//!
//! Concurrency: none.

use std::fmt::Write as _;

use super::{
    Action, Answer, Begin, Bytes, History, KeyRange, LISTS, LOCK_TIMEOUT, OPERATOR, Place, Step,
    Write,
};

/// Bytes that are all equal are written in short from this length on.
const REPEATED_FROM: usize = 40;

/// The histories as a JSON document.
pub fn to_json(histories: &[History]) -> String {
    let mut text = String::from("{\"format\": 1,\n");
    append(
        &mut text,
        format_args!(
            "\"merge_operators\": {{\"{LISTS}\": \"{OPERATOR}\"}},\n\"lock_timeout\": {LOCK_TIMEOUT},\n\"histories\": ["
        ),
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
    let mut text = call(&step.action);
    match step.place {
        Place::Latest => {}
        Place::Snapshot(number) => append(&mut text, format_args!(", \"snapshot\": {number}")),
        Place::Transaction(number) => {
            append(&mut text, format_args!(", \"transaction\": {number}"));
        }
    }
    if let Some(answer) = answer(&step.answer) {
        append(&mut text, format_args!(", {answer}"));
    }
    format!("{{{text}}}")
}

fn call(action: &Action) -> String {
    match action {
        Action::Write(written) => write(written),
        Action::Batch(written) => format!("{}, \"writes\": {}", to_do("batch"), writes(written)),
        Action::Get(keyspace, key) => on_key("get", keyspace, key),
        Action::GetForUpdate(keyspace, key) => {
            format!("{}, \"for_update\": true", on_key("get", keyspace, key))
        }
        Action::MultiGet(keyspace, keys) => {
            let keys = list(keys.iter().map(|key| bytes(key)));
            format!("{}, \"keys\": {keys}", on("multi_get", keyspace))
        }
        Action::ExpiresAt(keyspace, key) => on_key("expires_at", keyspace, key),
        Action::PutIfAbsent(keyspace, key, value) => format!(
            "{}, \"value\": {}",
            on_key("put_if_absent", keyspace, key),
            bytes(value)
        ),
        Action::CompareAndSwap(keyspace, key, expected, new) => format!(
            "{}, \"expected\": {}, \"value\": {}",
            on_key("compare_and_swap", keyspace, key),
            or_null(expected.as_ref()),
            or_null(new.as_ref())
        ),
        Action::Scan(keyspace, keys, reverse) => format!(
            "{}, {}, \"reverse\": {reverse}",
            on("scan", keyspace),
            range(keys)
        ),
        Action::Neighbors(keyspace, key) => on_key("neighbors", keyspace, key),
        Action::Snapshot(number) => format!("{}, \"snapshot\": {number}", to_do("snapshot")),
        Action::Release(number) => format!("{}, \"snapshot\": {number}", to_do("release")),
        Action::Begin(kind) => {
            let isolation = match kind {
                Begin::Serializable => "serializable",
                Begin::Snapshot => "snapshot",
                Begin::Locking => "locking",
            };
            format!("{}, \"isolation\": \"{isolation}\"", to_do("begin"))
        }
        Action::Commit => to_do("commit"),
        Action::Prepare(name) => named("prepare", name),
        Action::RollBack => to_do("roll_back"),
        Action::Savepoint(mark) => format!("{}, \"savepoint\": {mark}", to_do("savepoint")),
        Action::RollBackTo(mark) => format!("{}, \"savepoint\": {mark}", to_do("roll_back_to")),
        Action::PreparedNames => to_do("prepared_names"),
        Action::CommitPrepared(name) => named("commit_prepared", name),
        Action::RollBackPrepared(name) => named("roll_back_prepared", name),
        Action::Consumer(name) => named("consumer", name),
        Action::ConsumerNames => to_do("consumer_names"),
        Action::Changes(name) => named("changes", name),
        Action::Acknowledge(name, count) => {
            format!("{}, \"count\": {count}", named("acknowledge", name))
        }
        Action::RemoveConsumer(name) => named("remove_consumer", name),
        Action::Flush => to_do("flush"),
        Action::Compact(keyspace) => on("compact", keyspace),
        Action::Close => to_do("close"),
        Action::Reopen => to_do("reopen"),
        Action::OpenAgain => to_do("open_again"),
    }
}

fn answer(answer: &Answer) -> Option<String> {
    Some(match answer {
        Answer::Done => return None,
        Answer::Value(value) => format!("\"value\": {}", or_null(value.as_ref())),
        Answer::Values(values) => {
            let values = values.iter().map(|value| or_null(value.as_ref()));
            format!("\"values\": {}", list(values))
        }
        Answer::TimeToLive(None) => "\"exists\": false".to_owned(),
        Answer::TimeToLive(Some(ttl)) => {
            let ttl = ttl.map_or_else(|| "null".to_owned(), |ttl| ttl.to_string());
            format!("\"exists\": true, \"ttl\": {ttl}")
        }
        Answer::Outcome(done) => format!("\"done\": {done}"),
        Answer::Names(names) => {
            let names = names.iter().map(|name| format!("\"{name}\""));
            format!("\"names\": {}", list(names))
        }
        Answer::Changes(changes) => {
            let changes = changes.iter().map(|change| writes(change));
            format!("\"changes\": {}", list(changes))
        }
        Answer::Entries(entries) => {
            let pairs = entries.iter();
            let pairs = pairs.map(|(key, value)| format!("[{}, {}]", bytes(key), bytes(value)));
            format!("\"entries\": {}", list(pairs))
        }
        Answer::Neighbors(before, after) => {
            let (before, after) = (or_null(before.as_ref()), or_null(after.as_ref()));
            format!("\"before\": {before}, \"after\": {after}")
        }
        Answer::Error(kind) => format!("\"error\": \"{kind}\""),
    })
}

fn to_do(what: &str) -> String {
    format!("\"do\": \"{what}\"")
}

fn named(what: &str, name: &str) -> String {
    format!("{}, \"name\": \"{name}\"", to_do(what))
}

fn on(what: &str, keyspace: &str) -> String {
    format!("{}, \"keyspace\": \"{keyspace}\"", to_do(what))
}

fn on_key(what: &str, keyspace: &str, key: &[u8]) -> String {
    format!("{}, \"key\": {}", on(what, keyspace), bytes(key))
}

fn list(elements: impl Iterator<Item = String>) -> String {
    let elements: Vec<_> = elements.collect();
    format!("[{}]", elements.join(", "))
}

fn writes(writes: &[Write]) -> String {
    list(writes.iter().map(|it| format!("{{{}}}", write(it))))
}

fn write(write: &Write) -> String {
    match write {
        Write::Put(keyspace, key, value) => {
            format!(
                "{}, \"value\": {}",
                on_key("put", keyspace, key),
                bytes(value)
            )
        }
        Write::PutFor(keyspace, key, value, ttl) => format!(
            "{}, \"value\": {}, \"ttl\": {ttl}",
            on_key("put", keyspace, key),
            bytes(value)
        ),
        Write::Delete(keyspace, key) => on_key("delete", keyspace, key),
        Write::DeleteRange(keyspace, keys) => {
            format!("{}, {}", on("delete_range", keyspace), range(keys))
        }
        Write::Merge(keyspace, key, operand) => format!(
            "{}, \"operand\": {}",
            on_key("merge", keyspace, key),
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
