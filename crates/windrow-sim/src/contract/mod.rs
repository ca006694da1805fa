//! The contract suite: histories with the answer to each step, as JSON, which Windrow must give in every language.
//!
//! `bindings/contract/README.md` describes the form. The answers come from a model. The seed of a history fixes it.
//!
//! Concurrency: none.

mod generator;
mod json;
mod model;

pub use generator::suite;
pub use json::to_json;

/// The keyspace without a merge operator.
pub const MAIN: &str = "main";

/// The keyspace whose merge operator is [`OPERATOR`].
pub const LISTS: &str = "lists";

/// Appends operands, with a bar between two.
pub const OPERATOR: &str = "windrow.append.7c";

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
    /// The entries of a range, in the order of keys, or against it.
    Scan(&'static str, KeyRange, bool),
    /// The keys around this one: the last that is less, and the first that is not less.
    Neighbors(&'static str, Bytes),
    /// Takes the snapshot with this number.
    Snapshot(u32),
    /// Gives the snapshot up.
    Release(u32),
    /// Begins the transaction of the place; serializable, or with snapshot isolation.
    Begin(bool),
    /// Commits it.
    Commit,
    /// Rolls it back.
    RollBack,
    /// Marks its state by this number.
    Savepoint(u32),
    /// Rolls it back to that mark.
    RollBackTo(u32),
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

/// What comes of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Done,
    /// A value, or none.
    Value(Option<Bytes>),
    /// Entries.
    Entries(Vec<(Bytes, Bytes)>),
    /// Two keys, or none.
    Neighbors(Option<Bytes>, Option<Bytes>),
    /// An error of this kind, by the name of [`windrow::ErrorKind`].
    Error(&'static str),
}
