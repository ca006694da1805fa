//! The merge operators that an open of a database has, by keyspace.
//!
//! Concurrency: immutable while the database is open.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::keyspace_operator::KeyspaceOperator;
use super::operator::MergeOperator;
use crate::base::{Error, Result};

/// The longest name of an operator, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Merge operators by the names of their keyspaces.
#[derive(Clone, Default)]
pub(crate) struct MergeOperators(BTreeMap<String, Arc<dyn MergeOperator>>);

impl MergeOperators {
    /// Registers `operator` for `keyspace`, instead of an earlier one.
    pub(crate) fn register(&mut self, keyspace: String, operator: Arc<dyn MergeOperator>) {
        self.0.insert(keyspace, operator);
    }

    /// The operator of `keyspace`, whose manifest has `recorded`. If none is registered, `ready` finds the one that is
    /// recorded.
    ///
    /// # Errors
    /// `InvalidArgument` if another one is registered, or its name is too long.
    pub(crate) fn of_keyspace(
        &self,
        keyspace: &str,
        recorded: Option<&str>,
        ready: fn(&str) -> Option<Arc<dyn MergeOperator>>,
    ) -> Result<KeyspaceOperator> {
        let registered = self.0.get(keyspace).cloned();
        if let Some(operator) = &registered
            && !(1..=NAME_BYTES_MAX).contains(&operator.name().len())
        {
            return Err(Error::invalid_argument(format!(
                "the name of a merge operator has 1 to {NAME_BYTES_MAX} bytes, not {}",
                operator.name().len()
            )));
        }
        match (registered, recorded) {
            (Some(operator), Some(recorded)) if operator.name() != recorded => {
                Err(Error::invalid_argument(format!(
                    "keyspace \"{keyspace}\" has merge operator \"{recorded}\" and cannot have \"{}\" instead",
                    operator.name()
                )))
            }
            (Some(operator), _) => {
                let name = operator.name().to_owned();
                Ok(KeyspaceOperator::new(Some(name), Some(operator)))
            }
            (None, Some(recorded)) => Ok(KeyspaceOperator::new(
                Some(recorded.to_owned()),
                ready(recorded),
            )),
            (None, None) => Ok(KeyspaceOperator::default()),
        }
    }
}

impl fmt::Debug for MergeOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, it)| (name, it.name()));
        f.debug_map().entries(names).finish()
    }
}
