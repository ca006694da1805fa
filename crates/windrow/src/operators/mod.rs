//! Ready merge operators.
//!
//! [`Options::with_merge_operator`](crate::Options::with_merge_operator) gives one to a keyspace. The database records
//! its name, and later opens find a ready operator by this name without being given it.
//!
//! | operator | operands | value |
//! |---|---|---|
//! | [`AddU64`], [`AddI64`] | a number of 8 bytes, little-endian | the sum of all, in the same form |
//! | [`Extremum`] | bytes | the least or the greatest of all, bytewise |
//! | [`Append`] | bytes | all, one after the other, with a separator between two |
//! | [`IdSet`] | ids of one length, one after the other | each id once, ascending |
//! | `JsonMergePatch` (feature `json`) | a JSON merge patch | the patched JSON document |
//!
//! Concurrency: they have no state.

mod add;
mod append;
mod extremum;
mod id_set;
#[cfg(feature = "json")]
mod json;

use std::sync::Arc;

pub use add::{AddI64, AddU64};
pub use append::Append;
pub use extremum::Extremum;
pub use id_set::IdSet;
#[cfg(feature = "json")]
pub use json::JsonMergePatch;

use crate::merge_operator::MergeOperator;

/// The ready operator of this name, as [`MergeOperator::name`] gives it; `None` if this build has none. For operators that
/// a configuration names.
pub fn by_name(name: &str) -> Option<Arc<dyn MergeOperator>> {
    let fixed: [Arc<dyn MergeOperator>; 6] = [
        Arc::new(AddU64::Wrapping),
        Arc::new(AddU64::Saturating),
        Arc::new(AddI64::Wrapping),
        Arc::new(AddI64::Saturating),
        Arc::new(Extremum::Least),
        Arc::new(Extremum::Greatest),
    ];
    if let Some(operator) = fixed.into_iter().find(|it| it.name() == name) {
        return Some(operator);
    }
    #[cfg(feature = "json")]
    if name == JsonMergePatch.name() {
        return Some(Arc::new(JsonMergePatch));
    }
    let append = Append::from_name(name).map(|it| Arc::new(it) as Arc<dyn MergeOperator>);
    append.or_else(|| Some(Arc::new(IdSet::from_name(name)?)))
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;
