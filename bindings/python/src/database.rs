//! Databases.
//!
//! Concurrency: any thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use windrow::{Db, Durability, PreparedTransaction};
use windrow_ffi::settings;

use crate::at_exit::close_at_exit;
use crate::backups::Backups;
use crate::batch::Batch;
use crate::buffers::{Input, Seconds};
use crate::changes::{Changes, Consumer};
use crate::conversions::json;
use crate::errors::{exception, invalid_argument, raised};
use crate::loading::check_not_loading;
use crate::merged::MergedItems;
use crate::options;
use crate::owner::{Owner, call};
use crate::scope::Scope;
use crate::snapshot::Snapshot;
use crate::transaction::{Transaction, may_try_again};
use crate::view::Keyspace;

/// How often `transact` runs its work.
const TRIES_MAX: u32 = 200;

/// An open database: a folder of named keyspaces. As a context manager it is closed at the end of the block.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Database(Guard);

/// Closes with the last object of the database, by the rules of `Held`.
type Guard = crate::owner::Held<()>;

/// Opens the database in the folder `path`, or creates it. The options are those of `Options` in Rust, by their names;
/// durations are seconds, choices are words. `keyspace` has the options of keyspaces that are created without their own.
/// `merge_operators` has the name of a ready operator, or a `MergeOperator`, for each keyspace with one. `listener` is called
/// with the events of the database, which are dictionaries: one after the other, a little later, in a thread of its own.
#[pyfunction]
#[pyo3(signature = (path, *, read_only=false, keyspace=None, merge_operators=None, listener=None, **options))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    read_only: bool,
    keyspace: Option<Bound<'_, PyDict>>,
    merge_operators: Option<Bound<'_, PyDict>>,
    listener: Option<Bound<'_, PyAny>>,
    options: Option<Bound<'_, PyDict>>,
) -> PyResult<Database> {
    let mut operators = merge_operators.iter().flatten();
    let has_functions =
        listener.is_some() || operators.any(|(_, operator)| !operator.is_instance_of::<PyString>());
    let options = options::options(
        py,
        options.as_ref(),
        keyspace.as_ref(),
        merge_operators.as_ref(),
        listener,
    )?;
    let durability = options.durability;
    let db = call(py, || {
        if read_only {
            Db::open_read_only(&path, options)
        } else {
            Db::open(&path, options)
        }
    })?;
    let owner = Owner::new(db, durability);
    if has_functions {
        close_at_exit(&owner);
    }
    Ok(Database::new(owner))
}

/// Removes the database in the folder `path` with all its entries. A missing database is no error. The folder stays.
#[pyfunction]
pub(crate) fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    call(py, || Db::destroy(&path, &windrow::Options::default()))
}

impl Database {
    pub(crate) fn new(owner: Arc<Owner>) -> Self {
        Self(Guard::new(owner, ()))
    }

    fn owner(&self, py: Python<'_>) -> PyResult<&Arc<Owner>> {
        self.0.owner(py)
    }

    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Db) -> windrow::Result<T> + Send,
    ) -> PyResult<T> {
        let db = &self.owner(py)?.db;
        call(py, || work(db))
    }

    fn begin(
        &self,
        py: Python<'_>,
        begin: impl FnOnce(&Db) -> windrow::Transaction + Send,
    ) -> PyResult<Transaction> {
        let owner = self.owner(py)?;
        let transaction = call(py, || Ok(begin(&owner.db)))?;
        Ok(Transaction::new(Arc::clone(owner), transaction))
    }

    fn end_prepared(
        &self,
        py: Python<'_>,
        name: &str,
        durability: Option<&str>,
        end: impl FnOnce(PreparedTransaction, Durability) -> windrow::Result<()> + Send,
    ) -> PyResult<()> {
        let durability = options::durability(py, durability, self.owner(py)?.durability)?;
        let found = self.call(py, |db| match db.prepared_transaction(name) {
            Some(prepared) => end(prepared, durability).map(Some),
            None => Ok(None),
        })?;
        found.ok_or_else(|| {
            let message = format!("there is no prepared transaction \"{name}\"");
            raised(py, "NotFoundError", &message)
        })
    }

    /// Runs the work of a transaction once, and commits it.
    fn try_transact<'py>(
        py: Python<'py>,
        transaction: Transaction,
        work: &Bound<'py, PyAny>,
        durability: Durability,
    ) -> PyResult<Bound<'py, PyAny>> {
        let transaction = Bound::new(py, transaction)?;
        let outcome = work.call1((&transaction,));
        match outcome {
            Ok(outcome) => {
                transaction.get().commit_with(py, durability)?;
                Ok(outcome)
            }
            Err(error) => {
                transaction.get().abandon(py);
                Err(error)
            }
        }
    }
}

#[pymethods]
impl Database {
    /// The folder of the database.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<PathBuf> {
        Ok(self.owner(py)?.db.path().to_owned())
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.0.any_owner().is_none_or(|owner| owner.is_closed())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.owner(py) {
            Ok(owner) => format!("<windrow.Database {}>", owner.db.path().display()),
            Err(_) => "<windrow.Database, closed>".to_owned(),
        }
    }

    /// Opens the keyspace `name`. A missing one is created; without `create` it is a `NotFoundError`. Options are those of
    /// `KeyspaceOptions` in Rust by their names, and `preset`; they are recorded, and the others stay as they are.
    #[pyo3(signature = (name, *, create=true, **options))]
    fn keyspace<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        create: bool,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let owner = self.owner(py)?;
        let existing = call(py, || owner.db.existing_keyspace(name))?;
        let keyspace = match (existing, options) {
            (Some(keyspace), None) => keyspace,
            (None, _) if !create => {
                let message = format!("there is no keyspace \"{name}\"");
                return Err(raised(py, "NotFoundError", &message));
            }
            (None, None) => call(py, || owner.db.keyspace(name))?,
            (existing, Some(given)) => {
                let base = existing.map_or_else(Default::default, |keyspace| keyspace.options());
                let options = options::keyspace_options(py, base, &given)?;
                call(py, || owner.db.keyspace_with(name, options))?
            }
        };
        Keyspace::open(py, Arc::clone(owner), keyspace)
    }

    /// The names of all keyspaces, sorted.
    fn keyspace_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, |db| Ok(db.keyspace_names()))
    }

    /// Drops the keyspace `name` with all its entries.
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.call(py, |db| db.drop_keyspace(name))
    }

    /// Exchanges the names of two keyspaces in one step.
    fn swap_keyspaces(&self, py: Python<'_>, first: &str, second: &str) -> PyResult<()> {
        self.call(py, |db| db.swap_keyspaces(first, second))
    }

    /// An empty batch.
    fn batch(&self, py: Python<'_>) -> PyResult<Batch> {
        Ok(Batch::new(
            Arc::clone(self.owner(py)?),
            windrow::Batch::new(),
        ))
    }

    /// The batch that `Batch.to_bytes` has made bytes of.
    fn batch_from_bytes(&self, py: Python<'_>, batch: Input<'_>) -> PyResult<Batch> {
        let bytes = batch.as_slice();
        let batch = self.call(py, |db| db.batch_from_bytes(bytes))?;
        Ok(Batch::new(Arc::clone(self.owner(py)?), batch))
    }

    /// Keeps the present state of all keyspaces readable.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Snapshot::new(py, self.owner(py)?)
    }

    /// The entries of several keyspaces with keys from `start` on and before `stop`, in the order of keys, or against it if
    /// `reverse`, all in the present state: tuples of the keyspace, the key and the value. A key that several keyspaces have
    /// comes once for each.
    #[pyo3(signature = (*keyspaces, start=None, stop=None, reverse=false))]
    fn merged_items(
        &self,
        py: Python<'_>,
        keyspaces: Vec<Bound<'_, Keyspace>>,
        start: Option<Input<'_>>,
        stop: Option<Input<'_>>,
        reverse: bool,
    ) -> PyResult<MergedItems> {
        let opened: Vec<_> = keyspaces.iter().map(Bound::borrow).collect();
        let mut handles = Vec::new();
        for view in opened.iter().map(PyRef::as_super) {
            if !view.scope().is_all() {
                let message = "the call needs whole keyspaces, and start and stop for a range";
                return Err(invalid_argument(py, message));
            }
            handles.push(view.keyspace(py)?);
        }
        let range = Scope::default().range(
            start.as_ref().map(Input::as_slice),
            stop.as_ref().map(Input::as_slice),
        );
        let cursor = self.call(py, |db| db.merged_cursor::<&[u8]>(&handles, range.bounds()))?;
        let keyspaces = keyspaces.into_iter().map(Bound::unbind).collect();
        let owner = Arc::clone(self.owner(py)?);
        Ok(MergedItems::new(owner, cursor, keyspaces, reverse))
    }

    /// The names of all prepared transactions, sorted.
    fn prepared_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, |db| Ok(db.prepared_transactions()))
    }

    /// Commits the prepared transaction `name`. If nothing was written, it stays prepared.
    #[pyo3(signature = (name, *, durability=None))]
    fn commit_prepared(
        &self,
        py: Python<'_>,
        name: &str,
        durability: Option<&str>,
    ) -> PyResult<()> {
        self.end_prepared(py, name, durability, PreparedTransaction::commit_with)
    }

    /// Discards the writes of the prepared transaction `name`.
    #[pyo3(signature = (name, *, durability=None))]
    fn roll_back_prepared(
        &self,
        py: Python<'_>,
        name: &str,
        durability: Option<&str>,
    ) -> PyResult<()> {
        self.end_prepared(py, name, durability, PreparedTransaction::roll_back_with)
    }

    /// Begins a transaction without locks. `isolation` is `serializable` or `snapshot`.
    #[pyo3(signature = (*, isolation="serializable"))]
    fn transaction(&self, py: Python<'_>, isolation: &str) -> PyResult<Transaction> {
        let isolation = settings::isolation(isolation).map_err(|error| exception(py, &error))?;
        self.begin(py, |db| db.transaction_with(isolation))
    }

    /// Begins a transaction that locks the keys that it writes or reads for an update. It waits for each lock at most for
    /// `timeout` seconds.
    #[pyo3(signature = (*, timeout=None))]
    fn locking_transaction(
        &self,
        py: Python<'_>,
        timeout: Option<Seconds>,
    ) -> PyResult<Transaction> {
        self.begin(py, |db| match timeout {
            Some(Seconds(timeout)) => db.locking_transaction_with(timeout),
            None => db.locking_transaction(),
        })
    }

    /// Runs `work` with a transaction and commits it. After a conflict or a deadlock it begins again, up to 200 times.
    /// Returns what `work` returns.
    #[pyo3(signature = (work, *, locking=false, isolation="serializable", durability=None))]
    fn transact<'py>(
        &self,
        py: Python<'py>,
        work: Bound<'py, PyAny>,
        locking: bool,
        isolation: &str,
        durability: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let durability = options::durability(py, durability, self.owner(py)?.durability)?;
        let mut tries = 0;
        loop {
            let transaction = if locking {
                self.locking_transaction(py, None)?
            } else {
                self.transaction(py, isolation)?
            };
            let outcome = Self::try_transact(py, transaction, &work, durability);
            tries += 1;
            match outcome {
                Err(error) if tries < TRIES_MAX && may_try_again(py, &error)? => {
                    let random: f64 = py.import("random")?.call_method0("random")?.extract()?;
                    let longest = Duration::from_micros(50 << tries.min(8));
                    py.import("time")?
                        .call_method1("sleep", (longest.as_secs_f64() * random,))?;
                }
                outcome => return outcome,
            }
        }
    }

    /// Makes all writes so far durable: they survive a power failure.
    fn persist(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Db::persist)
    }

    /// Writes all memtables to tables and waits until they are durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Db::flush)
    }

    /// Waits until no background work is due.
    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        check_not_loading(py, &**self.owner(py)?)?;
        self.call(py, Db::wait_idle)
    }

    /// Makes a copy of the database in the folder `path`, which is empty or missing. Files are linked where possible.
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.call(py, |db| db.checkpoint(&path))
    }

    /// Makes a backup of the database as of one moment during the call, with all writes that were acknowledged before. It
    /// copies what `backups` does not have yet. Returns its number. The backup is durable at the return; after an error it
    /// does not exist.
    fn backup(&self, py: Python<'_>, backups: &Backups) -> PyResult<u64> {
        backups.make(py, &self.owner(py)?.db)
    }

    /// The changes from the sequence number `start` on; the first batch may begin before. Nothing is kept for them: a
    /// `FellBehindError` says that they are gone. The iteration waits for each change for the seconds of `timeout`, which is 0,
    /// or for ever if it is `None`.
    #[pyo3(signature = (start, *, timeout=Some(Seconds(Duration::ZERO))))]
    fn changes(&self, py: Python<'_>, start: u64, timeout: Option<Seconds>) -> PyResult<Changes> {
        let owner = self.owner(py)?;
        Changes::open(py, owner, timeout, || owner.db.changes(start))
    }

    /// Opens the consumer `name`, or creates it. A new one begins behind the newest write, and is durable at the return: a
    /// snapshot that is taken afterwards has everything before its changes.
    fn consumer(&self, py: Python<'_>, name: &str) -> PyResult<Consumer> {
        Consumer::open(py, self.owner(py)?, name)
    }

    /// All consumers, by name, and what they hold.
    fn consumers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let consumers = self.call(py, |db| Ok(db.consumers()))?;
        let class = py.import("windrow._changes")?.getattr("ConsumerStats")?;
        let made = consumers
            .iter()
            .map(|it| class.call1((&it.name, it.acknowledged, it.is_behind, it.held_bytes)));
        made.collect()
    }

    /// Forgets the consumer `name`. What nobody else holds is removed.
    fn remove_consumer(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.call(py, |db| db.remove_consumer(name))
    }

    /// Checks every block and every value. Returns a sentence for each damage.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let report = self.call(py, Db::verify)?;
        Ok(report.damage.iter().map(ToString::to_string).collect())
    }

    /// Statistics: the work since the open, and the shape of each keyspace.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let text = self.call(py, |db| Ok(serde_json::to_string(&db.stats())))?;
        Ok(json(py, &text)?.cast_into::<PyDict>()?)
    }

    /// The memory of the database by purpose, in bytes.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let text = self.call(py, |db| Ok(serde_json::to_string(&db.memory())))?;
        Ok(json(py, &text)?.cast_into::<PyDict>()?)
    }

    /// Makes all writes durable and closes the database. Later calls of its objects are errors. A second close
    /// waits for the first, and has its outcome. A close in the child of a fork does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.any_owner().map_or(Ok(()), |owner| owner.close(py))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
