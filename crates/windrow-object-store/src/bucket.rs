//! A prefix of an object store, where backups are, and requests for the objects there.
//!
//! Concurrency: any thread makes requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode};
use windrow::{Error, ErrorKind, Result};

use crate::requests;

/// A request ends after this time. The clients of the crate `object_store` try for three minutes.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A prefix of an object store, below which the backups of one database are. [`BucketStore`](crate::BucketStore) opens them.
///
/// Give it a client of its own: a call waits for its requests, which may use threads of the client. The client's limit for one
/// attempt, 30 seconds unless `ClientOptions::with_timeout` says otherwise, holds for a part of 8 MiB.
#[derive(Clone)]
pub struct Bucket {
    objects: Arc<dyn ObjectStore>,
    pub(crate) prefix: Path,
    time_limit: Duration,
}

impl Bucket {
    /// The objects of `objects` whose names begin with `prefix` and a slash. An empty prefix is the whole store.
    ///
    /// # Errors
    /// `InvalidArgument` if the prefix is no path of an object store.
    pub fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self> {
        let prefix = Path::parse(prefix)
            .map_err(|error| Error::invalid_argument(format!("a prefix of objects: {error}")))?;
        Ok(Self {
            objects,
            prefix,
            time_limit: TIME_LIMIT,
        })
    }

    /// Gives a request up after this time, with all attempts that the store makes for it. Default 5 minutes. A list is one
    /// request, with all of its pages. A close of a database that waits for a store without answers waits for at most three: a
    /// look at the lock, the request, and the removal of an unfinished upload, or a look at what has arrived. A store that answers
    /// only some of them may take seven: a manifest is put up to three times.
    #[must_use]
    pub fn with_time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Makes a request, which `begin` takes of the store.
    pub(crate) fn request<T: Send + 'static, F>(
        &self,
        begin: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> object_store::Result<T>
    where
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let request = begin(Arc::clone(&self.objects));
        requests::make(self.time_limit, request)
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    /// All bytes of an object that is known to be small.
    pub(crate) fn get(&self, name: &str) -> object_store::Result<Vec<u8>> {
        let path = self.path(name);
        let get =
            |objects: Arc<dyn ObjectStore>| async move { objects.get(&path).await?.bytes().await };
        self.request(get).map(Vec::from)
    }

    /// Stores `content` by one request.
    pub(crate) fn put(
        &self,
        name: &str,
        content: Vec<u8>,
        mode: PutMode,
    ) -> object_store::Result<()> {
        let path = self.path(name);
        self.request(
            |objects| async move { objects.put_opts(&path, content.into(), mode.into()).await },
        )
        .map(drop)
    }

    /// The error of a failed request for the object `name`.
    pub(crate) fn failed(&self, operation: &str, name: &str, error: &object_store::Error) -> Error {
        let kind = match error {
            object_store::Error::NotFound { .. } => ErrorKind::NotFound,
            object_store::Error::NotImplemented { .. }
            | object_store::Error::NotSupported { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Io,
        };
        let message = format!("cannot {operation} {name} in {self}: {error}");
        Error::new(kind, message)
    }
}

/// As it is displayed: what the client of the store is made of may have its credentials.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({self})")
    }
}

/// The store and the prefix.
impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.objects, self.prefix.as_ref())
    }
}
