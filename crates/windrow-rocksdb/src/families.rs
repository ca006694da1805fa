//! Column families: keyspaces with an id, by which batches name them.
//!
//! Concurrency: a family never changes.

use std::borrow::Cow;
use std::sync::Arc;

use windrow::{Keyspace, Result};
use windrow_ffi::key_order::CallOrder;

use crate::filter::{Filter, Manual};
use crate::options::OpenOptions;
use crate::origin::Secondary;
use crate::prefix::Prefix;

/// A column family of an open database.
pub(crate) struct Family {
    pub(crate) id: u32,
    pub(crate) name: String,
    place: Place,
    pub(crate) prefix: Option<Arc<Prefix>>,
    pub(crate) order: Option<CallOrder>,
    filter: Option<Arc<Filter>>,
}

/// Where the newest state of a column family is.
pub(crate) enum Place {
    Own(Keyspace),
    Secondary(Arc<Secondary>),
}

impl Family {
    pub(crate) fn new(id: u32, name: &str, place: Place, options: &OpenOptions) -> Self {
        Self {
            id,
            name: name.to_owned(),
            place,
            prefix: options.prefix.clone(),
            order: options.order.clone().map(CallOrder::new),
            filter: options.filter().cloned(),
        }
    }

    /// Its keyspace, in the newest state.
    ///
    /// # Errors
    /// `NotFound` if a secondary has read that the family was dropped.
    pub(crate) fn keyspace(&self) -> Result<Cow<'_, Keyspace>> {
        match &self.place {
            Place::Own(keyspace) => Ok(Cow::Borrowed(keyspace)),
            Place::Secondary(secondary) => secondary.keyspace(self.id).map(Cow::Owned),
        }
    }

    /// Lets a compaction filter know of a manual compaction, until the result is dropped.
    pub(crate) fn manual_compaction(&self) -> Option<Manual<'_>> {
        self.filter.as_ref().map(|filter| filter.manual())
    }

    /// Checks a custom comparator with the key of a call.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn check_order(&self, key: &[u8]) -> Result<()> {
        self.order.as_ref().map_or(Ok(()), |order| order.check(key))
    }
}
