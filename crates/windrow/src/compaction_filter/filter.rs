//! The interface of compaction filters.
//!
//! Concurrency: a filter is called from any number of threads at once.

use std::fmt;

use super::candidate::{Candidate, FilterError};

/// Removes or replaces values of a keyspace when compactions come across them: for example those of a tenant that is
/// gone, or those in an old form.
///
/// A compaction asks the filter about the values that it rewrites. What the filter decides becomes an ordinary write,
/// without [`Sync`](crate::Durability::Sync), on the condition that the value is still the newest one of its key. So a
/// filter never overwrites a newer write; snapshots, cursors and open transactions go on seeing what they saw; and a
/// transaction that has read a key before the filter changes it fails with
/// [`Conflict`](crate::ErrorKind::Conflict), as after any write. The space is freed when a later compaction meets both.
///
/// A compaction waits for nobody: a change is dropped if a locking or prepared transaction holds the key, if all locks
/// together take their memory already, if writers are delayed or stopped, or the disk is full. The changes of a large
/// compaction may themselves fill memtables faster than these are flushed; what it then proposes is dropped, too. A later
/// compaction asks again. [`Stats::judged_dropped`](crate::Stats::judged_dropped) counts what was dropped, so it shows
/// whether everything was changed.
///
/// A filter is asked about the newest value of a key in the files of a compaction, at any later compaction again, and
/// also about values that have been overwritten or removed since; then its answer has no effect. So it should depend on
/// its arguments and on what never changes back, and should keep what it has put in place itself: one that replaces each
/// value by another one causes writes without end. A replacement by an equal value changes nothing; to find that out,
/// a value in another file is read if it has the same length. It is not asked about
/// - entries in memtables, and values that a flush writes or that move to another level as a whole file;
/// - values in other files, unless the compaction goes to the last level: or each would be read once for each level;
/// - operands of a [merge operator](crate::MergeOperator): what has been folded into a value, at the next compaction;
/// - what had expired when the compaction began.
///
/// [`Keyspace::compact_range`](crate::Keyspace::compact_range) rewrites everything in its range, so the filter is asked
/// about all of it. A second call frees the space.
///
/// An error or a panic of a filter loses nothing: the entry stays, and
/// [`Stats::judged_failed`](crate::Stats::judged_failed) counts it. With `panic = "abort"` a panic ends the process. A
/// compaction calls the filter while it runs. So a filter may read the database, but must not write, flush or compact:
/// these calls may wait for that compaction. A close is refused there with
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument). Nor may it wait for a thread that makes one of these calls. The
/// database keeps the filter, so one that keeps a handle keeps the database open until somebody closes it.
///
/// ```
/// use windrow::{Candidate, CompactionFilter, Decision, FilterError};
///
/// /// Removes the entries of a tenant that has left.
/// struct Without(String);
///
/// impl CompactionFilter for Without {
///     fn name(&self) -> &str {
///         "example.without-tenant"
///     }
///
///     fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
///         if candidate.key().starts_with(self.0.as_bytes()) {
///             return Ok(Decision::Remove);
///         }
///         Ok(Decision::Keep)
///     }
/// }
///
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// use std::sync::Arc;
/// use windrow::{Db, Options};
///
/// let filter = Arc::new(Without("left/".to_owned()));
/// let options = Options::default().with_compaction_filter("tenants", filter);
/// let db = Db::open(folder.path(), options)?;
/// let tenants = db.keyspace("tenants")?;
/// tenants.insert("left/1", "gone")?;
/// tenants.insert("stays/1", "kept")?;
/// tenants.compact_range::<&[u8]>(..)?;
/// assert_eq!(tenants.count::<&[u8]>(..)?, 1);
/// # Ok(())
/// # }
/// ```
pub trait CompactionFilter: Send + Sync {
    /// Its name, for people who look at the options.
    fn name(&self) -> &str;

    /// What becomes of `candidate`.
    ///
    /// # Errors
    /// If it cannot decide. The entry stays as it is.
    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError>;
}

impl fmt::Debug for dyn CompactionFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompactionFilter")
            .field(&self.name())
            .finish()
    }
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is.
    Keep,
    /// It is removed.
    Remove,
    /// It gets this value, of at most 1 GiB. It expires when the value before would have.
    Replace(Vec<u8>),
}
