//! What a user of the crate brings along, and how it reads the state.

use openraft::RaftTypeConfig;
use tokio::sync::watch;
use windrow::{Keyspace, Result, Transaction};

/// An application: how a request changes the state. All nodes apply the same requests in the same order, so the answer
/// and the change may depend on nothing but the state and the request: not on clocks, random numbers, the node, or
/// values that expire.
pub trait Application<C: RaftTypeConfig>: Send + Sync + 'static {
    /// Changes `state` by `transaction` alone, and returns the answer. The transaction sees what it and earlier requests
    /// have written. It belongs to the state machine, which commits it. The answer to entries of openraft itself is
    /// `R::default()`.
    ///
    /// It runs on a thread that may block.
    ///
    /// # Errors
    /// An error ends the node, and so does a panic. Nothing of the transaction is written then, and the node applies the
    /// request again when it is started again. If the cause is the request, all nodes end, for ever. So check what a
    /// request brings before it reaches the transaction, which returns `InvalidArgument` for an empty key and for
    /// [long](windrow::limits) keys and values. A request that the application refuses is no error: its answer says so.
    fn apply(&self, state: &Keyspace, transaction: &Transaction, request: C::D) -> Result<C::R>;
}

/// Reads the state of a node while its state machine belongs to openraft. Clones read the same state.
#[derive(Debug, Clone)]
pub struct StateReader {
    current: watch::Receiver<Keyspace>,
}

impl StateReader {
    pub(crate) fn new(current: watch::Receiver<Keyspace>) -> Self {
        Self { current }
    }

    /// The keyspace with the state. After the installation of a snapshot the state is another keyspace, and calls to the
    /// old one return `NotFound`. So a caller takes it anew for each read, and once more if the read returns `NotFound`.
    /// Nobody but the state machine writes to it.
    ///
    /// A read sees what the node has applied. `Raft::ensure_linearizable` before it makes it see all requests that were
    /// answered earlier.
    pub fn keyspace(&self) -> Keyspace {
        self.current.borrow().clone()
    }
}
