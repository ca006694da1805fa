//! Point reads and cursors over one keyspace.
//!
//! Each call to a view of the newest state reads the newest state. Each call to a view at a snapshot reads the
//! state of the snapshot.
//!
//! Concurrency: readers never wait for writes or background work. They take locks only to open a file, in the
//! block cache, and to record a tombstone span.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::bounds::key_range;
use super::{Cursor, Entry, Range, Snapshot};
use crate::base::{Expiry, Result};
use crate::block::PinnedValue;
use crate::engine::{Handle, KeyspaceCore, Near, SnapshotPoint, StateView};
use crate::options;
use crate::read::explain::Explanation;
use crate::read::get::{self, Found};
use crate::read::visible::KeyRange;

/// The entries of a keyspace for readers: at a snapshot, or always in the newest state.
///
/// Readers never wait for writes or background work. They take locks only to open a file, in the block cache, and
/// to record which keys are deleted.
/// After [`Db::close`](super::Db::close) every call returns `Closed`.
#[derive(Clone)]
pub struct View {
    handle: Arc<Handle>,
    core: Arc<KeyspaceCore>,
    snapshot: Option<Snapshot>,
}

impl View {
    pub(super) fn new(
        handle: Arc<Handle>,
        core: Arc<KeyspaceCore>,
        snapshot: Option<Snapshot>,
    ) -> Self {
        Self {
            handle,
            core,
            snapshot,
        }
    }

    pub(super) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(super) fn core(&self) -> &Arc<KeyspaceCore> {
        &self.core
    }

    #[inline]
    fn lookup<R>(
        &self,
        key: &[u8],
        found: impl FnOnce(Found<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        options::check_key(key)?;
        let engine = self.handle.engine();
        engine.get(&self.core, key, self.at(), found)
    }

    /// The value of `key`, or `None` if the key does not exist. A later write is a separate step, and another thread may
    /// write between both: use [`Keyspace::update`](super::Keyspace::update) or [`Db::transact`](super::Db::transact).
    ///
    /// # Errors
    /// `InvalidArgument` if the key is empty or longer than its limit; `Corruption`, with file and offset, if what the
    /// read needs is damaged; `Io`; `NotFound` after the keyspace is dropped, except at a snapshot; `Closed`;
    /// `Poisoned` if an earlier failed write or sync may have lost a large value; `Merge` if the key has operands that
    /// cannot be folded: no other key is affected.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.lookup(key.as_ref(), |found| found.to_vec())
    }

    /// Replaces the contents of `value` by the value of `key`. Returns whether the key exists; if not, `value` is
    /// empty. It allocates nothing if `value` is large enough.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.lookup(key.as_ref(), |found| found.copy_into(value))?;
        Ok(found.is_some())
    }

    /// The value of `key`, without a copy if the value is in a file.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.lookup(key.as_ref(), get::pin)
    }

    /// Passes the value of `key` to `found`, if it is in memory: for a thread that must not wait for a device, as that of an
    /// event loop. If the answer is [`Near::Unknown`], let another thread call [`get_pinned`](Self::get_pinned).
    ///
    /// Pages that a file system has in memory count as memory. The system may evict them between the look and the read, so
    /// a read may wait now and then. Operands, and values that are stored apart from their keys, are always unknown.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// use windrow::Near;
    ///
    /// let planets = db.keyspace("planets")?;
    /// planets.insert("earth", "one moon")?;
    /// let length = match planets.get_near("earth", <[u8]>::len)? {
    ///     Near::Found(length) => Some(length),
    ///     Near::Absent => None,
    ///     Near::Unknown => planets.get_pinned("earth")?.map(|value| value.len()),
    /// };
    /// assert_eq!(length, Some(8));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_near<R>(
        &self,
        key: impl AsRef<[u8]>,
        found: impl FnOnce(&[u8]) -> R,
    ) -> Result<Near<R>> {
        let key = key.as_ref();
        options::check_key(key)?;
        let engine = self.handle.engine();
        engine.get_near(&self.core, key, self.at(), found)
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.lookup(key.as_ref(), |_| Ok(()))?.is_some())
    }

    /// When the entry of `key` expires, or `None` if the key does not exist.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use windrow::Expiry;
    ///
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let sessions = db.keyspace("sessions")?;
    /// sessions.insert_with_ttl("token", "user 7", Duration::from_secs(3600))?;
    /// sessions.insert("root", "user 0")?;
    /// let Some(Expiry::At(time)) = sessions.expires_at("token")? else { panic!() };
    /// assert!(time > SystemTime::now());
    /// assert_eq!(sessions.expires_at("root")?, Some(Expiry::Never));
    /// assert_eq!(sessions.expires_at("other")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>> {
        let key = key.as_ref();
        options::check_key(key)?;
        let engine = self.handle.engine();
        engine.expiry(&self.core, key, self.at())
    }

    /// How a get of `key` comes to its answer: the sources that it asks, what each answers, and how long that takes. It asks
    /// them one by one, and then reads the value as usual.
    ///
    /// ```
    /// # fn main() -> windrow::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// use windrow::{ExplainedAnswer, ExplainedSource};
    ///
    /// # let db = windrow::Db::open(folder.path(), windrow::Options::default())?;
    /// let planets = db.keyspace("planets")?;
    /// planets.insert("earth", "one moon")?;
    /// db.flush()?;
    /// let how = planets.explain_get("earth")?;
    /// assert_eq!(how.value_bytes, 8);
    /// let [memtable, table] = &how.steps[..] else { panic!() };
    /// assert_eq!(memtable.answer, ExplainedAnswer::Nothing);
    /// assert!(matches!(table.source, ExplainedSource::Table { level: 0, .. }));
    /// assert_eq!(table.answer, ExplainedAnswer::Value(8));
    /// assert_eq!(table.block_reads, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn explain_get(&self, key: impl AsRef<[u8]>) -> Result<Explanation> {
        let key = key.as_ref();
        options::check_key(key)?;
        let engine = self.handle.engine();
        engine.explain_get(&self.core, key, self.at())
    }

    /// How a seek to `key` comes to its answer: where each source stands then, and how long that takes. It asks them one by
    /// one, and then seeks as usual.
    ///
    /// # Errors
    /// As [`get`](Self::get). An empty key is the first one.
    pub fn explain_seek(&self, key: impl AsRef<[u8]>) -> Result<Explanation> {
        let engine = self.handle.engine();
        engine.explain_seek(&self.core, key.as_ref(), self.at())
    }

    /// The values of `keys`, in the order of `keys`. All are read from one state.
    ///
    /// # Errors
    /// As [`get`](Self::get), for the first key in order that has one.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        for key in keys {
            options::check_key(key.as_ref())?;
        }
        let engine = self.handle.engine();
        engine.multi_get(&self.core, keys, self.at())
    }

    /// A cursor over all entries. It has no position before its first move.
    ///
    /// # Errors
    /// `NotFound` after the keyspace is dropped, except at a snapshot; `Closed`.
    pub fn cursor(&self) -> Result<Cursor> {
        self.cursor_over(KeyRange::ALL)
    }

    /// A cursor over the entries whose keys are in `range`. A range without keys is no error.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn range_cursor<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Cursor> {
        self.cursor_over(key_range(&range))
    }

    /// A cursor over the entries whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn prefix_cursor(&self, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.cursor_over(KeyRange::prefix(prefix.as_ref()))
    }

    /// All entries in order.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    #[expect(
        clippy::iter_not_returning_iterator,
        reason = "it iterates once the error is dealt with, and the name is what people look for"
    )]
    pub fn iter(&self) -> Result<Range> {
        self.range_over(KeyRange::ALL)
    }

    /// The entries whose keys are in `range`, in order.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Range> {
        self.range_over(key_range(&range))
    }

    /// The entries whose keys begin with `prefix`, in order.
    ///
    /// # Errors
    /// As [`cursor`](Self::cursor).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range> {
        self.range_over(KeyRange::prefix(prefix.as_ref()))
    }

    /// The entry with the smallest key.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn first_key_value(&self) -> Result<Option<Entry>> {
        let mut cursor = self.cursor()?;
        cursor.seek_to_first()?.then(|| cursor.entry()).transpose()
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn last_key_value(&self) -> Result<Option<Entry>> {
        let mut cursor = self.cursor()?;
        cursor.seek_to_last()?.then(|| cursor.entry()).transpose()
    }

    /// The number of entries with keys in `range`. It reads each of these keys, but no value that is
    /// stored apart from its key, and copies nothing.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn count<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let mut cursor = self.range_cursor(range)?;
        let mut count = 0;
        let mut is_valid = cursor.seek_to_first()?;
        while is_valid {
            count += 1;
            is_valid = cursor.next()?;
        }
        Ok(count)
    }

    /// Whether the keyspace has no entry.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn is_empty(&self) -> Result<bool> {
        Ok(!self.cursor()?.seek_to_first()?)
    }

    /// What the snapshot reads, if the view has one.
    #[inline]
    fn at(&self) -> Option<SnapshotPoint> {
        self.snapshot.as_ref().map(Snapshot::at)
    }

    fn state(&self) -> Result<StateView> {
        let engine = self.handle.engine();
        engine.state_view(&self.core, self.at())
    }

    fn cursor_over(&self, range: KeyRange) -> Result<Cursor> {
        let entries = self.state()?.cursor(range);
        Ok(Cursor::new(Arc::clone(&self.handle), entries))
    }

    fn range_over(&self, range: KeyRange) -> Result<Range> {
        let state = self.state()?;
        Ok(Range::new(Arc::clone(&self.handle), state, range))
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("keyspace", &self.core.name())
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}
