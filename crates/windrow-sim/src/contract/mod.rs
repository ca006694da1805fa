//! The contract suite: histories with the answer to each step, as JSON, which Windrow must give in every language.
//!
//! `bindings/contract/README.md` describes the form. The answers come from a model. The seed of a history fixes it.
//!
//! Concurrency: none.

mod generator;
mod json;
mod model;
mod scripted;

pub use generator::suite;
pub use json::to_json;

/// The keyspace without a merge operator.
pub const MAIN: &str = "main";

/// The keyspace whose merge operator is [`OPERATOR`].
pub const LISTS: &str = "lists";

/// Appends operands, with a bar between two.
pub const OPERATOR: &str = "windrow.append.7c";

/// How long a transaction waits for each lock, in milliseconds.
pub const LOCK_TIMEOUT: u64 = 20;

/// A key or a value.
pub type Bytes = Vec<u8>;

/// From its start on, and before its end; `None` for no bound.
pub type KeyRange = (Option<Bytes>, Option<Bytes>);

/// A list of steps on an empty database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// What it is about.
    pub name: String,
    /// One after the other.
    pub steps: Vec<Step>,
}

/// One call, and what must come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The call.
    pub action: Action,
    /// Where it reads or writes.
    pub place: Place,
    /// The answer.
    pub answer: Answer,
}

/// Where a step reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The newest state.
    Latest,
    /// The state of the snapshot with this number.
    Snapshot(u32),
    /// The transaction with this number.
    Transaction(u32),
}

/// A write to a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets the value of a key.
    Put(&'static str, Bytes, Bytes),
    /// Sets the value of a key for so many milliseconds.
    PutFor(&'static str, Bytes, Bytes, u64),
    /// Removes a key.
    Delete(&'static str, Bytes),
    /// Removes all keys of a range.
    DeleteRange(&'static str, KeyRange),
    /// Writes an operand.
    Merge(&'static str, Bytes, Bytes),
}

/// The call of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// One write.
    Write(Write),
    /// Several writes as one.
    Batch(Vec<Write>),
    /// The value of a key.
    Get(&'static str, Bytes),
    /// The value of a key, which the transaction of the place wants to change.
    GetForUpdate(&'static str, Bytes),
    /// The values of several keys.
    MultiGet(&'static str, Vec<Bytes>),
    /// When the value of a key expires.
    ExpiresAt(&'static str, Bytes),
    /// Sets the value of a key that has none.
    PutIfAbsent(&'static str, Bytes, Bytes),
    /// Replaces the value of a key, if it is the first one, by the second one; `None` stands for no value.
    CompareAndSwap(&'static str, Bytes, Option<Bytes>, Option<Bytes>),
    /// The entries of a range, in the order of keys, or against it.
    Scan(&'static str, KeyRange, bool),
    /// The keys around this one: the last that is less, and the first that is not less.
    Neighbors(&'static str, Bytes),
    /// Takes the snapshot with this number.
    Snapshot(u32),
    /// Gives the snapshot up.
    Release(u32),
    /// Begins the transaction of the place.
    Begin(Begin),
    /// Commits it.
    Commit,
    /// Prepares it under this name.
    Prepare(&'static str),
    /// Rolls it back.
    RollBack,
    /// Marks its state by this number.
    Savepoint(u32),
    /// Rolls it back to that mark.
    RollBackTo(u32),
    /// The names of the prepared transactions.
    PreparedNames,
    /// Commits the prepared transaction with this name.
    CommitPrepared(&'static str),
    /// Rolls it back.
    RollBackPrepared(&'static str),
    /// Opens the consumer of changes with this name, or creates it.
    Consumer(&'static str),
    /// The names of all consumers.
    ConsumerNames,
    /// The changes behind the place of a consumer, all of which are batches.
    Changes(&'static str),
    /// The consumer has done with so many of the changes that it has read last.
    Acknowledge(&'static str, usize),
    /// Forgets the consumer.
    RemoveConsumer(&'static str),
    /// Writes all memtables to tables.
    Flush,
    /// Compacts a keyspace.
    Compact(&'static str),
    /// Closes the database. The handles stay.
    Close,
    /// Opens the database anew, after a close if it is open.
    Reopen,
    /// Opens it a second time.
    OpenAgain,
}

/// The kinds of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Its commit depends on what it has read.
    Serializable,
    /// Its commit depends on what it writes, or has read for an update.
    Snapshot,
    /// It locks what it writes, or reads for an update.
    Locking,
}

/// What comes of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Done,
    /// A value, or none.
    Value(Option<Bytes>),
    /// The value of each key, or none.
    Values(Vec<Option<Bytes>>),
    /// The time to live of a value, in milliseconds; `Some(None)` if it stays, `None` if there is none.
    TimeToLive(Option<Option<u64>>),
    /// Whether the call has written.
    Outcome(bool),
    /// Names.
    Names(Vec<&'static str>),
    /// The writes of each change.
    Changes(Vec<Vec<Write>>),
    /// Entries.
    Entries(Vec<(Bytes, Bytes)>),
    /// Two keys, or none.
    Neighbors(Option<Bytes>, Option<Bytes>),
    /// An error of this kind, by the name of [`windrow::ErrorKind`].
    Error(&'static str),
}
