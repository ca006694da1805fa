//! The throttle of a keyspace, computed from its debt.
//!
//! Concurrency: under the keyspace's `work` lock.

use crate::engine::KeyspaceCore;
use crate::engine::jobs::tree_summary::summary;
use crate::policy::{self, Backlog, Tree};

impl KeyspaceCore {
    /// Computes the throttle of writers anew.
    pub(in crate::engine) fn refresh_throttle(&self) {
        let mut work = self.work.lock();
        let state = self.state_full();
        let options = self.options();
        let mut tree = summary(&state.version, &work);
        tree.allowed = policy::next_allowed(&tree, &options);
        let value_log_bytes = policy::value_log_bytes(policy::bytes_held(&tree), &options);
        let backlog = Backlog {
            value_log_bytes,
            level0_runs: tree.len(0),
            pending_bytes: policy::pending_bytes(&tree, &options),
            // While garbage collections fail, no writer waits for them.
            garbage_bytes: if self.gc_failure.has_failed() {
                0
            } else {
                policy::garbage_excess(&tree, &options)
            },
        };
        self.set_memtable_value_bytes_max(policy::values_behind_max(&tree, &options));
        self.set_value_log_bytes(value_log_bytes);
        work.allowed = tree.allowed;
        self.set_throttle(policy::throttle(backlog, &options), state.frozen.len());
    }
}
